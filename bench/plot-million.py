"""bench/plot-million.py FORESHARD - a trace of a million rows, drawn and exported: seconds by the clock and
of all processors, and MB (1e6 bytes) of memory, the largest of foreshard and gnuplot. What is claimed: each
picture under 10 s and under 1 GB (1e9 bytes). On a busy machine the processors' seconds are those to look at."""
import os
import re
import subprocess
import sys
import tempfile
import time

# 60 steps of GPT-175B on rank 0 of 512.
PLAN = ['gpt-175b', '-n', '512', '--cluster', 'a100-roce', '--flavour', 'fsdp1', '--param-dtype', 'bf16',
        '--checkpointing', 'full', '--steps', '60']
COMMANDS = {
    'plot, memory': ['plot', 'big.trace', '-o', 'memory.png'],
    'plot, lanes': ['plot', '--picture', 'lanes', '--steps', '0-59', 'big.trace', '-o', 'lanes.png'],
    'plot, text': ['plot', 'big.trace'],
    'plot, jitter': ['plot', '--picture', 'jitter', 'big.trace', '-o', 'jitter.png'],
    'export, Perfetto': ['export', '--chrome', 'big.trace', '-o', 'big.json'],
    'export, memory page': ['export', '--memory-viz', 'big.trace', '-o', 'big.pickle'],
    'diagnose': ['diagnose', 'big.trace'],
}


def measure(program, words, folder):
    """A process of its own for each, for children's memory is counted until the process ends."""
    code = ('import resource, subprocess, sys; '
            'subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); '
            'used = resource.getrusage(resource.RUSAGE_CHILDREN); '
            'print(used.ru_utime + used.ru_stime, used.ru_maxrss)')
    start = time.monotonic()
    said = subprocess.run([sys.executable, '-c', code, program, *words], cwd=folder, check=True,
                          capture_output=True, text=True)
    busy, peak = said.stdout.split()
    return time.monotonic() - start, float(busy), int(peak) * 1024


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, 'predict', *PLAN, '--trace', 'big.trace'], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        with open(os.path.join(folder, 'big.trace'), encoding='utf-8') as file:
            ends = re.findall(r'^end ops (\d+) memory (\d+)', file.read(), re.M)[0]
        print('%d op rows and %d memory rows, %.1f MB'
              % (*map(int, ends), os.path.getsize(os.path.join(folder, 'big.trace')) / 1e6))
        for name, words in COMMANDS.items():
            seconds, busy, peak = measure(program, words, folder)
            print('%-20s %6.2f s, %6.2f s of processors, %8.1f MB' % (name, seconds, busy, peak / 1e6))
    return 0


if __name__ == '__main__':
    sys.exit(main())
