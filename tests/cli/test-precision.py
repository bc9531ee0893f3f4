"""tests/cli/test-precision.py FORESHARD - in what a network is computed where nobody said it: fp32, as in PyTorch, and
of choose bf16. Each command that predicts says so, and none does where a dtype is given or 16 bits are no faster."""
import os
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from runner import Runner
from tap import Tap

FP32 = "in fp32, PyTorch's default; most training is in 16 bits: --param-dtype bf16"
BF16 = "in bf16, since no dtype was given (other commands then plan PyTorch's default, fp32)"
GPUS = ['gpt-toy', '-n', '2', '--cluster', 'a100-node']
CORES = ['gpt-toy', '-n', '2', '--cluster', 'this-machine']

# command: what it is given before the network
PREDICTS = {
    'predict': ['predict'],
    'diagnose': ['diagnose'],
    'plot': ['plot'],
    'plot of points': ['plot', '--knob', 'micro_batch=1,2'],
    'explain': ['explain', 'step_ms'],
    'explain shardings': ['explain', 'shardings'],
}


def check(run, words, wanted):
    """Each line that is wanted stands there once, the other not."""
    status, out, err = run(*words)
    said = out + err
    wrong = ['%s: status %d, %d times %s' % (' '.join(words), status, said.count(line), line)
             for line in (FP32, BF16) if said.count(line) != (line == wanted)]
    return wrong + ([err] if status else [])


def check_choose(run):
    wrong = check(run, ['choose', *GPUS], BF16)
    wrong += check(run, ['choose', *GPUS, '--param-dtype', 'fp32'], None)
    wrong += check(run, ['choose', 'llama3-405b', '-n', '2', '--cluster', 'a100-node'], BF16)  # nothing fits
    lines = run('choose', *GPUS)[1].split('\n')
    if lines[1] != BF16:
        wrong.append('choose says it later than in its second line: %s' % lines[1])
    return wrong


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(os.path.abspath(sys.argv[1]), folder)
        for name, words in PREDICTS.items():
            tap.case(name, check(run, words + GPUS, FP32))
            tap.case(name + ', given a dtype', check(run, words + GPUS + ['--param-dtype', 'bf16'], None))
            for option in ('--param-dtype', '--model-dtype', '--autocast'):
                fp32 = 'none' if option == '--autocast' else 'fp32'
                tap.case('%s, told %s %s' % (name, option, fp32), check(run, words + GPUS + [option, fp32], None))
            tap.case(name + ', on CPU ranks', check(run, words + CORES, None))
        stages = ['predict', 'llama-toy', '-n', '4', '--pipeline', '2', '--accumulate', '2', '--sharding', 'none',
                  '--cluster', 'a100-node']
        tap.case('stages without FSDP', [] if FP32.replace('param', 'model') in ''.join(run(*stages)[1:])
                 else ['they are told another option than --model-dtype'])
        tap.case('a knob gives it', check(run, ['plot', '--knob', 'param_dtype=fp32,bf16', *GPUS], None))
        tap.case('choose', check_choose(run))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
