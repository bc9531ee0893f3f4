"""tests/cli/test-diagnoses-unlike.py FORESHARD - where one rank cannot stand for all, `foreshard diagnose` plays one on
each kind of node of what it changes: its rows are what `foreshard predict` says of each with every rank."""
import os
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from runner import Runner, flat
from tap import Tap

CLUSTERS = {'spine': ('[inter_node]\noversubscription = 4\nnodes_per_leaf = 1\n', 'an oversubscribed spine between these nodes'),
            'kinds': ('[nodes old]\nat = 1\nlike = a100-p4de\n', 'nodes of several kinds')}
PLAN = ['gpt2', '-n', '16', '--network-key', 'layers=3', '--micro-batch', '4']
BASE = {'param_dtype': 'bf16', 'flavour': 'fsdp2'}
NEAR = 1e-3  # of a step, or of a peak


def options_of(settings):
    return [word for key, value in settings.items() for word in ('--' + key.replace('_', '-'), value)]


def write_clusters(run):
    for name, (lines, _) in CLUSTERS.items():
        with open(os.path.join(run.folder, name + '.ini'), 'w', encoding='utf-8') as file:
            file.write('[cluster]\nlike = dgx-h100\n' + lines)


def differs(change, base, changed):
    """What a row says and what two predictions do."""
    return abs(base + change - changed) > NEAR * max(base, changed)


def check_rows(run, name):
    said = []
    where = ['--cluster', './%s.ini' % name]
    diagnosis = run.json('diagnose', *PLAN, *options_of(BASE), *where)
    base = run.json('predict', *PLAN, *options_of(BASE), *where)
    if diagnosis['step_ms'] != base['step_ms']:
        said.append('step %s, not %s' % (diagnosis['step_ms'], base['step_ms']))
    if diagnosis.get('unlike') != CLUSTERS[name][1]:
        said.append('unlike: %s' % diagnosis.get('unlike'))
    rows = [row for row in diagnosis['remedies'] if row.get('settings')]
    for row in rows:
        changed = dict(pair.split('=', 1) for pair in row['settings'].split())
        figures = run.json('predict', *PLAN, *options_of({**BASE, **changed}), *where)
        if differs(row['step_ms_change'], base['step_ms'], figures['step_ms']) or row['fits'] != figures['fits'] or \
                differs(row['peak_reserved_bytes_change'], base['peak_reserved_bytes'], figures['peak_reserved_bytes']):
            said.append('%s beside %s of %s' % (row, {key: figures[key] for key in ('step_ms', 'peak_reserved_bytes')},
                                                base['step_ms']))
    return said + ([] if len(rows) > 8 else ['%d rows' % len(rows)])


def check_text(run, name):
    out = flat(run('diagnose', *PLAN, *options_of(BASE), '--cluster', './%s.ini' % name)[1])
    alike = flat(run('diagnose', *PLAN, *options_of(BASE), '--cluster', 'dgx-h100')[1])
    told = '%s has %s: no GPU stands for all there' % (name, CLUSTERS[name][1])
    return [text for text, has in ((out, told in out), (alike, 'no GPU stands' not in alike)) if not has]


def main(program):
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(program, folder)
        write_clusters(run)
        for name in CLUSTERS:
            tap.case('rows on %s are those of every rank' % name, check_rows(run, name))
            tap.case('on %s it is said that one stands for its kind' % name, check_text(run, name))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
