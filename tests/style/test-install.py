#!/usr/bin/env python3
"""tests/style/test-install.py SOURCE-ROOT BUILD-ROOT DATA-DIR MAN-DIR PAGE... - data files and manual pages
reach an installation.

Installs only what is tagged `data` or `man`, into a folder of its own. A network that a user adds must be
found once installed, without a line in a build file.
"""
import os
import shutil
import subprocess
import sys
import tempfile

from tap import Tap

# folder in the source, installed as, endings that belong there
FOLDERS = [
    ('models/networks', 'networks', ('.ini', '.md')),
    ('models/clusters', 'clusters', ('.ini', '.md')),
    ('plots/scripts', 'plots', ('.gp',)),
]


def missing(source, installed, ending):
    """Files of source that the installation lacks."""
    if not os.path.isdir(source):
        return []
    there = os.listdir(installed) if os.path.isdir(installed) else []
    return [name for name in sorted(os.listdir(source))
            if name.endswith(ending) and name not in there]


def strangers(installed, endings):
    if not os.path.isdir(installed):
        return []
    return [name for name in sorted(os.listdir(installed)) if not name.endswith(endings)]


def main(source_root, build_root, data_dir, man_dir, *pages):
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, 'a'))
        os.makedirs(os.path.join(folder, 'b'))
        for path in ('a/one.ini', 'a/two.ini', 'b/one.ini', 'b/main.c'):
            with open(os.path.join(folder, path), 'w', encoding='utf-8'):
                pass
        a, b = os.path.join(folder, 'a'), os.path.join(folder, 'b')
        fine = missing(a, b, '.ini') == ['two.ini'] and strangers(b, ('.ini',)) == ['main.c']
        tap.case('/style/install/catches-planted', [] if fine else ['the comparison is blind'])

    if not shutil.which('meson'):
        tap.skip('/style/install/data', 'meson is not in PATH')
        return tap.finish()
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            ['meson', 'install', '-C', build_root, '--no-rebuild', '--tags', 'data,man', '--destdir',
             folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        complaints = []
        if run.returncode:
            complaints = run.stdout.decode('utf-8', 'replace').strip().split('\n')[-10:]
        for source, name, endings in FOLDERS:
            installed = os.path.join(folder, data_dir.lstrip('/'), name)
            lost = missing(os.path.join(source_root, source), installed, endings[0])
            complaints += [source + '/' + file + ': not installed' for file in lost]
            complaints += [source + '/' + file + ': installed, though no data'
                           for file in strangers(installed, endings)]
        tap.case('/style/install/data', complaints)
        lost = [page for page in pages if not os.path.exists(
            os.path.join(folder, man_dir.lstrip('/'), 'man' + page[-1], os.path.basename(page)))]
        tap.case('/style/install/man', [page + ': not installed' for page in lost])
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
