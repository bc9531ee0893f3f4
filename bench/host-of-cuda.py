"""What the host pays to play plans on a GPU, apart from CUDA itself: the true module of the GPU over a pretended runtime
(tests/oracle/pretend-cuda), whose calls return at once. Processor time of a step, as the difference between runs of many
steps and of few; own attention stands for cuDNN's.

    python3 bench/host-of-cuda.py build        # a build folder with -Dcuda=enabled; needs cc and nm
"""

import glob
import importlib.machinery
import importlib.util
import os
import re
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..'))
FEW, MANY, ROUNDS = 4, 104, 5
TRAINED = '--sharding none --model-dtype bf16 --kernels fused --optimizer-kernel fused'
CASES = [('GPT-2 1.5B, fused', 'gpt2-xl', TRAINED + ' --micro-batch 4'),
         ('GPT-2 1.5B, FSDP2', 'gpt2-xl', '--param-dtype bf16 --reduce-dtype fp32 --micro-batch 4'),
         ('GPT-2 124M, FSDP2', 'gpt2', '--param-dtype bf16 --reduce-dtype fp32 --micro-batch 8'),
         ('the same, traced', ROOT + '/tests/oracle/traced/gpt2-bf16.network',
          '--param-dtype bf16 --reduce-dtype fp32 --micro-batch 8')]


def pretended(module, folder):
    loader = importlib.machinery.SourceFileLoader('pretend', ROOT + '/tests/oracle/pretend-cuda/run')
    pretend = importlib.util.module_from_spec(importlib.util.spec_from_loader('pretend', loader))
    loader.exec_module(pretend)
    headers = [os.path.dirname(path) for path in glob.glob('/usr/local/cuda*/include/cuda.h')[:1]]
    pretend.build_libraries(folder, pretend.imported([module]), headers)


def sizes_of(plan):
    """Instructions and ops of a step that is like all those after it."""
    with open(plan, encoding='utf-8') as file:
        sections = re.split(r'(?m)^section ', file.read())
    second = next(text for text in sections if text.startswith('second '))
    return int(second.split()[1]), len(re.findall(r'(?m)^launch ', second))


def seconds(command, environment):
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime


def step_us(program, plan, environment):
    def run(steps):
        command = [program, plan, '--device', 'cuda', '--no-op-times', '--steps', str(steps)]
        return min(seconds(command, environment) for _ in range(ROUNDS))
    return (run(MANY) - run(FEW)) / (MANY - FEW) * 1e6


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    foreshard, program = (os.path.join(sys.argv[1], path) for path in ('cli/foreshard', 'exec/foreshard-exec'))
    print('%-20s %12s %6s %10s %18s %10s' % ('', 'instructions', 'ops', 'us a step', 'ns an instruction', 'us an op'))
    with tempfile.TemporaryDirectory() as folder:
        pretended(os.path.join(sys.argv[1], 'exec', 'foreshard-cuda.so'), folder)
        environment = os.environ | {'LD_LIBRARY_PATH': folder, 'FORESHARD_NO_CUDNN': '1', 'PRETEND_EVENTS': 'early'}
        for name, network, options in CASES:
            plan = os.path.join(folder, 'a.plan')
            subprocess.run([foreshard, 'plan', network, '-n', '1', *options.split(), '-o', plan], check=True,
                           stdout=subprocess.DEVNULL)
            instructions, ops = sizes_of(plan)
            us = step_us(program, plan, environment)
            print('%-20s %12d %6d %10.0f %18.0f %10.2f' % (name, instructions, ops, us, us / instructions * 1e3, us / ops))



main()
