"""tests/cli/test-idle-keys.py FORESHARD - keys that change nothing beside the others are taken with a note on stderr,
once, by every command that takes a strategy; which keys those are is tried in tests/plan."""
import os
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from runner import Runner, flat
from tap import Tap

NOTE = "note: momentum changes nothing here: it is SGD's with momentum (optimizer=momentum)"
PLAN = ['gpt-toy', '-n', '2']
PLAY = PLAN + ['--cluster', 'this-machine']

# command: what it is given, but the key
COMMANDS = {
    'plan': ['plan', *PLAN],
    'units': ['units', *PLAN],
    'predict': ['predict', *PLAY],
    'choose': ['choose', *PLAY],
    'plot': ['plot', *PLAY],
    'plot of points': ['plot', '--knob', 'micro_batch=1,2', *PLAY],
    'diagnose': ['diagnose', *PLAY],
    'explain': ['explain', 'step_ms', *PLAY],
    'explain shardings': ['explain', 'shardings', *PLAY],
    'rehearse': ['rehearse', '--rank', '0', *PLAY],
}
LIMITER = "note: limit_all_gathers changes nothing here: it is FSDP1's (flavour=fsdp1)"

# What is given to plot: the lines that it says
SWEEPS = {
    'with its default': (['--limit-all-gathers', '2'], []),
    'with another value': (['--limit-all-gathers', '0'], [LIMITER]),
    'several values': (['--knob', 'limit_all_gathers=2,0'], [LIMITER]),
    'where it matters': (['--knob', 'limit_all_gathers=2,0', '--flavour', 'fsdp1'], []),
    'where it matters for one': (['--limit-all-gathers', '0', '--knob', 'flavour=fsdp2,fsdp1'], []),
    'of two, one tried': (['--momentum', '0.5', '--knob', 'limit_all_gathers=2,0'], [LIMITER, NOTE]),
    'from a file': (['--strategy', 's.ini'], [LIMITER]),
}


def check_command(run, words):
    status, out, err = run(*words, '--momentum', '0.5')
    said = flat(err)
    wrong = [] if said.count(NOTE) == 1 and NOTE not in flat(out) else ['said: %s' % said]
    return wrong + (['status %d' % status] if status else [])


def check_sweep(run, options, wanted):
    status, _, err = run('plot', '--knob', 'micro_batch=1', *PLAY, *options)
    said = [line.split(': ', 1)[1] for line in err.splitlines() if 'changes nothing' in line]
    return (['said: %s' % said] if said != wanted else []) + ([err] if status else [])


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(sys.argv[1], folder)
        with open(os.path.join(folder, 's.ini'), 'w', encoding='ascii') as file:
            file.write('[strategy]\nlimit_all_gathers = 0\nuse_orig_params = no\n')
        for name, words in COMMANDS.items():
            tap.case(name, check_command(run, words))
        for name, (options, wanted) in SWEEPS.items():
            tap.case(name, check_sweep(run, options, wanted))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
