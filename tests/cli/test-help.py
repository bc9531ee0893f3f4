"""tests/cli/test-help.py FORESHARD - each command's help: no line is wider than the terminal, or in a file than
100 columns, and no word is lost at any width."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from tap import Tap

WIDEST = 100
COLUMNS = [80, 240]


def on_terminal(words, columns):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 50, columns, 0, 0))
    got = []
    with subprocess.Popen(words, stdout=theirs) as process:
        os.close(theirs)
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # nobody writes there any more
                break
            if not part:
                break
            got.append(part)
        process.wait()
    os.close(ours)
    return b''.join(got).decode().replace('\r\n', '\n')


def check(program, command):
    said = []
    words = [program, command, '--help-all']
    plain = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    for columns, shown in [(WIDEST, plain)] + [(columns, on_terminal(words, columns)) for columns in COLUMNS]:
        wide = [line for line in shown.split('\n') if len(line) > min(columns, WIDEST) and
                len(line.split()) > 2]  # else it is a word longer than its room
        if wide:
            said.append('%d columns: %s' % (columns, wide[0]))
        if shown.split() != plain.split():
            said.append('%d columns: other words' % columns)
    options = re.findall(r'^  (?:-\w, )?--.*', plain, re.MULTILINE)
    return said + ([] if options else ['no option'])


def check_themes(program):
    """Each key of a strategy is an option, under the heading of one theme; --help alone lists none of them."""
    said = []
    plan = subprocess.run([program, 'plan', 'gpt-toy', '-o', '-'], capture_output=True, text=True, check=True).stdout
    keys = re.findall(r'^\W*(\w+) = ', plan.split('[strategy]')[1].split('\n\n')[0], re.MULTILINE)
    text = subprocess.run([program, 'plan', '--help-strategy'], capture_output=True, text=True, check=True).stdout
    text = re.sub(r'\n {3,}', ' ', text)  # a line an option
    groups = re.findall(r'^Strategy options, (.*):\n((?:  -.*\n)+)', text, re.MULTILINE)
    options = [word for _, lines in groups for word in re.findall(r'^  (?:-\w, )?--([\w-]+)=', lines, re.MULTILINE)]
    wanted = [key.replace('_', '-') for key in keys] + ['strategy', 'network-key']
    if sorted(options) != sorted(wanted) or len(keys) < 60:
        said.append('of %d keys differ: %s' % (len(keys), sorted(set(options) ^ set(wanted))))
    if len(groups) < 10 or max(lines.count('\n') for _, lines in groups) > 15:
        said.append('%d themes: %s' % (len(groups), [title for title, _ in groups]))
    short = subprocess.run([program, 'plan', '--help'], capture_output=True, text=True, check=True).stdout
    if '--micro-batch=' in short or 'Strategy options,' in short:
        said.append('--help is long: %s' % short)
    return said


def main(program):
    tap = Tap()
    listed = subprocess.run([program, '--help'], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r'^  (\w+) {2,}', listed.split('Commands:')[1].split('\n\n')[0], re.MULTILINE)
    tap.case('there are commands', [] if len(commands) > 10 else commands)
    for command in commands:
        tap.case(command, check(program, command))
    tap.case('themes of a strategy', check_themes(program))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
