"""tests/cli/test-csv.py FORESHARD SOURCE - what --csv prints is a table of the same rows and numbers as --json."""
import csv
import io
import os
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from runner import Runner
from tap import Tap

SHARES = ['gpt-toy', '-n', '4', '--cluster', 'a100-node']


def table(name, source):
    return os.path.join(source, 'tests', 'validation', name)


def commands(source):
    """Words, and the arrays of the JSON object that are the rows, by the column that tells them apart."""
    return [
        (['choose', *SHARES, '--price', '2', '--tokens', '1e9'], lambda out: out['choices']),
        (['plot', *SHARES, '--knob', 'wrap=block,module=layers\\.[0,1]', '--knob', 'micro_batch=1,2'],
         lambda out: out['points']),
        (['diagnose', *SHARES], lambda out: out['remedies']),
        (['units', *SHARES[:3]], lambda out: out['units']),
        (['list', 'clusters'], lambda out: out['clusters']),
        (['list', 'networks'], lambda out: out['networks']),
        (['explain', 'shardings', *SHARES], lambda out: out['shardings']),
        (['collectives', '--cluster', 'dgx-h100'],
         lambda out: [{'collective': kind, **row} for kind, rows in out['times'].items() for row in rows]),
        (['validate', table('train_yafsdp.csv', source), table('train_context.csv', source)],
         lambda out: [{'file': one['name'], 'time_unit': one['time_unit'], **row}
                      for one in out['files'] for row in one['each']]),
    ]


def members(row, prefix=''):
    """The cells of a row, in its order: no arrays, and no text of several lines."""
    for key, value in row.items():
        if isinstance(value, dict):
            yield from members(value, prefix + key + '.')
        elif not isinstance(value, list) and '\n' not in str(value):
            yield prefix + key, value


def is_same(cell, value):
    if value is None:
        return cell == ''
    if isinstance(value, bool):
        return cell == str(value).lower()
    return float(cell) == value if isinstance(value, (int, float)) else cell == value


def check_rows(run, words, rows_of):
    said = []
    wanted = [dict(members(row)) for row in rows_of(run.json(*words))]
    columns = list(dict.fromkeys(key for row in wanted for key in row))
    status, out, err = run(*words, '--csv')
    got = list(csv.DictReader(io.StringIO(out), strict=True))
    if status or len(got) != len(wanted) or not wanted:
        return ['status %d, %d rows instead of %d: %s' % (status, len(got), len(wanted), err)]
    if list(got[0]) != columns:
        said.append('columns %s, not %s' % (list(got[0]), columns))
    for number, (cells, row) in enumerate(zip(got, wanted)):
        for key, cell in cells.items():
            if not is_same(cell, row.get(key)):
                said.append('row %d: %s is %s, not %s' % (number, key, cell, row.get(key)))
    return said


def check_nothing(run):
    """Without a row standard output is empty, and what would help goes to standard error."""
    status, out, err = run('choose', 'gpt-175b', '-n', '8', '--cluster', 'a100-node', '--csv')
    return [] if status == 0 and out == '' and 'nothing fits' in err else ['status %d, %s, %s' % (status, out, err)]


def check_refusals(run, source):
    said = []
    for words, why in [
            (['choose', *SHARES, '--csv', '--json'], 'two forms'),
            (['choose', *SHARES, '--csv', '-o', '-'], 'both ask for standard output'),
            (['plot', *SHARES, '--csv'], '--csv is nothing to --picture memory'),
            (['plot', *SHARES, '--knob', 'micro_batch=1,2', '--csv', '--json'], 'two forms'),
            (['diagnose', *SHARES, '--csv', '--json'], 'two forms'),
            (['units', *SHARES[:3], '--csv', '--tree'], 'leave --tree away'),
            (['list', '--csv'], 'foreshard list clusters --csv'),
            (['list', 'a100-node', '--csv'], 'foreshard list clusters --csv'),
            (['explain', 'step_ms', *SHARES, '--csv'], '--csv is of shardings alone'),
            (['explain', 'shardings', *SHARES, '--csv', '--json'], 'two forms'),
            (['collectives', '--cluster', 'dgx-h100', '--csv', '--table'], 'leave --table away'),
            (['validate', table('train_context.csv', source), '--csv', '--brief'], 'leave --brief away'),
            (['validate', table('train_context.csv', source), '--csv', '--kinds'], 'leave --csv away')]:
        status, out, err = run(*words)
        if status != 2 or why not in err or out:
            said.append('%s: status %d, %s' % (' '.join(words), status, err or out[:200]))
    return said


def main(program, source):
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(program, folder)
        for words, rows_of in commands(os.path.abspath(source)):
            tap.case(' '.join(words[:2]), check_rows(run, words, rows_of))
        tap.case('nothing', check_nothing(run))
        tap.case('refusals', check_refusals(run, os.path.abspath(source)))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
