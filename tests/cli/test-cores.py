"""tests/cli/test-cores.py FORESHARD [toy] - the number of cores on which plans are predicted does not show in what
is printed. Of toys alone it is short enough for ThreadSanitizer, whose findings are an exit status of its own."""
import os
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from runner import Runner
from tap import Tap

TOY = ['llama-toy', '--cluster', 'a100-node']
CHOOSE_TOY = [['choose', *TOY, '--global-batch', '32', '--knob', 'pipeline=1,2', '--knob', 'tensor=1,2']]
OTHERS_TOY = [['diagnose', *TOY, '-n', '4', '--pipeline', '2', '--accumulate', '8', '--json']]
# Much that does not fit; refusals, of which the first is told; batches doubled, and halved; a note; stages.
CHOOSE = [
    ['choose', 'gpt2-xl', '-n', '8', '--cluster', 'a100-node'],
    ['choose', 'gpt2', '--cluster', 'a100-node', '--cluster', 'v100-dgx', '--knob', 'ranks=3,16,4', '--knob',
     'autocast=bf16,fp16'],
    ['choose', 'gpt2-xl', '-n', '4', '--cluster', 'v100-dgx', '--global-batch', '64'],
    *CHOOSE_TOY,
    ['choose', 'llama3-70b', '-n', '2', '--cluster', 'a100-node', '--seq', '512'],
    ['choose', 'mixtral-8x7b', '-n', '16', '--cluster', 'dgx-h100', '--knob', 'sharding=full', '--expert', '8'],
]
# Neighbours that are refused, and that are not; ways to fit; stages.
OTHERS = [
    ['diagnose', 'gpt2-xl', '-n', '8', '--cluster', 'a100-node', '--wrap', 'whole'],
    *OTHERS_TOY,
    ['predict', 'llama3-70b', '-n', '64', '--cluster', 'dgx-h100'],
    ['choose', 'llama3-70b', '-n', '8', '--cluster', 'dgx-h100', '--cores', '1'],
]


def check_choose(run, commands):
    return [' '.join(words) for words in commands
            if run(*words, '--top', '9', '--cores', '1') != run(*words, '--top', '9', '--cores', '3')]


def check_others(run, commands):
    cores = os.sched_getaffinity(0)
    on_all = [run(*words) for words in commands]
    os.sched_setaffinity(0, {min(cores)})
    on_one = [run(*words) for words in commands]
    os.sched_setaffinity(0, cores)
    return [' '.join(words) for words, many, one in zip(commands, on_all, on_one)
            if many != one or not one[1]]


def main(program, size='all'):
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(program, folder)
        tap.case('choose', check_choose(run, CHOOSE_TOY if size == 'toy' else CHOOSE))
        tap.case('diagnose, predict', check_others(run, OTHERS_TOY if size == 'toy' else OTHERS))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
