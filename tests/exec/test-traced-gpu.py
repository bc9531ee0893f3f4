"""tests/exec/test-traced-gpu.py FORESHARD FORESHARD-EXEC ON-GPU SOURCE - traced networks on CPU ranks and on a GPU.

The identical plan, from the same numbers: losses agree within what the dtype allows, and memory is equal at every
instruction. ON-GPU is foreshard-exec built against the emulated GPU (tests/emulator)."""
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
FP32, BF16 = 2e-6, 2 ** -6  # relative, of losses: as tests/exec/gpu.c has them
HALF = ' --param-dtype bf16 --reduce-dtype fp32'
CASES = (('gpt_toy', '-n 1 --sharding none', FP32), ('gpt_toy', '-n 2 --checkpointing full --clip 0.3', FP32),
         ('gpt_toy', '-n 2 --flavour fsdp1 --accumulate 2', FP32), ('gpt_toy-bf16', '-n 2' + HALF, BF16),
         ('t5_toy', '-n 2 --micro-batch 2', FP32), ('t5_toy-bf16', '-n 1' + HALF, BF16),
         ('llama_toy', '-n 2', FP32), ('llama_toy', '-n 4 --sharding grad-op --micro-batch 1', FP32),
         ('llama_toy-bf16', '-n 2' + HALF, BF16))
# What no kernel of a GPU computes is named before training.
REFUSED = (('vit', 'calls convolution, for which GPUs have no kernel'), ('encoder', 'with dropout'))


def run(words, fault):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        fault.append('%s: status %d: %s' % (' '.join(words), done.returncode, done.stderr.strip()))
    return done.stdout if done.returncode == 0 else None


def write_weights(path, plan_text):
    """All parameters and buffers of a plan, drawn: numbers of a normal distribution in fp32."""
    tensors = [(name, [int(side) for side in shape.split('x')])
               for shape, name in re.findall(r'(?m)^p\d+ u\d+ \w+ (\S+) (\S+)$', plan_text)]
    buffers = {name: int(elements) for elements, name in re.findall(r'(?m)^\| buffer (\d+) fp32 \d+ (\S+)$', plan_text)}
    tensors += [(name, [elements]) for name, elements in buffers.items()]
    draw, header, data = random.Random(1), {}, b''
    for name, shape in tensors:
        count = 1
        for side in shape:
            count *= side
        spread = 0.5 if name in buffers else 0.05
        numbers = struct.pack('<%df' % count, *(draw.gauss(1 if name.endswith('norm.weight') else 0, spread) for _ in range(count)))
        header[name] = {'dtype': 'F32', 'shape': shape, 'data_offsets': [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + data)


def losses_of(program, words, wrong):
    said = run([program, *words, '--json'], wrong)
    return json.loads(said)['losses'] if said else None


def hold(programs, source, name, options, bound):
    """What is wrong, in words; nothing is."""
    foreshard, on_host, on_gpu = programs
    wrong, ranks = [], options.split()[1]
    with tempfile.TemporaryDirectory() as folder:
        plan, weights = folder + '/x.plan', folder + '/weights.safetensors'
        run([foreshard, 'plan', os.path.join(source, 'tests', 'oracle', 'traced', name + '.network'), *options.split(), '-o',
             plan], wrong)
        if wrong:
            return wrong
        with open(plan, encoding='utf-8') as file:
            write_weights(weights, file.read())
        losses = []
        for program, device in ((on_host, 'host'), (on_gpu, 'cuda')):
            losses.append(losses_of(program, [
                plan, '--device', device, '--local-ranks', ranks, '--steps', str(STEPS), '--load', weights, '--watchdog', '60',
                '--trace', '%s/%s.trace' % (folder, device)], wrong))
        if wrong:
            return wrong
        off = max(abs(a / b - 1) for a, b in zip(*losses, strict=True))
        wrong += [] if off <= bound else ['losses are off by %.1e: %s' % (off, losses)]
        run([foreshard, 'replay', plan, folder + '/cuda.trace'], wrong)
        said = run([foreshard, 'compare', folder + '/host.trace', folder + '/cuda.trace', '--json'], wrong)
        verdict = json.loads(said)['verdict'] if said else ''
        what = ('allocated',) if 'fsdp1' in options else ('allocated', 'active', 'reserved')  # FSDP1's frees are a matter of time
        wrong += ['memory is not the host\'s: %s' % verdict for kind in what if kind + ' equal at all ' not in verdict]
        print('# %s %s: losses differ by %.1e' % (name, options, off))
    return wrong


def refuses(tap, programs, source):
    for name, said in REFUSED:
        with tempfile.TemporaryDirectory() as folder:
            wrong, plan = [], folder + '/x.plan'
            run([programs[0], 'plan', os.path.join(source, 'tests', 'oracle', 'traced', name + '.network'), '-n', '1',
                 '--sharding', 'none', '-o', plan], wrong)
            done = subprocess.run([programs[2], plan, '--device', 'cuda'], capture_output=True, text=True, check=False)
            if done.returncode != 2 or said not in done.stderr:
                wrong.append('status %d: %s' % (done.returncode, done.stderr))
            tap.case('%s is refused: %s' % (name, said), wrong)


def main():
    programs, source, tap = [os.path.abspath(path) for path in sys.argv[1:4]], os.path.abspath(sys.argv[4]), Tap()
    os.environ['FORESHARD_EMULATOR_LEAKS'] = '1'
    for at, (name, options, bound) in enumerate(CASES):
        os.environ['FORESHARD_EMULATOR_SEED'] = str(at % 4)
        tap.case('%s %s trains alike' % (name, options), hold(programs, source, name, options, bound))
    refuses(tap, programs, source)
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
