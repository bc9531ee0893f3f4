"""plan/op/names.h.py - the dims, operands and attributes of each op as constants, for C.

names.h.py ops.def collectives.def > names.h: of a row
    OP(LINEAR, "linear", MATMUL, "x[m*k] w[n*k] b[n]? > y[m*n]", "m n k", "")
it makes LINEAR_M, LINEAR_N and LINEAR_K, places among its dims, and LINEAR_X, LINEAR_W, LINEAR_B and
LINEAR_Y, the numbers of its slots. They are of two types, and attributes of a third, so that a
compiler says where one stands for another.
"""
import re
import sys

TYPES = ('PlanDim', 'PlanSlotNumber', 'PlanAttr')
HEAD = '''/* Made by plan/op/names.h.py of ops.def and collectives.def: OP_NAME for each name in a row. Up to an op's
 * first list its operands lie by the numbers of their slots. */
#pragma once'''

_ROW = re.compile(r'^(\w*OP|\w*COLLECTIVE)\((\w+),(.*)\)$', re.MULTILINE)
_DIMS = re.compile(r'^#define (\w+)_DIMS +"([^"]*)"$', re.MULTILINE)
_TEXT = re.compile(r'"([^"]*)"')


def rows_of(path):
    """(id, (dims, slots, attributes)) of each row, each of them a list of names."""
    with open(path, encoding='utf-8') as source:
        text = source.read()
    dims_of = dict(_DIMS.findall(text)) # of collectives, whose rows do not say them
    for group, dims in dims_of.items():
        yield group, (dims.split(), [], _attributes_of(group))
    for group, op, rest in _ROW.findall(text):
        texts = _TEXT.findall(rest)
        if group in dims_of:
            texts += [dims_of[group], ' '.join(_attributes_of(group))]
        _, operands, dims, attributes = texts
        slots = [re.match(r'\w+', word).group() for word in operands.split() if word not in '>&']
        yield op, (dims.split(), slots, attributes.split())


def _attributes_of(group):
    return ['average'] if group == 'COLLECTIVE' else [] # as op.c gives them


def constants_of(op, columns, column):
    """An attribute that has an operand's name ends in _ATTR."""
    for place, word in enumerate(columns[column]):
        is_taken = any(word in columns[before] for before in range(column))
        yield '    %s_%s%s = %d,' % (op, word.upper(), '_ATTR' if is_taken else '', place)


def main(paths):
    rows = [row for path in paths for row in rows_of(path)]
    print(HEAD)
    for column, name in enumerate(TYPES):
        print('\ntypedef enum {')
        for op, columns in rows:
            for line in constants_of(op, columns, column):
                print(line)
        print('} %s;' % name)


if __name__ == '__main__':
    main(sys.argv[1:])
