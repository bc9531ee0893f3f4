"""tests/style/includes.py - who may include whom.

The table is the architecture: a plan that knew times, or a simulator that could see the executor,
would let a prediction lean on a measurement. Whoever changes a row changes the README's table of
rooms too, and says why in the commit.
"""
import os
import re

from tree import matches, room_of, without_comments

ANY = None

# room: (rooms it may include besides itself, system headers it may not)
_DEVICES = r'mpi\.h|cuda.*|cublas.*|cudnn.*|nccl.*|curand.*|nvml\.h|cblas.*|openblas.*|lapacke.*'
_GLIB = r'glib.*|gio/.*|gmodule.*|gobject.*|json-glib/.*'
TABLE = {
    'plan': ((), _DEVICES),
    'models': (('plan',), _DEVICES),
    'memory': ((), _DEVICES),
    'trace': (('plan',), _DEVICES),
    'plots': (('trace',), _DEVICES),
    'sim': (('plan', 'memory', 'trace', 'models'), _DEVICES),
    'kernels': ((), r'mpi\.h|nccl.*|' + _GLIB),
    'exec': (('plan', 'memory', 'trace', 'models', 'kernels'), r''),
    'cli': (('plan', 'memory', 'trace', 'models', 'sim', 'exec', 'plots'), _DEVICES),
    'bench': (ANY, r''),
    'tests': (ANY, r''),
}

# folder: (other folders of its room it may include). Files beside the folders are for all of them,
# and may include all; so may a folder that has no row.
FOLDERS = {
    'cli/calibrate': ('cli/host', 'cli/launch', 'cli/options', 'cli/source'),
    'cli/choose': ('cli/host', 'cli/options', 'cli/predict', 'cli/published', 'cli/say', 'cli/source', 'cli/what-if'),
    'cli/diagnose': ('cli/options', 'cli/predict', 'cli/say', 'cli/what-if'),
    'cli/explain': ('cli/options', 'cli/plan', 'cli/predict', 'cli/source', 'cli/what-if'),
    'cli/host': (),
    'cli/launch': ('cli/host', 'cli/source'),
    'cli/measured': (),
    'cli/options': ('cli/say',),
    'cli/plan': ('cli/say',),
    'cli/plot': ('cli/options', 'cli/predict', 'cli/published', 'cli/say', 'cli/source', 'cli/validate'),
    'cli/predict': ('cli/options', 'cli/plan', 'cli/published', 'cli/say', 'cli/source', 'cli/what-if'),
    'cli/published': ('cli/host', 'cli/published/train', 'cli/source'),
    'cli/published/train': ('cli/published', 'cli/source'),
    'cli/report': ('cli/diagnose', 'cli/options', 'cli/plot', 'cli/predict', 'cli/what-if'),
    'cli/say': (),
    'cli/source': ('cli/options',),
    'cli/validate': ('cli/published', 'cli/say'),
    'cli/what-if': ('cli/host', 'cli/options', 'cli/source'),
    'exec/comm': ('exec/watch',),
    'exec/cuda/comm': ('exec/comm', 'exec/cuda'),
    'exec/cuda/measure': ('exec/comm', 'exec/cuda', 'exec/cuda/comm', 'exec/cuda/memory'),
    'exec/cuda/memory': ('exec/cuda',),
    'exec/cuda/ops': ('exec/cuda', 'exec/cuda/comm', 'exec/cuda/memory', 'exec/offload', 'exec/traced'),
    'exec/files': (),
    'exec/offload': (),
    'exec/traced': ('exec/files',),
    'exec/watch': (),
    'kernels/cuda/attention': ('kernels/cuda',),
    'kernels/cuda/experts': ('kernels/cuda',),
    'kernels/cuda/lists': ('kernels/cuda',),
    'kernels/cuda/products': ('kernels/cuda',),
    'kernels/cuda/ranks': ('kernels/cuda', 'kernels/cuda/rows'),
    'kernels/cuda/rows': ('kernels/cuda',),
    'kernels/cuda/traced': ('kernels/cuda', 'kernels/host/traced'),
    'kernels/host/attention': ('kernels/host', 'kernels/host/products'),
    'kernels/host/lists': ('kernels/host', 'kernels/host/products'),
    'kernels/host/products': ('kernels/host',),
    'kernels/host/rows': ('kernels/host',),
    'kernels/host/traced': ('kernels/host',),
    'models/config': (),
    'models/families': ('models/layers',),
    'models/layers': (),
    'models/traced': (),
    'plan/autograd': ('plan/flavours', 'plan/graph', 'plan/op', 'plan/strategy'),
    'plan/autograd/differentiate': ('plan/autograd', 'plan/autograd/float8', 'plan/autograd/shared',
                                    'plan/graph', 'plan/op'),
    'plan/autograd/float8': ('plan/autograd', 'plan/autograd/shared', 'plan/op'),
    'plan/autograd/passes': ('plan/autograd', 'plan/autograd/differentiate', 'plan/autograd/float8',
                             'plan/autograd/shared', 'plan/op', 'plan/optimizer'),
    'plan/autograd/shared': ('plan/autograd',),
    'plan/check': ('plan/op',),
    'plan/files': (),
    'plan/graph': ('plan/op', 'plan/strategy'),
    'plan/op': (),
    'plan/strategy': ('plan/autograd/stages', 'plan/files'), # a schedule says what stages want of it
    'plan/text': ('plan/check', 'plan/files'),
    'sim/costs': (),
    'sim/device': ('sim/costs', 'sim/device/repeat'),
    'sim/device/repeat': ('sim/costs', 'sim/device'),
    'sim/links': (),
    'sim/ranks': ('sim/costs', 'sim/device', 'sim/device/repeat', 'sim/links'),
}

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]*)"|<([^>\n]*)>)', re.MULTILINE)


def _may_see(folder, other):
    return other in (folder, room_of(other + '/')) or other in FOLDERS.get(folder, (other,))


def _is_made(tree, quoted):
    """names.h by names.h.py beside it, when all is built."""
    return os.path.exists(tree.full(quoted + '.py'))


def check_includes(tree):
    """Complaints, file:line first."""
    complaints = []
    for path in tree.c_paths():
        room = room_of(path)
        if room not in TABLE:
            complaints.append(path + ':1: C outside the rooms ' + ' '.join(TABLE))
            continue
        allowed, banned = TABLE[room]
        for line, match in matches(without_comments(tree.text(path) or '', True), _INCLUDE):
            quoted, system = match.groups()
            where = '%s:%d: ' % (path, line)
            if quoted is None:
                if banned and re.fullmatch(banned, system):
                    complaints.append(where + room + '/ may not include <' + system + '>')
                continue
            target = room_of(quoted)
            if target not in TABLE:
                complaints.append(where + '"' + quoted + '" is not written from the root')
            elif allowed is not ANY and target != room and target not in allowed:
                complaints.append(where + room + '/ may not include ' + target + '/')
            elif target == room and not _may_see(os.path.dirname(path), os.path.dirname(quoted)):
                complaints.append(where + os.path.dirname(path) + '/ may not include '
                                  + os.path.dirname(quoted) + '/')
            elif not os.path.exists(tree.full(quoted)) and not _is_made(tree, quoted):
                complaints.append(where + '"' + quoted + '" does not exist')
    return complaints
