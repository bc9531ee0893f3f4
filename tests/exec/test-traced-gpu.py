"""tests/exec/test-traced-gpu.py FORESHARD FORESHARD-EXEC ON-GPU NETWORKS [-l] [-p PATH]... - traced networks on CPU
ranks and on a GPU.

The identical plan, from the same numbers: losses agree within what the dtype allows, and memory is equal at every
instruction. ON-GPU is foreshard-exec built against the emulated GPU (tests/emulator). If it is FORESHARD-EXEC itself, a
real GPU is meant, or all is skipped. -l lists the tests, and -p chooses, as GLib's tests have it. FORESHARD_TEST_COMM names
what binds ranks (--comm), where NCCL would not have several on a GPU; FORESHARD_TEST_HAS_GPU: that there is one, which need
not be asked."""
import argparse
import functools
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from tap import Tap  # noqa: E402

STEPS = 3
FP32, BF16 = 2e-6, 2 ** -6  # relative, of losses: as tests/exec/gpu-runs.h has them
HALF = ' --param-dtype bf16 --reduce-dtype fp32'
CASES = (('gpt_toy', '-n 1 --sharding none', FP32), ('gpt_toy', '-n 2 --checkpointing full --clip 0.3', FP32),
         ('gpt_toy', '-n 2 --flavour fsdp1 --accumulate 2', FP32), ('gpt_toy-bf16', '-n 2' + HALF, BF16),
         ('t5_toy', '-n 2 --micro-batch 2', FP32), ('t5_toy-bf16', '-n 1' + HALF, BF16),
         ('llama_toy', '-n 2', FP32), ('llama_toy', '-n 4 --sharding grad-op --micro-batch 1', FP32),
         ('llama_toy-bf16', '-n 2' + HALF, BF16),
         ('vit', '-n 1 --sharding none --micro-batch 2', FP32), ('vit-bf16', '-n 2' + HALF, BF16),
         ('dit', '-n 2 --micro-batch 1', FP32), ('scan', '-n 2', FP32), ('scan-bf16', '-n 1' + HALF, BF16),
         ('convnet', '-n 1 --sharding none --micro-batch 4', FP32), ('convnet', '-n 2 --micro-batch 2', FP32),
         ('convnet-bf16', '-n 1 --micro-batch 2' + HALF, BF16),
         ('autoencoder', '-n 2 --micro-batch 2 --checkpointing full', FP32), ('autoencoder-bf16', '-n 1' + HALF, BF16),
         ('wide', '-n 2 --micro-batch 1', FP32), ('wide-bf16', '-n 1 --micro-batch 1' + HALF, BF16),
         ('video', '-n 2 --micro-batch 2', FP32), ('masked', '-n 1 --sharding none --micro-batch 3', FP32), ('masked', '-n 2 --checkpointing full', FP32),
         ('masked-bf16', '-n 2 --micro-batch 2' + HALF, BF16))
# What no kernel of a GPU computes is named before training.
REFUSED = (('encoder', 'with dropout'),)


def run(words, fault):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        fault.append('%s: status %d: %s' % (' '.join(words), done.returncode, done.stderr.strip()))
    return done.stdout if done.returncode == 0 else None


def buffers_of(plan_text):
    """(name, dtype, elements) of each buffer, by its whole name."""
    modules = ['']  # of each the path that its tensors' names begin with
    for parent, name in re.findall(r'(?m)^\| module (\d+) (\S+) ', plan_text):
        modules.append(modules[int(parent)] + name + '.')
    return [(modules[int(module)] + name, dtype, int(elements)) for elements, dtype, module, name
            in re.findall(r'(?m)^\| buffer (\d+) (fp32|int64) (\d+) (\S+)$', plan_text)]


def write_weights(path, plan_text):
    """All parameters and buffers of a plan, drawn: numbers of a normal distribution in fp32, whole ones zero."""
    tensors = [(name, 'fp32', [int(side) for side in shape.split('x')], 0.05)
               for shape, name in re.findall(r'(?m)^p\d+ u\d+ \w+ (\S+) (\S+)$', plan_text)]
    tensors += [(name, dtype, [elements], 0.5) for name, dtype, elements in buffers_of(plan_text)]
    draw, header, data = random.Random(1), {}, b''
    for name, dtype, shape, spread in tensors:
        count, middle = 1, 1 if name.endswith(('norm.weight', 'running_var')) else 0
        for side in shape:
            count *= side
        numbers = (struct.pack('<%df' % count, *(draw.gauss(middle, spread) for _ in range(count))) if dtype == 'fp32'
                   else bytes(8 * count))
        header[name] = {'dtype': {'fp32': 'F32', 'int64': 'I64'}[dtype], 'shape': shape,
                        'data_offsets': [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + data)


def losses_of(program, words, wrong):
    said = run([program, *words, '--json'], wrong)
    return json.loads(said)['losses'] if said else None


def planned(programs, networks, name, options, folder, wrong):
    plan = folder + '/x.plan'
    run([programs.foreshard, 'plan', os.path.join(networks, name + '.network'), *options.split(), '-o', plan], wrong)
    return plan


def hold(programs, networks, name, options, bound):
    """What is wrong, in words; nothing is."""
    wrong, ranks = [], options.split()[1]
    with tempfile.TemporaryDirectory() as folder:
        plan, weights = planned(programs, networks, name, options, folder, wrong), folder + '/weights.safetensors'
        if wrong:
            return wrong
        with open(plan, encoding='utf-8') as file:
            write_weights(weights, file.read())
        losses, comm = [], os.environ.get('FORESHARD_TEST_COMM', 'auto')
        for program, device in ((programs.on_host, 'host'), (programs.on_gpu, 'cuda')):
            losses.append(losses_of(program, [
                plan, '--device', device, '--comm', comm if device == 'cuda' else 'auto', '--local-ranks', ranks, '--steps',
                str(STEPS), '--load', weights, '--watchdog', '60', '--trace', '%s/%s.trace' % (folder, device)], wrong))
        if wrong:
            return wrong
        off = max(abs(a / b - 1) for a, b in zip(*losses, strict=True))
        wrong += [] if off <= bound else ['losses are off by %.1e: %s' % (off, losses)]
        run([programs.foreshard, 'replay', plan, folder + '/cuda.trace'], wrong)
        said = run([programs.foreshard, 'compare', folder + '/host.trace', folder + '/cuda.trace', '--json'], wrong)
        verdict = json.loads(said)['verdict'] if said else ''
        what = ('allocated',) if 'fsdp1' in options else ('allocated', 'active', 'reserved')  # FSDP1's frees are a matter of time
        wrong += ['memory is not the host\'s: %s' % verdict for kind in what if kind + ' equal at all ' not in verdict]
        print('# %s %s: losses differ by %.1e' % (name, options, off))
    return wrong


def refuse(programs, networks, name, said):
    with tempfile.TemporaryDirectory() as folder:
        wrong = []
        plan = planned(programs, networks, name, '-n 1 --sharding none', folder, wrong)
        done = subprocess.run([programs.on_gpu, plan, '--device', 'cuda'], capture_output=True, text=True, check=False)
        if done.returncode != 2 or said not in done.stderr:
            wrong.append('status %d: %s' % (done.returncode, done.stderr))
    return wrong


# What a machine without a GPU says, as tests/exec/gpu-failures.c has it.
NO_GPU = ('no GPU can be used', "the GPU's part of this program cannot be loaded: lib", "there is no device 'cuda' here")


def lacks_gpu(programs, networks):
    """What the program says of a machine without one; None where there is a GPU, even one that fails."""
    with tempfile.TemporaryDirectory() as folder:
        name, options, _ = CASES[0]
        plan = planned(programs, networks, name, options, folder, [])
        done = subprocess.run([programs.on_gpu, plan, '--device', 'cuda', '--steps', '1'], capture_output=True, text=True,
                              check=False)
    return done.stderr.split('\n')[0] if done.returncode and any(why in done.stderr for why in NO_GPU) else None


def tests_of(programs, networks):
    """{path: what is wrong, when it is called}."""
    tests = {'/exec/traced/%s %s' % case[:2]: functools.partial(hold, programs, networks, *case) for case in CASES}
    return tests | {'/exec/traced/%s is refused: %s' % case: functools.partial(refuse, programs, networks, *case)
                    for case in REFUSED}


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ('foreshard', 'on_host', 'on_gpu', 'networks'):
        parser.add_argument(name, type=os.path.abspath)
    parser.add_argument('-l', action='store_true', dest='lists')
    parser.add_argument('-k', action='store_true', help='as all tests here have it: one that fails ends nothing')
    parser.add_argument('-p', action='append', default=[], dest='paths')
    return parser.parse_args()


def main():
    options, tap = read_options(), Tap()
    tests = tests_of(options, options.networks)
    if options.lists:
        print('\n'.join(tests))
        return 0
    asks = options.on_gpu == options.on_host and 'FORESHARD_TEST_HAS_GPU' not in os.environ
    lacking = lacks_gpu(options, options.networks) if asks else None
    if lacking:
        print('1..0 # SKIP no GPU can be used here: %s' % lacking)
        return 0
    os.environ['FORESHARD_EMULATOR_LEAKS'] = '1'
    for at, (path, wrong) in enumerate(tests.items()):
        os.environ['FORESHARD_EMULATOR_SEED'] = str(at % 4)
        if path in options.paths or not options.paths:
            tap.case(path, wrong())
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
