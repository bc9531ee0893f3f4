"""tests/cli/runner.py - the program under test, called in a folder of its own."""
import json
import os
import re
import subprocess

# What AddressSanitizer says of any program with stacks of its own, with the process's number.
_ASAN_AND_STACKS = re.compile("^==[0-9]+==WARNING: ASan doesn't fully support .*\n", re.MULTILINE)


def flat(text):
    """Without its line breaks: a sentence that was broken to fit is one again."""
    return ' '.join(text.split())


class Runner:
    def __init__(self, program, folder):
        self.program, self.folder = os.path.abspath(program), folder

    def __call__(self, *words):
        """Status, what it printed, what it complained of."""
        result = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True,
                                check=False)
        return result.returncode, result.stdout, _ASAN_AND_STACKS.sub('', result.stderr)

    def json(self, *words):
        status, out, err = self(*words, '--json')
        if status:
            raise RuntimeError('%s: status %d, %s' % (' '.join(words), status, err))
        return json.loads(out)
