"""tests/style/rules.py - rules on the text of files: words, paths, lines, headers, READMEs.

Each check takes a Tree and returns complaints, file:line first. The strings that must not occur
are put together from pieces here, for this file is read by its own rules.
"""
import os
import re

from includes import TABLE
from tree import matches, room_of, without_comments

# Memory comes from GLib, numbers from kernels/host/random.h, text from g_strdup_printf() and kin.
# A member of a table of functions may bear such a name: table->free() is no call of free().
_WORDS = ('malloc', 'free', 'calloc', 'realloc', 'sprintf', 'strcpy', 'strcat', 'strtok', 'rand',
          'gets')
_CALL = re.compile(r'(?<![\w.>])(' + '|'.join(_WORDS) + r')\s*\(')
_ALIGNED = re.compile(r'(?<![\w.>])(aligned_alloc)\s*\(')
_UNFINISHED = re.compile(r'\b(TO' r'DO|FIX' r'ME|X' r'XX)\b')


def check_words(tree):
    """kernels/ knows no GLib, so it may take aligned_alloc() under a comment that says why, and in
    such a file free() what it took."""
    complaints = []
    for path in tree.c_paths():
        raw = tree.text(path) or ''
        code = without_comments(raw, False)
        lines = raw.split('\n')
        kernel = room_of(path) == 'kernels'
        aligned = list(matches(code, _ALIGNED))
        for line, match in matches(code, _CALL):
            if kernel and aligned and match.group(1) == 'free':
                continue
            complaints.append('%s:%d: %s()' % (path, line, match.group(1)))
        for line, _ in aligned:
            documented = any('*/' in text or '/*' in text for text in lines[max(0, line - 4):line])
            if not kernel or not documented:
                complaints.append('%s:%d: aligned_alloc() is for kernels/, below a comment saying why'
                                  % (path, line))
        for line, match in matches(raw, _UNFINISHED):
            complaints.append('%s:%d: %s' % (path, line, match.group(1)))
    return complaints


# A path of one machine means nothing on another. Scripts and build files may name the temporary
# folder that every system has; C makes its own with g_dir_make_tmp(), and documents need none.
_MACHINE = re.compile(r'(?<![\w.)}])/(?:wo' r'rk|ro' r'ot|ho' r'me)/|\.\./sha' r'red')
_TEMPORARY = re.compile(r'(?<![\w.)}])/t' r'mp/')


def check_paths(tree):
    complaints = []
    for path in tree.paths:
        full = tree.full(path)
        if os.path.islink(full):
            target = os.path.realpath(full)
            if os.path.isabs(os.readlink(full)) or not target.startswith(tree.root + os.sep):
                complaints.append(path + ':1: a link out of the repository')
            continue
        text = tree.text(path)
        if text is None:
            continue
        for line, match in matches(text, _MACHINE):
            complaints.append('%s:%d: names %s' % (path, line, match.group(0)))
        if path.endswith(('.c', '.h', '.cu', '.cuh', '.def', '.md')):
            for line, match in matches(text, _TEMPORARY):
                complaints.append('%s:%d: names %s' % (path, line, match.group(0)))
    return complaints


WIDEST = 100


def check_lines(tree):
    """Columns are characters, not bytes; tabs would make them a matter of taste. A .def file is a
    table, whose rows are as long as they are."""
    complaints = []
    for path in tree.c_paths():
        text = tree.text(path) or ''
        for number, line in enumerate(text.split('\n'), 1):
            if len(line) > WIDEST and not path.endswith('.def'):
                complaints.append('%s:%d: %d columns' % (path, number, len(line)))
            if '\t' in line:
                complaints.append('%s:%d: a tab' % (path, number))
            if line.endswith((' ', '\r')):
                complaints.append('%s:%d: blanks at the end' % (path, number))
        if text and not text.endswith('\n'):
            complaints.append('%s:%d: no newline at the end' % (path, text.count('\n') + 1))
    return complaints


def check_headers(tree):
    """A header opens by saying what it is: its own path, a dash, a sentence."""
    complaints = []
    for path in tree.c_paths():
        if path.endswith(('.h', '.cuh', '.def')):
            first = (tree.text(path) or '').split('\n', 1)[0]
            if not re.match(r'/\* ' + re.escape(path) + r' - \S', first):
                complaints.append(path + ':1: does not open with "/* ' + path + ' - what it is"')
        if path.endswith(('.h', '.cuh')) and '#pragma once' not in (tree.text(path) or ''):
            complaints.append(path + ':1: no #pragma once')
    return complaints


def check_readmes(tree):
    """Each room that holds more than its build file says what it is for."""
    complaints = []
    for room in TABLE:
        inside = [path for path in tree.paths if room_of(path) == room]
        furnished = [path for path in inside if os.path.basename(path) != 'meson.build']
        if furnished and room + '/README.md' not in inside:
            complaints.append(room + '/README.md:1: missing')
    return complaints
