"""tests/cli/test-readme.py FORESHARD SOURCE MPI - every `foreshard` command of the top README, run in its
order in one folder, ends with status 0 and leaves the files that -o and --trace name. MPI, yes or no:
whether `foreshard run` can run here."""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from tap import Tap


def commands(text):
    """Indented lines that begin with foreshard; a backslash at the end goes on in the next line."""
    text = re.sub(r'\\\n\s*', '', text)
    for line in text.split('\n'):
        match = re.match(r'    (foreshard .*)', line)
        if match:
            words = shlex.split(match.group(1), comments=True)
            if not re.search(r'[A-Z]{4,}', ' '.join(words)):  # PLAN, NETWORK: a form, no command
                yield words


def outputs(words):
    return [words[i + 1] for i, word in enumerate(words[:-1]) if word in ('-o', '--trace')]


def main():
    program, source, mpi = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3] == 'yes'
    tap = Tap()
    with open(os.path.join(source, 'README.md'), encoding='utf-8') as file:
        listed = list(commands(file.read()))
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(source, 'tests'), os.path.join(folder, 'tests'))
        lost = set()  # files that only a real run makes
        for words in listed:
            name = ' '.join(words)
            if (words[1] == 'run' and not mpi) or lost & set(words):
                lost.update(outputs(words))
                tap.skip(name, 'needs Open MPI')
                continue
            if 'cuda' in words:
                tap.skip(name, 'needs a GPU')
                continue
            if words[1] in ('plot', 'report') and not shutil.which('gnuplot'):
                tap.skip(name, 'needs gnuplot')
                continue
            result = subprocess.run([program, *words[1:]], cwd=folder, capture_output=True, text=True,
                                    check=False)
            said = [] if result.returncode == 0 else ['status %d' % result.returncode, result.stderr]
            said += ['%s is not there' % output for output in outputs(words)
                     if not os.path.exists(os.path.join(folder, output))]
            tap.case(name, said)
    if len(listed) < 10:
        tap.case('commands are found', ['only %d' % len(listed)])
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
