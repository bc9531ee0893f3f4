"""tests/cli/test-cluster-changes.py FORESHARD SOURCE - NAME:NODES:SECTION.KEY=VALUE is a copy of the cluster's
file with these numbers in it, in every command that takes a cluster."""
import csv
import os
import re
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from runner import Runner, flat
from tap import Tap

XL = ['gpt2-xl', '-n', '16', '--cluster']
NIC, MEMORY = 'inter_node.nic_gb_per_s', 'device.memory_gb_per_s'
REFUSED = [
    (NIC + '=-3', 'cluster dgx-h100: inter_node.nic_gb_per_s = -3 is out of bounds'),
    (NIC + '=fast', "'fast' is no number"),
    ('inter.nic=3', "no number 'inter.nic' (SECTION.KEY"),
    ('device.memory_bytes=1.5', 'is no whole number'),
    ('device.memory_bytes=80GB', 'write it out: 80000000000, or 85899345920 (GB may be either)'),
    ('device.memory_bytes=96GiB', 'write it out: 103079215104'),
    ('device.memory_gb=80', 'did you mean device.memory_bytes?'),
    ('device.outside_allocator_bytes=999999999999', 'leaves nothing of memory_bytes'),
    (NIC + '=0x', "'0x' is no number"),
    (NIC + '=-2x', "'-2x' is no number"),
    (NIC + '=2x3', "'2x3' is no number"),
    ('inter.nic=2x', "no number 'inter.nic' (SECTION.KEY"),
    ('device.cores=2x', 'its file has no device.cores of which 2x could be; give the number itself'),
    ('topology.nodes=2x', 'write :NODES behind its name'),
    ('topology.nodes=3', 'write :NODES behind its name'),
    ('0', 'give a number of nodes'),
    ('2:3', 'two numbers of nodes stand behind its name'),
    ('x', "behind its name stand :NODES or :SECTION.KEY=VALUE, not ':x'"),
]


def edited(run, numbers):
    """A copy of dgx-h100 with other numbers, by hand; its path."""
    _, text, _ = run('list', 'dgx-h100')
    for key, value in numbers.items():
        text, n = re.subn(r'(?m)^%s = .*$' % key, '%s = %s' % (key, value), text)
        if n != 1:
            raise RuntimeError('%s stands %d times in the file' % (key, n))
    with open(os.path.join(run.folder, 'edited.ini'), 'w', encoding='utf-8') as file:
        file.write(text)
    return './edited.ini'


def check_copies(run):
    said = []
    plain = run.json('predict', *XL, 'dgx-h100')
    for change, numbers in (
            (':%s=3' % NIC, {'nic_gb_per_s': 3}),
            (':64:%s=3:%s=1000' % (NIC, MEMORY), {'nodes': 64, 'nic_gb_per_s': 3, 'memory_gb_per_s': 1000})):
        changed = run.json('predict', *XL, 'dgx-h100' + change)
        copied = run.json('predict', *XL, edited(run, numbers))
        of_copy = run.json('predict', *XL, './edited.ini:%s=3' % NIC)
        if changed['cluster'] != 'dgx-h100' + change or changed['step_ms'] <= plain['step_ms']:
            said.append('%s takes %s ms, unchanged %s' % (changed['cluster'], changed['step_ms'],
                                                          plain['step_ms']))
        for other in (copied, of_copy):
            other['cluster'] = changed['cluster']
            if other != changed:
                said.append('%s is not as the file edited by hand' % change)
    return said


def check_times(run):
    """0.5x is half of the file's number, and is called what that is; after another change, of that."""
    _, text, _ = run('list', 'dgx-h100')
    numbers = {key: re.search(r'(?m)^%s = (.*)$' % key, text).group(1) for key in ('nic_gb_per_s', 'memory_bytes')}
    nic, memory = float(numbers['nic_gb_per_s']), int(numbers['memory_bytes'])
    said = []
    for change, same in ((':%s=0.5x' % NIC, ':%s=%.15g' % (NIC, nic / 2)),
                         (':device.memory_bytes=0.3x', ':device.memory_bytes=%.0f' % (0.3 * memory)),
                         (':%s=3:%s=1.5x' % (NIC, NIC), ':%s=3:%s=4.5' % (NIC, NIC))):
        ours, theirs = (run.json('predict', *XL, 'dgx-h100' + change) for change in (change, same))
        if ours != theirs or ours['cluster'] != 'dgx-h100' + same:
            said.append('%s: %s, not as %s' % (change, ours['cluster'], same))
    status, out, err = run('plot', *XL, 'dgx-h100', '--csv', '--knob', 'cluster.%s=0.5x,%.15g' % (NIC, nic / 2))
    steps = [row['step_ms'] for row in csv.DictReader(out.splitlines())]
    return said + ([] if not status and len(steps) == 2 and steps[0] == steps[1] else [out + err])


def check_trace(run):
    """What a trace names is what its questions are asked of."""
    cluster = 'dgx-h100:%s=3' % NIC
    status, _, err = run('predict', *XL, cluster, '--trace', 'changed.trace')
    step = run.json('predict', *XL, cluster)['step_ms']
    other, out, more = run('diagnose', 'changed.trace')
    said = [] if not status and not other else [err + more]
    return said + ([] if 'on %s, where this plan takes %.3f ms' % (cluster, step) in flat(out) else [out])


def check_knob(run):
    values = ['3', '50']
    status, out, err = run('plot', 'gpt2-xl', '-n', '16', '--cluster', 'dgx-h100', '--knob',
                           'cluster.%s=%s' % (NIC, ','.join(values)), '--knob', 'wrap=block,whole')
    rows = {tuple(line.split()[:2]): float(line.split()[2]) for line in out.splitlines()
            if re.match(r'(3|50) +wrap=', line)}
    said = [] if not status and len(rows) == 4 else [err + out]
    for (nic, wrap), step in rows.items():
        figures = run.json('predict', 'gpt2-xl', '-n', '16', '--wrap', wrap.partition('=')[2], '--cluster',
                           'dgx-h100:%s=%s' % (NIC, nic))
        if abs(figures['step_ms'] - step) > 0.01:
            said.append('%s %s: %s ms, predict says %s' % (nic, wrap, step, figures['step_ms']))
    return said


def check_refusals(run):
    said = []
    for change, wanted in REFUSED:
        status, out, err = run('predict', *XL, 'dgx-h100:' + change)
        if status != 2 or wanted not in err or out:
            said.append('%s: status %d, %s%s' % (change, status, err, out))
    status, _, err = run('choose', *XL, 'dgx-h100', '--knob', 'cluster.%s=3' % NIC)
    if status != 2 or '--cluster NAME:%s=3' % NIC not in err:
        said.append('choose: status %d, %s' % (status, err))
    return said


def main(program):
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(os.path.abspath(program), folder)
        tap.case('as a file edited by hand', check_copies(run))
        tap.case('times a number of the file', check_times(run))
        tap.case('a trace keeps it', check_trace(run))
        tap.case('a knob of plot', check_knob(run))
        tap.case('refusals', check_refusals(run))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
