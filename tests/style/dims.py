"""tests/style/dims.py - a rule on names of dims: what serves several ops means one dim in each.

plan/op/names.h has a constant for each dim of each op, dims[LINEAR_K]. A function that a switch
calls for several ops must name the dim after one of them. The compiler cannot know that the others
have the same dim in that place; this rule does. It follows each switch over ops: below
`case PLAN_OP_A: case PLAN_OP_B:` a constant of a dim, and one in a function that is called there,
stands for A and for B, so both must have a dim of that name in that place. A constant that is
behind a test of the op (its function names PLAN_OP_A) is left alone, and so is what is written
([LINEAR_K] = 3). What ops a `default` or a group of ops.def stands for is not known, and nothing is asked of it.
"""
import importlib.util
import os
import re
from collections import defaultdict

from tree import without_comments

_ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
_TABLES = ('plan/op/ops.def', 'plan/op/collectives.def')
_FUNCTION = re.compile(r'^(static )?(?:\w+ )+\**(\w+)\([^;{}]*?\) \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
_TOKEN = re.compile(r'\bcase PLAN_OP_(?P<op>\w+):'
                    r'|\b(?P<group>\w+_OPS)\(EXEC_CASE\)'
                    r'|(?P<other>\bcase [^:\n]+:|\bdefault:|\bPLAN_OP_##)'
                    r'|(?P<brace>[{}])|\b(?P<word>[A-Za-z_]\w*)\b')
_GROUP = re.compile(r'^#define (\w+_OPS)\(X\)((?:\s*\\?\s*X\(\w+\))+)', re.MULTILINE)
# Where a test other than of the op itself keeps others out.
_GUARDED = {('exec/slices.c', 'HOST_INIT_NORMAL_SLOT'), # whether the host initializes
            ('exec/first-values.c', 'HOST_INIT_NIBBLES_CODE'),
            ('exec/first-values.c', 'HOST_INIT_NIBBLES_MADE')}


def _rows_of(path):
    spec = importlib.util.spec_from_file_location('names', os.path.join(_ROOT, 'plan/op/names.h.py'))
    names = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(names)
    return names.rows_of(path)


class _Function:
    def __init__(self, path, line, name, body):
        self.path, self.line, self.name, self.body = path, line, name, body
        self.served = set()  # ops that callers' switches send here

    def words(self, groups):
        """(ops, word, offset) of each word: ops that the switch around it has come to there, None
        outside of any."""
        switches = []  # [depth, ops, whether the last thing was a label]
        depth, opens = 0, False
        for token in _TOKEN.finditer(self.body):
            if token.group('brace') == '{':
                depth += 1
                if opens:
                    switches.append([depth, set(), True])
                opens = False
            elif token.group('brace') == '}':
                if switches and switches[-1][0] == depth:
                    switches.pop()
                depth -= 1
            elif token.group('word') == 'switch':
                opens = True
            elif token.group('word'):
                known = [ops for _, ops, _ in switches if ops]
                if switches and not opens:
                    switches[-1][2] = False
                yield known[-1] if known else None, token.group('word'), token.start()
            elif switches:
                if not switches[-1][2]:
                    switches[-1][1] = set()
                switches[-1][1] = switches[-1][1] | groups.get(token.group('group'),
                                                               {token.group('op') or '?'})
                switches[-1][2] = True

    def has_behind(self, offset, word, pattern):
        return re.match(pattern, self.body[offset + len(word):])


def _functions_of(tree):
    """By (path, name) where they are static, else by (None, name)."""
    functions = {}
    for path in tree.c_paths():
        if path.startswith('tests/') or not path.endswith(('.c', '.h')):
            continue
        text = without_comments(tree.text(path) or '', False)
        for match in _FUNCTION.finditer(text):
            where = path if match.group(1) else None
            line = text.count('\n', 0, match.start(3)) + 1
            functions[where, match.group(2)] = _Function(path, line, match.group(2), match.group(3))
    return functions


def _groups_of(tree):
    """The ops of each macro that exec/op-groups.h lists them in."""
    text = tree.text('exec/op-groups.h') or ''
    return {name: set(re.findall(r'X\((\w+)\)', ops)) for name, ops in _GROUP.findall(text)}


def _serve(functions, groups, known_ops):
    calls = []
    for function in functions.values():
        for ops, word, offset in function.words(groups):
            callee = functions.get((function.path, word)) or functions.get((None, word))
            if callee and callee is not function and function.has_behind(offset, word, r'\('):
                calls.append((function, ops, callee))
    grows = True
    while grows:
        grows = False
        for caller, ops, callee in calls:
            new = (caller.served if ops is None else ops & known_ops) - callee.served
            callee.served |= new
            grows = grows or bool(new)


def check_dims(tree):
    dims = {op: [name.upper() for name in columns[0]]
            for path in _TABLES if path in tree.paths
            for op, columns in _rows_of(tree.full(path))}
    constants = {'%s_%s' % (op, name): (op, place)
                 for op, names in dims.items() for place, name in enumerate(names)}
    functions = _functions_of(tree)
    groups = _groups_of(tree)
    _serve(functions, groups, set(dims))
    complaints = []
    for function in functions.values():
        for ops, word, offset in function.words(groups):
            if word not in constants or (function.path, word) in _GUARDED:
                continue
            op, place = constants[word]
            is_written = function.has_behind(offset, word, r'\] = ')
            is_tested = ops is None and re.search(r'\bPLAN_OP_%s\b' % op, function.body)
            if is_written or is_tested:
                continue
            for other in sorted((function.served if ops is None else ops) & set(dims)):
                if dims[other][place:place + 1] != dims[op][place:place + 1]:
                    line = function.line + function.body.count('\n', 0, offset)
                    complaints.append('%s:%d: %s, but %s has another dim there'
                                      % (function.path, line, word, other))
    return complaints
