"""tests/cli/test-calibrate-gpu.py FORESHARD - `foreshard calibrate --device cuda`, cut off and finished.

A program that stands in for foreshard-exec answers as a GPU would: costs as written here, and of each network the trace that
is predicted for a known one."""
import os
import re
import stat
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from tap import Tap  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1])
FACTS = '''gpu Known GPU
fact sms 132
fact compute_capability 90
fact memory_bytes 80000000000
fact outside_bytes 500000000
launch_us 4
record_us 1.5
wait_us 0.6
host_wait_us 3
lane_us 2.2
timed_us 5
segment_new_us 150
segment_free_us 90
alloc_us 0.1
free_us 0.1
fact copy_gb_per_s 2500
fact to_gpu_gb_per_s 52
fact to_host_gb_per_s 48
'''
NETWORKS = 6
# At the network of that number, counted from 1, `foreshard calibrate` is ended as a machine that is taken away ends it. 'costs'
# and 'fails': behind the first time of attention it is, or the costs fail.
STAND_IN = r'''#!%s
import os, signal, subprocess, sys
folder, program = %r, %r
words = sys.argv[1:]
when = os.environ['CUT_AT']
if '--costs' in words:
    for line in open(folder + '/costs'):
        print(line, end='', flush=True)
        if line.startswith('attention ') and when == 'fails':
            sys.exit('cuDNN has had enough')
        if line.startswith('attention ') and when == 'costs':
            import time
            while not os.path.exists('gpu.ini.unfinished'):
                time.sleep(0.01)
            os.kill(os.getppid(), signal.SIGKILL)
            sys.exit(1)
    sys.exit()
with open(folder + '/played', 'a') as file:
    file.write('x')
if str(os.path.getsize(folder + '/played')) == when:
    os.kill(os.getppid(), signal.SIGKILL)
    sys.exit(1)
plan = next(word for word in words if word.endswith('.plan'))
trace = next(word for word in words if word.startswith('--trace='))
sys.exit(subprocess.run([program, 'predict', plan, '--cluster', 'h200-node', '--steps', '4', trace],
                        stdout=subprocess.DEVNULL).returncode)
'''


def costs():
    """Products at seven tenths of a peak, attention at four."""
    lines = [FACTS]
    for m, n, k in ((256, 256, 256), (1024, 1024, 1024), (4096, 4096, 4096), (8192, 8192, 8192), (8192, 1600, 6400)):
        us = 2 * m * n * k / 700e6 + 6
        lines += ['product %s %d %d %d %.6g\n' % (dtype, m, n, k, us * slower) for dtype, slower in (
            ('bf16', 1), ('fp16', 1), ('fp32', 10))]
    for seq in (512, 2048, 8192):
        lines += ['attention bf16 4 16 16 %d 128 1 %d %.6g\n' % (seq, backward, passes * 8 * seq * seq * 2048 / 400e6 + 10)
                  for backward, passes in ((0, 1), (1, 2.5))]
    return ''.join(lines)


def calibrate(folder, cut_at):
    played = os.path.join(folder, 'played')
    if os.path.exists(played):
        os.unlink(played)
    return subprocess.run([PROGRAM, 'calibrate', '--device', 'cuda', '-o', 'gpu.ini'], cwd=folder, capture_output=True,
                          text=True, check=False, env=os.environ | {
                              'FORESHARD_EXEC': os.path.join(folder, 'stand-in'), 'CUT_AT': str(cut_at), 'TMPDIR': folder})


def read(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return ''
    with open(path, encoding='utf-8') as file:
        return file.read()


def rates(text):
    return len(re.findall(r'(?m)^\w+ = ', text.split('[kernels]\n')[1].split('[')[0])) if '[kernels]' in text else 0


def predicts(folder, name):
    done = subprocess.run([PROGRAM, 'predict', 'gpt-toy', '-n', '1', '--cluster', './' + name], cwd=folder, capture_output=True,
                          text=True, check=False)
    return [] if done.returncode == 0 else [done.stderr]


def cut_off(folder):
    """What is wrong with what is left; the file of an earlier calibration stays as it is."""
    with open(os.path.join(folder, 'gpu.ini'), 'w', encoding='utf-8') as file:
        file.write('earlier\n')
    done, wrong = calibrate(folder, 3), []
    left = read(folder, 'gpu.ini.unfinished')
    if done.returncode != -9 or read(folder, 'gpu.ini') != 'earlier\n':
        wrong.append('status %d, left %r: %s' % (done.returncode, read(folder, 'gpu.ini'), done.stderr))
    if '# Unfinished: ops were timed in 2 of %d networks.\n' % NETWORKS not in left:
        wrong.append('it does not say what is missing: %r' % left[:300])
    return wrong + (predicts(folder, 'gpu.ini.unfinished') if left else [])


def cut_off_in_costs(folder):
    """Products are there by then, and attention is not."""
    done, left = calibrate(folder, 'costs'), read(folder, 'gpu.ini.unfinished')
    wrong = [] if done.returncode == -9 else ['status %d: %s' % (done.returncode, done.stderr)]
    if '# Unfinished: attention was still being timed.\n' not in left or '# assumed: it was not measured\nattention_eff' not in left:
        wrong.append('it does not say what is missing: %r' % left[:300])
    return wrong + (predicts(folder, 'gpu.ini.unfinished') if left else [])


def costs_fail(folder):
    """What was said before is enough, and the file tells why there is no more."""
    done, text = calibrate(folder, 'fails'), read(folder, 'gpu.ini')
    wrong = [] if done.returncode == 0 and 'cuDNN has had enough' in done.stderr else [
        'status %d: %s' % (done.returncode, done.stderr)]
    wrong += [] if '# Failed: costs: ' in text else ['it does not say so: %r' % text[:300]]
    wrong += [] if rates(text) else ['no op was timed']
    return wrong + predicts(folder, 'gpu.ini')


def finished(folder):
    had, done = rates(read(folder, 'gpu.ini.unfinished')), calibrate(folder, 0)
    text = read(folder, 'gpu.ini')
    wrong = [] if done.returncode == 0 and done.stdout.count(' trained on 1 rank ') == NETWORKS else [
        'status %d: %s%s' % (done.returncode, done.stdout, done.stderr)]
    wrong += ['it is called unfinished'] if 'Unfinished' in text else []
    wrong += ['what was unfinished is still there'] if os.path.exists(os.path.join(folder, 'gpu.ini.unfinished')) else []
    wrong += [] if rates(text) > had > 0 else ['rates of %d kernels, and of %d when it was cut off' % (rates(text), had)]
    return wrong + predicts(folder, 'gpu.ini')


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'stand-in')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(STAND_IN % (sys.executable, folder, PROGRAM))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        with open(os.path.join(folder, 'costs'), 'w', encoding='utf-8') as file:
            file.write(costs())
        tap.case('what was measured is kept when it is cut off', cut_off(folder))
        os.unlink(os.path.join(folder, 'gpu.ini.unfinished'))
        tap.case('products are kept when it is cut off before attention', cut_off_in_costs(folder))
        tap.case('costs that fail leave what was said before', costs_fail(folder))
        calibrate(folder, 3)
        tap.case('nothing of that is left when it is finished', finished(folder))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
