"""tests/style/tree.py - the files that the style rules read, and C text without its comments.

A tree is a folder and the paths in it that belong to the project: what git tracks or would track,
so that build folders and traces are left alone. Where git is missing or refuses, a walk that skips
the same folders stands in for it.
"""
import os
import re
import subprocess

C_ENDINGS = ('.c', '.h', '.cu', '.cuh', '.def')
LARGEST_TEXT = 4 << 20


class Tree:
    def __init__(self, root):
        self.root = os.path.realpath(root)
        self.paths = sorted(path for path in self._list() if os.path.lexists(self.full(path)))

    def full(self, path):
        return os.path.join(self.root, path)

    def _list(self):
        if os.path.exists(self.full('.git')):
            git = subprocess.run(
                ['git', '-C', self.root, 'ls-files', '-z', '--cached', '--others',
                 '--exclude-standard'],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False) if _has_git() else None
            if git is not None and git.returncode == 0:
                return git.stdout.decode('utf-8', 'surrogateescape').split('\0')[:-1]
        paths = []
        for folder, folders, files in os.walk(self.root):
            top = folder == self.root
            folders[:] = [name for name in folders
                          if name not in ('.git', '__pycache__')
                          and not (top and (name in ('build', 'demo') or name.startswith('build-')))
                          and not os.path.exists(os.path.join(folder, name, 'meson-private'))]
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            for name in files + links:
                if not name.endswith('.pyc'):
                    paths.append(os.path.relpath(os.path.join(folder, name), self.root))
        return paths

    def c_paths(self):
        return [path for path in self.paths
                if path.endswith(C_ENDINGS) and not os.path.islink(self.full(path))]

    def text(self, path):
        """None for what is not text: links, folders, binaries, great tables."""
        full = self.full(path)
        if os.path.islink(full) or not os.path.isfile(full):
            return None
        if os.path.getsize(full) > LARGEST_TEXT:
            return None
        with open(full, 'rb') as file:
            data = file.read()
        return None if b'\0' in data else data.decode('utf-8', 'replace')


def _has_git():
    try:
        subprocess.run(['git', '--version'], stdout=subprocess.DEVNULL, check=False)
        return True
    except OSError:
        return False


def plant(folder, files):
    """A small tree to try a rule on: files is {path: text}."""
    for path, text in files.items():
        full = os.path.join(folder, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, 'w', encoding='utf-8') as file:
            file.write(text)
    return Tree(folder)


def room_of(path):
    return path.split('/')[0] if '/' in path else ''


_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def without_comments(text, keep_strings):
    """The same lines, with comments (and strings, unless kept) blanked, so that line numbers
    stay true."""
    def blank(match):
        token = match.group(0)
        if token.startswith('/'):
            return ' ' + '\n' * token.count('\n')
        return token if keep_strings else '""'
    return _TOKEN.sub(blank, text)


def matches(text, pattern):
    """(line number, match) of each place."""
    for match in pattern.finditer(text):
        yield text.count('\n', 0, match.start()) + 1, match
