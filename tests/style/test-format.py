#!/usr/bin/env python3
"""tests/style/test-format.py SOURCE-ROOT - C is laid out as .clang-format says.

Versions of clang-format differ, so only the one that the style is written for may judge; elsewhere
the cases are skipped. Remedy for a complaint: `clang-format -i FILE`.
"""
import re
import shutil
import subprocess
import sys
import tempfile

from tap import Tap
from tree import Tree, plant


def format_complaints(clang_format, style, root, paths):
    """clang-format's own file:line, one each."""
    run = subprocess.run(
        [clang_format, '--dry-run', '--Werror', '--style=file:' + style] + paths,
        cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    found = []
    for line in run.stderr.decode('utf-8', 'replace').split('\n'):
        match = re.match(r'(\S+:\d+):\d+: (error|warning): ', line)
        if match and match.group(1) not in found:
            found.append(match.group(1))
    if run.returncode and not found:
        found = ['clang-format failed: ' + run.stderr.decode('utf-8', 'replace').strip()[:500]]
    return found


def test_format(tap, tree):
    names = ['/style/format/catches-planted', '/style/format/clang-format']
    program = shutil.which('clang-format-14') or shutil.which('clang-format')
    version = ''
    if program:
        version = subprocess.run([program, '--version'], stdout=subprocess.PIPE,
                                 check=False).stdout.decode()
    if not re.search(r'version 14\.', version):
        for name in names:
            tap.skip(name, 'clang-format 14 is not installed')
        return
    style = tree.full('.clang-format')
    with tempfile.TemporaryDirectory() as folder:
        plant(folder, {'bad.c': 'int f(void)\n{\n  return 1;\n}\n',
                       'good.c': 'int f(void) {\n    return 1;\n}\n'})
        found = format_complaints(program, style, folder, ['bad.c', 'good.c'])
        named = {complaint.split(':')[0] for complaint in found}
        tap.case(names[0], [] if named == {'bad.c'} else ['found ' + ' '.join(found)])
    paths = [path for path in tree.c_paths() if not path.endswith('.def')]
    found = format_complaints(program, style, tree.root, paths) if paths else []
    if found:
        found.append('remedy: clang-format -i FILE')
    tap.case(names[1], found)


def main(root):
    tap = Tap()
    test_format(tap, Tree(root))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
