"""tests/gpu/trying.py - for the tests of this folder: what they try, and how.

Their arguments: SOURCE-ROOT BUILD-FOLDER.
"""
import contextlib
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import time
import types

ROOT, BUILD = sys.argv[1:3]
HERE = os.path.join(ROOT, 'tests', 'gpu')
RUN, BUNDLE, KEEP = (os.path.join(HERE, name) for name in ('run', 'bundle', 'keep'))
sys.path[:0] = [os.path.join(ROOT, 'tests', 'style'), HERE]

from session import Session  # noqa: E402


def run(*command, **more):
    return subprocess.run([sys.executable, '-B', *command] if command[0].startswith(HERE) else command,
                          capture_output=True, text=True, check=False, **more)


def unlike(done, status, *texts):
    said = done.stdout + done.stderr
    complaints = ['status %d, not %d' % (done.returncode, status)] if done.returncode != status else []
    complaints += ['does not say "%s"' % text for text in texts if text not in said]
    return complaints + (said.split('\n')[-25:] if complaints else [])


def module_of(command):
    """A command of this folder as a module."""
    loader = importlib.machinery.SourceFileLoader(os.path.basename(command), command)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def program(path, text):
    """A program that stands for another; its path."""
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


@contextlib.contextmanager
def session_in(folder, seconds=60, dry=False, machine=None, **members):
    """A session of a minute, in a part of so many seconds, on this machine or one that has these members; what it leaves
    goes to the folder."""
    machine = machine or types.SimpleNamespace(**{'environment': lambda: dict(os.environ)} | members)
    session = Session(machine, folder, 1, dry)
    session.part_until = time.monotonic() + seconds
    with session.begun_log('tried') as session.log_file, quiet():
        yield session


@contextlib.contextmanager
def quiet():
    """What is printed is no TAP."""
    with contextlib.redirect_stdout(sys.stderr):
        yield
