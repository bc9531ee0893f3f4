"""tests/cli/test-progress.py FORESHARD - who waits at a terminal sees how far it is; who does not gets no word of it."""
import os
import pty
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from tap import Tap

# Each takes several times the half second before which nothing is shown, on an idle machine too.
CASES = {
    'plot': ('plot llama3-70b -n 64 --cluster dgx-h100 --param-dtype bf16 --checkpointing full --seq 4096 --pipeline 8 '
             '--accumulate 64 --knob micro_batch=1,2,4,8 --csv', b'predicting settings:'),
    'choose': ('choose llama3-8b -n 64 --cluster dgx-h100 --global-batch 2048 --cores 1 --csv', b'predicting settings:'),
    'diagnose': ('diagnose gpt-175b -n 512 --cluster a100-roce --flavour fsdp1 --param-dtype bf16 --accumulate 16 '
                 '--checkpointing full --json', b'predicting neighbours:'),
}


def on_terminal(program, words, folder):
    """What a terminal is shown as standard error."""
    terminal, end = pty.openpty()
    with subprocess.Popen([program, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=end, stdin=subprocess.DEVNULL) as process:
        os.close(end)
        shown = b''
        try:
            while piece := os.read(terminal, 4096):
                shown += piece
        except OSError:  # the other end is closed
            pass
        os.close(terminal)
    return shown


def check(program, folder, words, wanted):
    shown = on_terminal(program, words.split(), folder)
    said = [] if wanted in shown and shown.rstrip().endswith(b'\033[K') else ['a terminal is shown %r' % shown[-200:]]
    done = subprocess.run([program, *words.split()], cwd=folder, capture_output=True, check=False)
    return said + (['%d, %r' % (done.returncode, done.stderr)] if done.returncode or wanted in done.stderr else [])


def main(program):
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        for name, (words, wanted) in CASES.items():
            tap.case('progress of ' + name, check(os.path.abspath(program), folder, words, wanted))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
