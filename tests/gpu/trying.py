"""tests/gpu/trying.py - for the tests of this folder: what they try, and how.

Their arguments: SOURCE-ROOT BUILD-FOLDER.
"""
import os
import subprocess
import sys

ROOT, BUILD = sys.argv[1:3]
HERE = os.path.join(ROOT, 'tests', 'gpu')
RUN, BUNDLE, KEEP = (os.path.join(HERE, name) for name in ('run', 'bundle', 'keep'))


def run(*command, **more):
    return subprocess.run([sys.executable, '-B', *command] if command[0].startswith(HERE) else command,
                          capture_output=True, text=True, check=False, **more)


def unlike(done, status, *texts):
    said = done.stdout + done.stderr
    complaints = ['status %d, not %d' % (done.returncode, status)] if done.returncode != status else []
    complaints += ['does not say "%s"' % text for text in texts if text not in said]
    return complaints + (said.split('\n')[-25:] if complaints else [])
