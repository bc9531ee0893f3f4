"""tests/oracle/test-traced.py CHECK SOURCE - traced networks against what was recorded and traced before.

Recordings of the toys that families express, planned from the same toys as they were traced, are equal too. Where python3,
or the one that FORESHARD_TORCH_PYTHON names, has PyTorch 2.13, each network is traced anew and gives the same bytes."""
import functools
import json
import os
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from tap import Tap

SHAPES = {
    'gpt': {'layers': 2, 'width': 64, 'heads': 2, 'vocab': 96, 'seq': 32, 'tied': False, 'gelu': 'tanh', 'attention': 'flash',
            'bias': True, 'loss': 'ops', 'loss_at': 'model'},
    't5': {'layers': 2, 'width': 64, 'heads': 4, 'head_dim': 32, 'ffn': 128, 'vocab': 96, 'seq': 32, 'tied': True,
           'attention': 'math-eager', 'rms_norm': 'kernel', 'gated': False, 'loss': 'ops', 'loss_at': 'model'},
}
LEAST = 80  # recordings that are like the toys


def is_of_toy(shape, kind):
    ffn = SHAPES['t5']['ffn'] if kind == 't5' else 4 * SHAPES[kind]['width']
    return (shape.get('kind') == kind and not shape.get('dropout') and shape.get('ffn', ffn) == ffn
            and all(shape.get(key, value) == value for key, value in SHAPES[kind].items()))


def traced_of(folder, header):
    """The file that stands for a recording's network; None: none does."""
    shape, options = header['shape'], header['options']
    kind = shape.get('kind')
    other = ('lora_rank', 'freeze', 'autocast', 'compile', 'compile_network', 'deterministic', 'transformers',
             'eval_batches', 'ignored', 'tensor')
    if kind not in SHAPES or not is_of_toy(shape, kind) or any(options.get(key) for key in other):
        return None
    dtype = options.get('param_dtype') or options.get('model_dtype') or 'fp32'
    path = os.path.join(folder, kind + '_toy' + ('' if dtype == 'fp32' else '-' + dtype) + '.network')
    return path if header['torch'].startswith('2.13') and os.path.exists(path) else None


def hold_recordings(tap, check, here):
    like, wrong = 0, []
    folder = os.path.join(here, 'recordings')
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        with open(path, encoding='utf-8') as file:
            network = traced_of(os.path.join(here, 'traced'), json.loads(file.readline())['header'])
        if network:
            like += 1
            done = subprocess.run([check, '--network', network, path], capture_output=True, text=True, check=False)
            wrong += [] if done.returncode == 0 else [done.stdout + done.stderr]
    wrong += [] if like >= LEAST else ['only %d recordings are like the toys' % like]
    tap.case('%d recordings are equal to plans of the traced toys' % like, wrong)


@functools.cache
def python_with_torch():
    python = os.environ.get('FORESHARD_TORCH_PYTHON', 'python3')
    ask = 'import torch; raise SystemExit(not torch.__version__.startswith("2.13."))'
    done = subprocess.run([python, '-c', ask], capture_output=True, check=False)
    return python if done.returncode == 0 else None


def trace_anew(tap, source, path, program):
    python, name = python_with_torch(), os.path.basename(path)
    if not python:
        tap.skip(name + ' is traced anew', 'needs PyTorch 2.13')
        return
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, name)
        words = ['--dtype', 'bf16'] if name.endswith('-bf16.network') or name == 'mixer.network' else []
        tracer = os.path.join(source, 'models', 'pytorch', 'trace.py')
        done = subprocess.run([python, '-B', tracer, program, '-o', made, *words], capture_output=True, text=True, check=False)
        same = done.returncode == 0 and open(made, 'rb').read() == open(path, 'rb').read()
        tap.case(name + ' is traced anew', [] if same else ['it is not the same', done.stderr])


PROGRAM = """import torch

def model():
    return torch.nn.Linear(8, 8)%s

def batch(n):
    return torch.rand(n, 8), torch.rand(n, 8)

def loss(model, inputs, wanted):
    return torch.nn.functional.mse_loss(model(inputs), wanted)
"""


NARROW = PROGRAM.replace('model(inputs)', 'called(model, inputs)') + """
def called(model, inputs):
    return model(inputs[:, :7])
"""
DRAWN = PROGRAM % '' + """
def model():
    network = torch.nn.Linear(8, 8)
    torch.nn.init.trunc_normal_(network.weight, std=0.02)
    return network
"""
ASKING = NARROW.replace('return model(inputs[:, :7])', 'return model(inputs) if inputs.sum() > 0 else inputs') % ''
MASKING = NARROW.replace('return model(inputs[:, :7])', 'return model(inputs)[inputs > 0]') % ''
SAID = (  # the program, the tracer's status, what it says
    (PROGRAM % '', 0, 'wrote mine.network; next: foreshard predict ./mine.network'),
    (DRAWN, 0, 'wrote mine.network'),
    (ASKING, 2, 'mine.py:13: return model(inputs) if inputs.sum() > 0 else inputs: the network asks for a number'),
    (MASKING, 2, 'mine.py:13: return model(inputs)[inputs > 0]: the network asks for a number'),
    (PROGRAM % '.cuda()', 2, 'mine.py:4: return torch.nn.Linear(8, 8).cuda(): name no device'),
    (NARROW % '', 2, 'mine.py:13: return model(inputs[:, :7]): RuntimeError: '),
    (NARROW % '', 2, 'called from\n  mine.py:10, in loss: return torch.nn.functional.mse_loss('),
    (PROGRAM % '.wide', 2, "mine.py:4: return torch.nn.Linear(8, 8).wide: AttributeError: 'Linear' object"),
    ('import of_nobody\n', 2, "mine.py:1: import of_nobody: ModuleNotFoundError: No module named 'of_nobody'"),
    ('def model(:\n', 2, 'mine.py:1: def model(:: SyntaxError'),
)
LINES = 3  # at most, of one that two functions of the program's lead to


def say(tap, source):
    """What the tracer says of programs that it traced, of one that names a device, and of those that fail: no call of
    PyTorch's or of its own."""
    python = python_with_torch()
    if not python:
        tap.skip('what the tracer says', 'needs PyTorch 2.13')
        return
    said = []
    with tempfile.TemporaryDirectory() as folder:
        for program, status, wanted in SAID:
            with open(os.path.join(folder, 'mine.py'), 'w', encoding='utf-8') as file:
                file.write(program)
            tracer = os.path.join(source, 'models', 'pytorch', 'trace.py')
            done = subprocess.run([python, '-B', tracer, 'mine.py', '-o', 'mine.network'], cwd=folder, capture_output=True,
                                  text=True, check=False)
            if (done.returncode != status or wanted not in done.stdout + done.stderr or 'Traceback' in done.stderr
                    or done.stderr.count('\n') > LINES):
                said.append('status %d: %s%s' % (done.returncode, done.stdout, done.stderr))
    tap.case('what the tracer says', said)


def main():
    check, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    here, tap = os.path.join(source, 'tests', 'oracle'), Tap()
    hold_recordings(tap, check, here)
    for name in sorted(os.listdir(os.path.join(here, 'traced'))):
        program = name.removesuffix('.network').removesuffix('-bf16') + '.py'
        trace_anew(tap, source, os.path.join(here, 'traced', name), os.path.join(here, 'programs', program))
    pytorch = os.path.join(source, 'models', 'pytorch')
    trace_anew(tap, source, os.path.join(pytorch, 'mixer.network'), os.path.join(pytorch, 'mixer.py'))
    say(tap, source)
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
