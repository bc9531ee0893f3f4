"""What a command has begun when it is interrupted does not stay behind, nor is there half an output.

Argument: the path of foreshard. gnuplot and the ranks are stand-ins that say that they have begun,
and then sleep."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SLEEPS = '#!/bin/sh\n: > "$READY"\nexec sleep 60\n'
LONG_S = 30  # a machine that is busy takes its time

PROGRAM = os.path.abspath(sys.argv[1])
COMMANDS = [
    'plot gpt-toy -n 2 --cluster a100-node --param-dtype bf16 -o out.svg',
    'plot gpt-toy -n 2 --cluster a100-node --param-dtype bf16 --knob micro_batch=1,2 -o out.png',
    'report some.trace -o out.html',
    'rehearse gpt-toy -n 2 --rank 0 --cluster a100-node --trace out.trace',
    'calibrate -n 1 -o out.ini',
]
FILES = ['predict gpt-toy -n 2 --cluster a100-node --trace out.trace', 'plan gpt-toy -n 2 -o out.plan',
         'report some.trace -o out.html', 'export --chrome some.trace -o out.json']
SMALL = 4096  # bytes that a file may have, less than any of these outputs
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def stand_in(path):
    with open(path, 'w', encoding='utf-8') as script:
        script.write(SLEEPS)
    os.chmod(path, 0o755)


def wait_for(path):
    end = time.monotonic() + LONG_S
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.01)
    return os.path.exists(path)


def interrupted(folder, words, sig):
    """What is wrong afterwards; None if nothing is."""
    work, temporary, ready = (os.path.join(folder, name) for name in ('work', 'tmp', 'ready'))
    env = dict(os.environ, TMPDIR=temporary, READY=ready, FORESHARD_EXEC=os.path.join(folder, 'gnuplot'),
               PATH=folder + os.pathsep + '/usr/bin:/bin')
    if os.path.exists(ready):
        os.unlink(ready)
    before = sorted(os.listdir(work))
    process = subprocess.Popen([PROGRAM, *words.split()], cwd=work, env=env, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    began = wait_for(ready)
    had = os.listdir(temporary)
    os.killpg(process.pid, sig)
    said = process.communicate(timeout=LONG_S)[1]
    if not began or not had:
        return 'it never began: %s' % said
    if process.returncode != -sig:
        return 'it ended with %d: %s' % (process.returncode, said)
    left = [name for name in os.listdir(temporary) if name.startswith('foreshard-')]
    if left:
        return 'left in TMPDIR: %s' % left
    now = sorted(os.listdir(work))
    return None if now == before else 'the folder now holds %s' % now


def limited(folder, words):
    """What is wrong where no file may grow (ulimit -f), which a signal tells; None if nothing is."""
    work = os.path.join(folder, 'work')
    before = sorted(os.listdir(work))
    result = subprocess.run([PROGRAM, *words.split()], cwd=work, capture_output=True, text=True, check=False,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, SMALL)))
    if result.returncode != 1 or 'File too large' not in result.stderr:
        return '%d %s' % (result.returncode, result.stderr.strip())
    now = sorted(os.listdir(work))
    return None if now == before else 'the folder now holds %s' % now


def main():
    for sig in SIGNALS:  # what ignores one, as nohup does, has its programs ignore it, too
        signal.signal(sig, signal.SIG_DFL)
    folder = tempfile.mkdtemp(prefix='foreshard-test-')
    for name in ('work', 'tmp'):
        os.mkdir(os.path.join(folder, name))
    stand_in(os.path.join(folder, 'gnuplot'))
    stand_in(os.path.join(folder, 'mpirun'))
    subprocess.run([PROGRAM, *'predict gpt-toy -n 2 --cluster a100-node --trace some.trace'.split()],
                   cwd=os.path.join(folder, 'work'), stdout=subprocess.DEVNULL, check=True)
    n = 0
    for words in COMMANDS:
        for sig in SIGNALS:
            n += 1
            wrong = interrupted(folder, words, sig)
            print('%s %d - %s by %s' % ('not ok' if wrong else 'ok', n, words, sig.name))
            if wrong:
                print('# ' + wrong.strip().replace('\n', '\n# '))
    for words in COMMANDS:
        n += 1
        result = subprocess.run([PROGRAM, *words.split()], cwd=os.path.join(folder, 'work'), capture_output=True,
                                text=True, env=dict(os.environ, TMPDIR='/proc'), check=False)
        good = (result.returncode == 1 and result.stderr.count('\n') == 1 and
                'no folder can be made in /proc: ' in result.stderr and 'let TMPDIR name one' in result.stderr)
        print('%s %d - %s without a temporary folder' % ('ok' if good else 'not ok', n, words))
        if not good:
            print('# %d %s' % (result.returncode, result.stderr.strip()))
    for words in FILES:
        n += 1
        wrong = limited(folder, words)
        print('%s %d - %s where files may not grow' % ('not ok' if wrong else 'ok', n, words))
        if wrong:
            print('# ' + wrong)
    print('1..%d' % n)
    shutil.rmtree(folder)


main()
