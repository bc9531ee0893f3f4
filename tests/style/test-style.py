#!/usr/bin/env python3
"""tests/style/test-style.py SOURCE-ROOT - holds the house rules, and shows that each can break.

Each rule is first tried on a small planted tree: it must name exactly the bad places and leave the
good ones alone. Only then does its silence about this repository mean anything.
"""
import os
import re
import sys
import tempfile

from circles import check_circles
from dims import check_dims
from includes import check_includes
from pages import check_links
from rules import check_headers, check_lines, check_paths, check_readmes, check_words
from tap import Tap
from tree import Tree, plant

# What the planted files hold is put together from pieces: this file obeys the rules as well.
WORK = '/wo' 'rk/'
TMP = '/t' 'mp/'
UNFINISHED = 'TO' 'DO'

# name, check, {path: text}, places that must be named
PLANTED = [
    ('includes/rooms', check_includes, {
        'sim/a.c': '#include "plan/b.h"\n#include "exec/c.h"\n#include "sim/a.h"\n',
        'sim/a.h': '/* #include "exec/c.h" */\n',
        'exec/c.h': '#include "sim/a.h"\n',
        'plan/b.h': '#include <glib.h>\n#include <mpi.h>\n',
        'memory/m.c': '#include "plan/b.h"\n',
        'kernels/k.c': '#include <glib.h>\n#include <cblas.h>\n#include "kernels/k.h"\n',
        'kernels/k.h': '\n',
        'cli/main.c': '#include "sim/a.h"\n#include "kernels/k.h"\n',
        'tests/sim/t.c': '#include "sim/a.h"\n#include "exec/c.h"\n',
    }, ['cli/main.c:2', 'exec/c.h:1', 'kernels/k.c:1', 'memory/m.c:1', 'plan/b.h:2', 'sim/a.c:2']),
    ('includes/folders', check_includes, {
        'sim/t.h': '\n',
        'sim/p.c': '#include "sim/costs/c.h"\n#include "sim/ranks/r.h"\n',
        'sim/costs/c.h': '#include "sim/t.h"\n#include "sim/ranks/r.h"\n#include "plan/text/t.h"\n',
        'sim/costs/c.c': '#include "sim/costs/c.h"\n',
        'sim/ranks/r.h': '#include "sim/costs/c.h"\n',
        'plan/text/t.h': '\n',
    }, ['sim/costs/c.h:2']),
    ('includes/from-the-root', check_includes, {
        'plan/a.c': '#include "b.h"\n#include "plan/b.h"\n#include "../sim/x.h"\n'
                    '#include "plan/gone.h"\n',
        'plan/b.h': '\n',
        'stray.c': '\n',
    }, ['plan/a.c:1', 'plan/a.c:3', 'plan/a.c:4', 'stray.c:1']),
    ('dims/several-ops', check_dims, {
        'plan/op/ops.def': 'OP(A, "a", MEMORY, "x > y", "rows cols", "")\n'
                           'OP(B, "b", MEMORY, "x > y", "rows width", "")\n',
        'sim/a.c': 'static int rows(Op *op) {\n    return op->dims[A_ROWS];\n}\n'
                   'static int cols(Op *op) {\n    return op->dims[A_COLS];\n}\n'
                   'static int either(Op *op) {\n    return op->kind == PLAN_OP_A ? op->dims[A_COLS] : 0;\n}\n'
                   'int f(Op *op) {\n    switch (op->kind) {\n    case PLAN_OP_A:\n    case PLAN_OP_B:\n'
                   '        return rows(op) + cols(op) + either(op);\n    case PLAN_OP_C:\n'
                   '        return op->dims[A_COLS];\n    }\n}\n',
        'sim/b.c': 'int g(Op *op) {\n    switch (op->kind) {\n    case PLAN_OP_A:\n        return op->dims[A_COLS];\n'
                   '    case PLAN_OP_B:\n        return op->dims[A_COLS];\n    default:\n'
                   '        return op->dims[A_COLS];\n    }\n}\n',
    }, ['sim/a.c:5', 'sim/b.c:6']),
    ('circles/calls', check_circles, {
        'sim/a.c': 'int sim_a(int x) {\n    return sim_b(x);\n}\n',
        'sim/b.c': '/* sim_a() */\nint sim_b(int x) {\n    return other_x(x) + sim_d(x);\n}\n',
        'sim/c.c': 'int sim_c(int x) {\n    return sim_a(x) + sim_e(x);\n}\n',
        'sim/d.c': 'static int sim_c(int x) {\n    return x;\n}\nint sim_d(int x) {\n    return sim_c(x);\n}\n',
        'sim/e.cu': 'int sim_e(int x) {\n    return "sim_c" ? sim_f(x) : 0;\n}\n',
        'sim/f.c': 'int sim_f(\n    int x) {\n    return sim_c(x);\n}\n',
    }, ['sim/c.c:1', 'sim/e.cu:1', 'sim/f.c:1']),
    ('words/calls', check_words, {
        'sim/a.c': 'x = malloc(3);\n/* malloc(3) */ "free(x)";\ntable->free(x); t.free(x);\n'
                   'g_free(x);\n  free (x);\nsprintf(a, "");\nsnprintf(a, 1, "");\nrand();\n',
        'kernels/a.c': '/* Pages, so that loads are aligned. */\np = aligned_alloc(64, n);\nfree(p);\n',
        'kernels/b.c': 'free(p);\n\n\n\np = calloc(1, 2);\n',
        'kernels/c.c': 'int x;\nint y;\nint z;\nint w;\np = aligned_alloc(64, n);\n',
    }, ['kernels/b.c:1', 'kernels/b.c:5', 'kernels/c.c:5', 'sim/a.c:1', 'sim/a.c:5', 'sim/a.c:6',
        'sim/a.c:8']),
    ('words/unfinished', check_words, {
        'sim/a.c': 'int a;\n/* ' + UNFINISHED + ': later */\n',
        'sim/b.c': 'char *name = "foreshard-XXXXXX";\n',
    }, ['sim/a.c:2']),
    ('paths/machine', check_paths, {
        'sim/a.c': 'open("' + TMP + 'x");\n',
        'README.md': 'fine\nsee ' + WORK + 'main\n',
        'run.sh': 'cd ' + TMP + 'x\ncd "${TMPDIR:-/var/tmp}/x"\ncat ../sha' 'red/x\n',
        'ok.md': 'the mean/work/rest of it, exec/work/x\n',
    }, ['README.md:2', 'run.sh:3', 'sim/a.c:1']),
    ('lines/width', check_lines, {
        'sim/a.c': '/* ' + 'x' * 97 + '\n' + 'x' * 101 + '\n' + 'é' * 100 + '\n\tint x;\nint y; \n',
        'sim/b.c': 'int x;',
        'sim/c.def': 'x' * 101 + '\n',
    }, ['sim/a.c:2', 'sim/a.c:4', 'sim/a.c:5', 'sim/b.c:1']),
    ('headers/opening', check_headers, {
        'sim/a.h': '/* sim/a.h - a thing. */\n#pragma once\n',
        'sim/b.h': '#pragma once\n/* sim/b.h - a thing. */\n',
        'sim/c.h': '/* sim/a.h - copied. */\n#pragma once\n',
        'sim/d.h': '/* sim/d.h - a thing. */\n',
        'sim/e.c': 'int x;\n',
    }, ['sim/b.h:1', 'sim/c.h:1', 'sim/d.h:1']),
    ('readmes/rooms', check_readmes, {
        'sim/a.c': '\n',
        'exec/meson.build': '\n',
        'plan/README.md': 'x\n',
        'plan/a.c': '\n',
    }, ['sim/README.md:1']),
    ('pages/links', check_links, {
        'README.md': '# A, *b*: c?\n[x](#a-b-c) [y](docs/a.md#d) ![z](docs/z.png) `docs/a.md`\n'
                     '[x](#d)\n[y](docs/a.md#e)\n![z](none.png)\n`docs/none.md` [w](https://none.org/x)\n',
        'docs/a.md': '## d\n`a.md` `README.md` [up](../README.md)\n`b.md`\n',
        'docs/z.png': 'x',
    }, ['README.md:3', 'README.md:4', 'README.md:5', 'README.md:6', 'docs/a.md:3']),
]


def places(complaints):
    return sorted({re.match(r'[^:]+:\d+', complaint).group(0) for complaint in complaints})


def test_planted(tap):
    for name, check, files, expected in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            found = places(check(plant(folder, files)))
        complaints = ['missed ' + place for place in expected if place not in found]
        complaints += ['wrongly named ' + place for place in found if place not in expected]
        tap.case('/style/' + name + '/catches-planted', complaints)
    with tempfile.TemporaryDirectory() as folder:
        os.symlink('/etc', os.path.join(folder, 'away'))
        os.symlink('../outside', os.path.join(folder, 'up'))
        plant(folder, {'here': 'x\n'})
        os.symlink('here', os.path.join(folder, 'fine'))
        found = places(check_paths(Tree(folder)))
        tap.case('/style/paths/links/catches-planted',
                 [] if found == ['away:1', 'up:1'] else ['found ' + ' '.join(found)])


def main(root):
    tap = Tap()
    test_planted(tap)
    tree = Tree(root)
    tap.case('/style/tree/is-found', [] if 'meson.build' in tree.paths else ['no meson.build'])
    tap.case('/style/includes/table', check_includes(tree))
    tap.case('/style/circles/calls', check_circles(tree))
    tap.case('/style/dims/several-ops', check_dims(tree))
    tap.case('/style/words/banned', check_words(tree))
    tap.case('/style/paths/inside', check_paths(tree))
    tap.case('/style/lines/width', check_lines(tree))
    tap.case('/style/headers/opening', check_headers(tree))
    tap.case('/style/readmes/rooms', check_readmes(tree))
    tap.case('/style/pages/links', check_links(tree))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
