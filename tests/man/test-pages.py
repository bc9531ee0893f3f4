"""tests/man/test-pages.py FORESHARD MAKE-PAGE PAGE... - every command has a page, every option of its
--help-all an entry (those of a strategy in foreshard-strategy.7), every key of predict --json a word, groff and
mandoc have no complaint, and a help that lacks its exit status is refused."""
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from tap import Tap

LOCALE = {**os.environ, 'LC_ALL': 'C.UTF-8'}


def said(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, encoding='utf-8', env=LOCALE).stdout


def options(text):
    """Every --word of a help, by its group: of a strategy, or not."""
    group, found = '', {True: set(), False: set()}
    for line in text.split('\n'):
        if re.match(r'\S.*:$', line):
            group = line
        match = re.match(r'  (?:-\w, )?(--[\w-]+)', line)
        if match and not group.startswith('Example'):
            found[group.startswith('Strategy options')].add(match.group(1))
    return found


def entries(page):
    """The tags of a page that are options."""
    tags = re.findall(r'^\.TP\n(\\fB.*)$', page, re.MULTILINE)
    return {name for tag in tags for name in re.findall(r'--[\w-]+', tag.replace('\\-', '-'))}


def lint(path):
    """What groff and mandoc, whichever are here, say of a page."""
    if shutil.which('groff'):
        done = subprocess.run(['groff', '-ww', '-man', '-Tutf8', '-z', path], capture_output=True, text=True, check=False)
        yield from done.stderr.splitlines()
    if shutil.which('mandoc'):
        done = subprocess.run(['mandoc', '-Tlint', '-Wwarning', path], capture_output=True, text=True, check=False)
        yield from (line for line in done.stdout.splitlines() if 'missing date' not in line)


def keys(program):
    """Of the object that predict --json prints, for plans that fit, do not fit, and cannot be computed."""
    of_ranks = ('gpt-toy', '-n', '2', '--cluster', 'a100-node', '--every-rank')
    too_large = ('gpt-175b', '-n', '8', '--cluster', 'a100-node')
    no_bf16 = ('gpt-toy', '-n', '2', '--cluster', 'v100-dgx', '--param-dtype', 'bf16')
    found = set()
    for words in (of_ranks, too_large, no_bf16):
        figures = json.loads(said(program, 'predict', *words, '--json'))
        found |= set(figures) | set(figures.get('every_rank', ())) | set(figures.get('oom', ()))
    return found


def refused(make_page, folder, text, words):
    """Whether the generator refuses a command with this help."""
    program = os.path.join(folder, 'pretender')
    with open(program, 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\nif [ "$1" = --help ]; then\ncat <<E\nCommands:\n  plan  plans\n\nE\nelse\ncat <<E\n%s\nE\nfi\n'
                   % text)
    os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
    done = subprocess.run([sys.executable, '-B', make_page, 'foreshard-plan', words, '1', program],
                          capture_output=True, text=True, check=False)
    return done.returncode != 0 and 'lacks its' in done.stderr


def planted(make_page):
    whole = 'Usage:\n  foreshard plan [OPTION…] X\n\nPlans.\n\nHelp Options:\n  -h, --help  Help\n\n' \
            'Examples:\n  foreshard plan x\n\nExit status: 0 done.'
    with tempfile.TemporaryDirectory() as folder:
        words = os.path.join(folder, 'words')
        with open(words, 'w', encoding='utf-8'):
            pass
        if refused(make_page, folder, whole, words):
            yield 'a whole help is refused'
        for part in ('Examples:\n  foreshard plan x\n\n', '\n\nExit status: 0 done.', '\n\nPlans.'):
            if not refused(make_page, folder, whole.replace(part, ''), words):
                yield 'a help without %r is taken' % part


def main():
    program, make_page, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
    tap = Tap()
    pages = {}
    for path in paths:
        with open(path, encoding='utf-8') as file:
            pages[os.path.basename(path)] = file.read()
    help_text = said(program, '--help').split('Commands:\n')[1].split('\n\n')[0]
    commands = re.findall(r'^  (\S+)', help_text, re.MULTILINE)
    expected = {'foreshard.1', 'foreshard-strategy.7'} | {'foreshard-%s.1' % name for name in commands}
    tap.case('/man/pages/one a command', sorted(expected ^ set(pages)))
    strategy = entries(pages['foreshard-strategy.7'])
    for command in commands:
        found = options(said(program, command, '--help-all'))
        has = entries(pages['foreshard-%s.1' % command])
        wrong = sorted(found[False] ^ has) + sorted(found[True] ^ strategy if found[True] else ())
        tap.case('/man/pages/every option of %s' % command, wrong if found[False] else ['no option was found'])
    known = set(re.findall(r'\w+', pages['foreshard-predict.1']))
    tap.case('/man/pages/every key of predict --json', sorted(keys(program) - known))
    unnamed = [name for name in commands if 'foreshard\\-%s (1)' % name not in pages['foreshard.1']]
    tap.case('/man/pages/the first page names every command', unnamed)
    if shutil.which('groff') or shutil.which('mandoc'):
        tap.case('/man/pages/groff has no complaint', [line for path in paths for line in lint(path)])
    else:
        tap.skip('/man/pages/groff has no complaint', 'neither groff nor mandoc is here')
    tap.case('/man/pages/a help that lacks a part is refused', list(planted(make_page)))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
