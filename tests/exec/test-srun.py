#!/usr/bin/env python3
"""tests/exec/test-srun.py FORESHARD FORESHARD-EXEC - ranks that Slurm starts, without mpirun.

Where munged, slurmctld, slurmd and srun are installed (Debian: munge slurmctld slurmd slurm-client
slurm-wlm-basic-plugins libpmix2), a Slurm of one node is started in a folder of its own, and stopped
again; nothing outside that folder is touched. Elsewhere the test skips and says so.
"""
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'style'))
from tap import Tap  # noqa: E402

NEEDED = ('munged', 'slurmctld', 'slurmd', 'srun')
STEPS = 4


def free_port():
    with socket.socket() as s:
        s.bind(('', 0))
        return s.getsockname()[1]


class Slurm:
    """One node, this machine, for as long as the object is entered."""

    def __init__(self, folder):
        self.folder = folder
        self.host = socket.gethostname().split('.')[0]
        self.env = dict(os.environ, SLURM_CONF=self.path('slurm.conf'))
        self.running = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *words):
        log = open(self.path(os.path.basename(words[0]) + '.log'), 'w')
        self.running.append(subprocess.Popen([shutil.which(words[0]), *words[1:]], env=self.env,
                                             stdout=log, stderr=log))

    def __enter__(self):
        user = getpass.getuser()
        for name in ('state', 'spool'):
            os.mkdir(self.path(name))
        with open(self.path('key'), 'wb') as key:
            key.write(os.urandom(1024))
        os.chmod(self.path('key'), 0o400)
        with open(self.path('slurm.conf'), 'w') as conf:
            conf.write(f'''ClusterName=one
SlurmctldHost={self.host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
AuthType=auth/munge
AuthInfo=socket={self.path('munge')}
StateSaveLocation={self.path('state')}
SlurmdSpoolDir={self.path('spool')}
SlurmctldPidFile={self.path('slurmctld.pid')}
SlurmdPidFile={self.path('slurmd.pid')}
ProctrackType=proctrack/pgid
TaskPlugin=task/none
ReturnToService=2
NodeName={self.host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()}
PartitionName=all Nodes={self.host} Default=YES State=UP OverSubscribe=YES
''')
        self.start('munged', '--foreground', '--force', '--socket=' + self.path('munge'),
                   '--key-file=' + self.path('key'), '--log-file=' + self.path('munged.log'),
                   '--pid-file=' + self.path('munged.pid'), '--seed-file=' + self.path('seed'))
        time.sleep(1)
        self.start('slurmctld', '-D')
        self.start('slurmd', '-D')
        return self

    def __exit__(self, *_):
        for process in reversed(self.running):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()

    def is_up(self):
        for _ in range(20):
            state = subprocess.run(['sinfo', '--noheader', '--format=%T'], env=self.env,
                                   capture_output=True, text=True).stdout
            if 'idle' in state:
                return True
            time.sleep(1)
        return False

    def srun(self, ranks, *words):
        return subprocess.Popen(['srun', '--mpi=pmix', '--overcommit', '-n', str(ranks), *words],
                                env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)


def losses(text):
    return re.findall(r'^step +\d+ +loss (\S+)', text, re.MULTILINE)


def same_as_run(slurm, foreshard, rank, folder):
    """What srun starts trains as what `foreshard run` starts, and its trace is whole."""
    plan, trace = os.path.join(folder, 'x.plan'), os.path.join(folder, 'x.trace')
    subprocess.run([foreshard, 'plan', 'gpt-toy', '-n', '3', '-o', plan], check=True,
                   stdout=subprocess.DEVNULL)
    run = subprocess.run([foreshard, 'run', plan, '--steps', str(STEPS)], capture_output=True,
                         text=True)
    started = slurm.srun(3, rank, plan, '--steps=%d' % STEPS, '--trace=' + trace)
    out, err = started.communicate(timeout=120)
    complaints = []
    if started.returncode != 0:
        complaints += ['exit status %d' % started.returncode, *err.splitlines()]
    if len(losses(out)) != STEPS or losses(out) != losses(run.stdout):
        complaints.append('losses %s, of foreshard run %s' % (losses(out), losses(run.stdout)))
    if not complaints:
        compared = subprocess.run([foreshard, 'compare', trace, trace], capture_output=True,
                                  text=True)
        complaints += compared.stderr.splitlines()
    return complaints


def ranks_of(rank):
    """The processes that play: whoever runs that program."""
    found = []
    for name in os.listdir('/proc'):
        try:
            if name.isdigit() and os.readlink('/proc/%s/exe' % name) == os.path.realpath(rank):
                found.append(int(name))
        except OSError:
            pass
    return found


def names_the_dead(slurm, rank, folder):
    """A rank that is killed is named, every process is gone, and no trace is left."""
    plan, trace = os.path.join(folder, 'x.plan'), os.path.join(folder, 'killed.trace')
    before = ranks_of(rank)
    started = slurm.srun(3, rank, plan, '--steps=100000', '--trace=' + trace)
    started.stdout.readline()
    ours = sorted(set(ranks_of(rank)) - set(before))
    os.kill(ours[-1], signal.SIGKILL)  # a rank: each was forked by its warden
    begin = time.monotonic()
    _, err = started.communicate(timeout=60)
    took = time.monotonic() - begin
    complaints = []
    if len(re.findall(r'rank \d .* (?:at|after) step \d+, .*op \S+', err)) != 1:
        complaints += ['rank, step and op are not named once:', *err.splitlines()]
    if started.returncode == 0:
        complaints.append('exit status 0')
    if took > 10 or set(ranks_of(rank)) - set(before):
        complaints.append('after %.1f s %d ranks are left' % (took, len(ranks_of(rank))))
    if os.path.exists(trace):
        complaints.append('a trace is left')
    print('# told after %.1f s' % took)
    return complaints


def main(foreshard, rank):
    tap = Tap()
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing:
        tap.skip('/exec/srun', 'no ' + ', '.join(missing) + ' here')
        return tap.finish()
    with tempfile.TemporaryDirectory(prefix='foreshard-slurm-') as folder:
        os.chmod(folder, 0o755)
        with Slurm(folder) as slurm:
            if not slurm.is_up():
                tap.skip('/exec/srun', 'Slurm does not come up here')
                return tap.finish()
            tap.case('/exec/srun/trains-as-foreshard-run',
                     same_as_run(slurm, foreshard, rank, folder))
            tap.case('/exec/srun/a-killed-rank-is-named', names_the_dead(slurm, rank, folder))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2]))
