"""bench/plot-million.py FORESHARD - a trace of a million rows, drawn and exported, and files of PyTorch's form and
such a size, read: seconds by the clock and of all processors, and MB (1e6 bytes) of memory, the largest of foreshard and
gnuplot. What is claimed: each picture under 10 s and under 1 GB (1e9 bytes). On a busy machine the processors' seconds
are those to look at."""
import json
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
    'compare, snapshot': ['compare', 'big.trace', 'big.pickle'],
    'compare, profile': ['compare', 'big.trace', 'profile.json'],
    'diagnose': ['diagnose', 'big.trace'],
}
EVENTS = 600000  # of the profile: a third kernels, a third the calls that launch them, a third operators


def write_profile(path):
    """Steps of 3000 kernels, with the arguments that Kineto gives each."""
    of_kernel = {'queued': 0, 'device': 0, 'context': 1, 'stream': 7, 'registers per thread': 32, 'shared memory': 0,
                 'blocks per SM': 1.5, 'warps per SM': 12.0, 'grid': [128, 1, 1], 'block': [128, 1, 1]}
    of_operator = {'Record function id': 0, 'Concrete Inputs': [''] * 5, 'Input Dims': [[1024, 768], [768, 3072]]}
    with open(path, 'w', encoding='utf-8') as file:
        file.write('{"schemaVersion": 1, "traceEvents": [')
        for i in range(EVENTS // 3):
            time = 10 * i
            for event in ({'cat': 'cpu_op', 'name': 'aten::addmm', 'dur': 9, 'args': of_operator},
                          {'cat': 'cuda_runtime', 'name': 'cudaLaunchKernel', 'dur': 4, 'args': {'correlation': i + 1}},
                          {'cat': 'kernel', 'name': 'ampere_sgemm_%d' % (i % 40), 'dur': 8,
                           'args': {**of_kernel, 'correlation': i + 1}}):
                file.write(json.dumps({'ph': 'X', 'pid': 0, 'tid': 7, 'ts': 4536294739630.63 + time, **event}) + ',\n')
            if i % 3000 == 0:
                file.write(json.dumps({'ph': 'X', 'cat': 'user_annotation', 'name': 'ProfilerStep#%d' % (i // 3000),
                                       'ts': 4536294739630.63 + time, 'dur': 29990}) + ',\n')
        file.write(']}')


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
        write_profile(os.path.join(folder, 'profile.json'))
        for name, words in COMMANDS.items():
            seconds, busy, peak = measure(program, words, folder)
            read = os.path.join(folder, words[-1])
            size = ', of %.1f MB' % (os.path.getsize(read) / 1e6) if words[0] == 'compare' else ''
            print('%-20s %6.2f s, %6.2f s of processors, %8.1f MB%s' % (name, seconds, busy, peak / 1e6, size))
    return 0


if __name__ == '__main__':
    sys.exit(main())
