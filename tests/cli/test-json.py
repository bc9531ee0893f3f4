"""tests/cli/test-json.py FORESHARD - what commands say with --json: the keys that man pages name, and the
numbers that predict, compare and their own text have."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from runner import flat
from tap import Tap

TOY = ['gpt-toy', '-n', '8', '--cluster', 'a100-node', '--wrap', 'whole']
LARGE = ['gpt2-xl', '-n', '8', '--sharding', 'none', '--micro-batch', '32', '--cluster', 'a100-node']
NUMBERS = ['step_ms', 'step_ms_p95', 'tokens_per_s_per_gpu', 'tflops_per_gpu', 'mfu', 'compute_ms', 'bound_by',
           'peak_allocated_bytes', 'peak_active_bytes', 'peak_reserved_bytes', 'fits', 'trains_well',
           'allocator_bytes', 'outside_allocator_bytes', 'workspace_bytes', 'plan_digest', 'cluster', 'kwh_per_million_tokens']
EXPLANATION = ['name', 'title', 'plan_digest', 'side', 'rank', 'numbers', 'lines']
SHARDING = ['sharding', 'fits', 'step_ms', 'peak_allocated_bytes', 'peak_reserved_bytes', 'peak_by_category',
            'collectives', 'collective_bytes', 'exposed_ms']
DIAGNOSIS = ['title', 'plan_digest', 'side', 'cluster', 'rank', 'memory_of_rank', 'fits', 'step_ms', 'bottleneck',
             'memory', 'comm', 'steady_steps', 'compute_lane', 'remedies', 'causes', 'ways_to_fit', 'baselines', 'best_baseline']
RETRIES = ['gpt-175b', '-n', '64', '--cluster', 'a100-roce', '--flavour', 'fsdp1', '--param-dtype', 'bf16',
           '--checkpointing', 'full']
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
PAGES = {
    'plan': [TOY[:3]],
    'list': [[]],
    'units': [[*TOY[:3], '--tree']],
    'collectives': [['--cluster', 'a100-node', '--table']],
    'plot': [[*TOY, '--knob', 'micro_batch=1,2']],
    'replay': [['gpt-toy', '-n', '2', 'replayed.trace']],
    'predict': [TOY, [*TOY, '--every-rank'], LARGE, RETRIES, ['gpt2', '-n', '2', '--cluster', 'v100-dgx', '--param-dtype', 'bf16']],
    'choose': [['gpt2', '-n', '8', '--cluster', 'a100-node', '--tokens', '1e9', '--price', '2', '--days', '9'],
               ['gpt-1t', '-n', '8', '--cluster', 'a100-node'], ['t5-11b', '-n', '2', '--cluster', 'a100-node']],
    'diagnose': [TOY, LARGE],
    'compare': [['predicted.trace', 'measured.trace']],
    'rehearse': [[*TOY[:5], '--rank', '0', '--steps', '3']],
    'validate': [[os.path.join(SOURCE, 'tests', 'validation', 'train_context.csv')]],
}
REMEDY = ['settings', 'cause', 'remedy', 'costs', 'fits', 'step_ms_change', 'peak_reserved_bytes_change',
          'peak_by_category_change', 'alloc_retries']


class Runner:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def __call__(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError('%s: status %d, %s' % (' '.join(words), done.returncode, done.stderr))
        return done.stdout

    def json(self, *words):
        return json.loads(self(*words, '--json'))


def near(value, wanted):
    """Explanations print six digits behind the point, or six in all."""
    if isinstance(wanted, (bool, str)) or isinstance(value, (bool, str)):
        return value == wanted
    return abs(value - wanted) <= 1e-6 + 1e-5 * abs(wanted)


def differ(said, name, found, wanted):
    if found != wanted:
        said.append('%s: %s, not %s' % (name, found, wanted))


def check_explain(run):
    said = []
    figures = run.json('predict', *TOY)
    for key in NUMBERS:
        got = run.json('explain', key, *TOY)
        differ(said, key + "'s keys", list(got), EXPLANATION)
        number = got['numbers'].get(key, {})
        if not near(number.get('value'), figures[key]) or not number['formula']:
            said.append('%s is %s, predict says %s' % (key, number, figures[key]))
        differ(said, key + "'s lines", flat(' '.join(got['lines'])), flat(run('explain', key, *TOY)))
    sums = dict(re.findall(r'(\w+) +\d+ x, +([0-9.]+) ms', run('explain', 'compute_ms', *TOY)))
    text = run('explain', 'linear', *TOY)
    count, total = re.match(r'(\d+) in a step, ([0-9.]+) ms together, ', text).groups()
    differ(said, 'linear in all', total, sums['linear'])
    differ(said, 'linears', int(count), text.count('  linear  '))
    got = run.json('explain', 'comm', *TOY)
    for kind, comm in figures['comm'].items():
        for key in ('total_ms', 'exposed_ms'):
            name = 'comm.%s.%s' % (kind, key)
            if not near(got['numbers'][name]['value'], comm[key]):
                said.append('%s is %s' % (name, got['numbers'][name]))
    return said


def check_explain_sharding(run):
    said = []
    got = run.json('explain', 'shardings', 'gpt-toy', '-n', '8', '--cluster', 'a100-node')
    rows = got['shardings']
    differ(said, 'names', [row['sharding'] for row in rows],
           ['none', 'optimizer-only', 'grad-op', 'full', 'hybrid-grad-op', 'hybrid'])
    for row in rows:
        differ(said, row['sharding'], list(row), SHARDING)
        figures = run.json('predict', 'gpt-toy', '-n', '8', '--cluster', 'a100-node', '--sharding', row['sharding'])
        for key in ('step_ms', 'peak_allocated_bytes', 'peak_reserved_bytes', 'peak_by_category', 'fits'):
            differ(said, row['sharding'] + ' ' + key, row[key], figures[key])
        differ(said, 'collectives', row['collectives'], sum(kind['count'] for kind in figures['comm'].values()))
    refused = run.json('explain', 'shardings', 'gpt-toy', '-n', '8', '--cluster', 'a100-node', '--param-dtype', 'bf16')
    if 'mixed precision' not in refused['shardings'][0]['refusal'] or 'step_ms' in refused['shardings'][0]:
        said.append('DDP in mixed precision: %s' % refused['shardings'][0])
    return said


def check_diagnose(run):
    said = []
    got, text = run.json('diagnose', *TOY), run('diagnose', *TOY)
    differ(said, 'keys', [key for key in got if key != 'larger_batch'], DIAGNOSIS)
    base = run.json('predict', *TOY)
    for key in ('step_ms', 'fits', 'cluster', 'plan_digest'):
        differ(said, key, got[key], base[key])
    differ(said, 'peak', got['memory']['peak_by_category'], base['peak_by_category'])
    differ(said, 'comm', {kind: [round(row['total_ms'], 6), round(row['exposed_ms'], 6)]
                          for kind, row in got['comm'].items()},
           {kind: [round(row['total_ms'], 6), round(row['exposed_ms'], 6)] for kind, row in base['comm'].items()})
    if '7. bottleneck: %s ' % flat(got['bottleneck']) not in flat(text):
        said.append('the bottleneck is not the text\'s: ' + got['bottleneck'])
    tried = {row['settings']: row for row in got['remedies'] if row['settings']}
    for settings, option in (('wrap=block', ['--wrap', 'block']), ('checkpointing=full', ['--checkpointing', 'full'])):
        row = tried[settings]
        differ(said, settings, list(row), REMEDY)
        words = [word for word in TOY if word not in ('--wrap', 'whole')] if 'wrap' in settings else TOY
        changed = run.json('predict', *words, *option)
        differ(said, settings + ' step', round(row['step_ms_change'], 6), round(changed['step_ms'] - base['step_ms'], 6))
        differ(said, settings + ' bytes', row['peak_reserved_bytes_change'],
               changed['peak_reserved_bytes'] - base['peak_reserved_bytes'])
    if any(row not in got['remedies'] for row in got['causes']) or not got['causes']:
        said.append('causes are not among the remedies')
    if got['ways_to_fit'] or got['best_baseline'] not in [row['name'] for row in got['baselines']]:
        said.append('%s, %s' % (got['ways_to_fit'], got['best_baseline']))
    return said


def check_diagnose_what_does_not_fit(run):
    got = run.json('diagnose', *LARGE)
    ways = got['ways_to_fit']
    said = [] if ways and not got['fits'] and got['oom'].startswith('out of memory') else ['%s' % got]
    quickest = min(ways, key=lambda way: way['step_ms'])
    if any(way['least_change'] != (len(ways) > 1 and way is ways[0]) or
           way['quickest'] != (len(ways) > 1 and way is quickest) for way in ways):
        said.append('marks: %s' % ways)
    option = ['--' + word.replace('_', '-') for pair in ways[0]['settings'].split() for word in pair.split('=', 1)]
    option = [word[2:] if at % 2 else word for at, word in enumerate(option)]
    words = [word for word in LARGE if '--sharding' not in option or word not in ('--sharding', 'none')]
    figures = run.json('predict', *words, *option)
    if not figures['fits'] or round(figures['step_ms'], 6) != round(ways[0]['step_ms'], 6):
        said.append('%s: fits %s, %s ms' % (ways[0], figures['fits'], figures['step_ms']))
    return said


def check_report(run):
    """A measured trace is a predicted one that says so: what is measured is nothing to a report."""
    run('predict', *TOY, '--trace', 'predicted.trace')
    run('predict', 'mlp-toy', '-n', '2', '--cluster', 'a100-node', '--trace', 'other.trace')
    path = os.path.join(run.folder, 'predicted.trace')
    with open(path, encoding='utf-8') as file:
        text = file.read()
    with open(path.replace('predicted', 'measured'), 'w', encoding='utf-8') as file:
        file.write(text.replace('\nside predicted\n', '\nside measured\n', 1))
    traces = ['predicted.trace', 'other.trace', 'measured.trace']
    said, got = [], run.json('report', *traces)
    run('report', *traces, '--json', '-o', 'report.json')
    with open(os.path.join(run.folder, 'report.json'), encoding='utf-8') as file:
        differ(said, 'the file', json.load(file), got)
    both, other = got['plans']
    differ(said, 'sides', [trace['side'] for trace in both['traces']], ['predicted', 'measured'])
    differ(said, 'comparison', both['comparison'], run.json('compare', 'predicted.trace', 'measured.trace'))
    differ(said, 'diagnosis', both['diagnosis'], run.json('diagnose', 'predicted.trace'))
    differ(said, 'one trace', 'comparison' in other, False)
    figures = run.json('predict', *TOY)
    for key in ('step_ms', 'peak_allocated_bytes', 'peak_active_bytes', 'peak_reserved_bytes'):
        differ(said, key, both['traces'][0][key], figures[key])
    return said


def check_partial_rows(run):
    """Numbers of what runs out of memory say so; they are predict's, of whole steps."""
    said = []
    figures = run.json('predict', *LARGE)
    for key in ('step_ms', 'step_ms_p95', 'tokens_per_s_per_gpu', 'tflops_per_gpu', 'mfu', 'compute_ms', 'peak_allocated_bytes'):
        found = run.json('explain', key, *LARGE)['numbers'][key]['value']
        if not near(found, figures[key]):
            said.append('%s is %s, predict says %s' % (key, found, figures[key]))
    for key in ('step_ms', 'tokens_per_s_per_gpu', 'compute_ms'):
        text = run('explain', key, *LARGE)
        if not text.startswith('as if memory sufficed: it runs out of memory in step 0'):
            said.append('%s: %s' % (key, text[:80]))
        if 'as if memory' in run('explain', key, *TOY):
            said.append(key + ' of what fits')
    return said


def check_ways_of_predict(run):
    """The ways that diagnose names; none of a plan that fits. Where memory is given back, what the text says does without."""
    figures = run.json('predict', *LARGE)
    said = []
    differ(said, 'ways', figures['ways_to_fit'], run.json('diagnose', *LARGE)['ways_to_fit'])
    differ(said, 'ways of what fits', 'ways_to_fit' in run.json('predict', *TOY), False)
    if not figures['ways_to_fit']:
        said.append('there is none')
    ways, text = run.json('predict', *RETRIES)['ways_without_retries'], run('predict', *RETRIES)
    told = re.findall(r'no retries with (.*): step ([0-9.]+) (m?s)', text)
    differ(said, 'ways told', [round(float(step) * (1 if unit == 'ms' else 1000)) for _, step, unit in told],
           [round(way['step_ms']) for way in ways])
    if not ways or any(way['alloc_retries'] for way in ways):
        said.append('without retries: %s' % ways)
    return said


def check_list(run):
    said, got = [], run.json('list')
    differ(said, 'networks alone', run.json('list', 'networks'), {'networks': got['networks']})
    differ(said, 'clusters alone', run.json('list', 'clusters'), {'clusters': got['clusters']})
    for what, rows in got.items():
        differ(said, what, [row['name'] for row in rows], run('list', what, '--names').split())
    text = flat(run('list'))
    for row in got['networks']:
        wanted = '%s %.2f %s parameters, %d layers, width %d, sequences of %d' % (
            row['name'], row['parameters'] / (1e9 if row['parameters'] >= 1e9 else 1e6),
            'B' if row['parameters'] >= 1e9 else 'M', row['layers'], row['width'], row['seq'])
        differ(said, wanted, wanted in text, True)
    for row in got['clusters']:
        wanted = '%s %d ranks: %s' % (row['name'], row['ranks'], row['title'])
        differ(said, wanted, flat(wanted) in text, True)
    for words in (['--names'], ['dgx-h100']):
        done = subprocess.run([run.program, 'list', '--json', *words], capture_output=True, text=True, check=False)
        differ(said, words[0], (done.returncode, '--json is for lists' in done.stderr), (2, True))
    return said


def check_units(run):
    said = []
    words = ['llama-toy', '-n', '3']
    got, text = run.json('units', *words), run('units', *words)
    last = [int(word) for word in re.search(r'^all +(.*)$', text, re.M).group(1).split()]
    keys = ['elements', 'padding', 'shard_elements', 'shard_bytes']
    differ(said, 'sums', [sum(unit[key] for unit in got['units']) for key in keys], last)
    differ(said, 'modules', 'modules' in got, False)
    tree = run.json('units', *words, '--tree')
    differ(said, 'parameters', sum(p['elements'] for module in tree['modules'] for p in module['parameters']), last[0])
    differ(said, 'where units begin', sorted(module['name'] or 'root' for module in tree['modules'] if module['unit_begins']),
           sorted(unit['name'] for unit in got['units']))
    return said


def check_collectives(run):
    said = []
    for words in (['--cluster', 'dgx-h100', '-n', '64'], ['--cluster', 'this-machine', '-n', '4']):
        got, text = run.json('collectives', *words), run('collectives', *words)
        rows = re.findall(r'^ *(\d+) +([0-9.]+ .*)$', text, re.M)
        differ(said, 'rows', len(rows), len(got['times']['all_reduce']))
        for i, (count, rest) in enumerate(rows):
            row = [kind[i] for kind in got['times'].values()]
            wanted = ' '.join(' '.join(['%.1f' % one['time_us']] + [one[key] for key in ('algo', 'proto') if key in one])
                              for one in row)
            differ(said, count, (row[0]['bytes'], flat(rest)), (int(count), wanted))
    got = run.json('collectives', '--cluster', 'dgx-h100', '--table', '--bytes', '1e6')
    differ(said, "NCCL's bytes", got['expected']['bytes'], 1000000)
    if 'ring' not in [row['algo'] for row in got['expected']['all_reduce']]:
        said.append('no ring: %s' % got['expected'])
    return said


def check_plot(run):
    said = []
    words = ['gpt-toy', '-n', '8', '--cluster', 'a100-node', '--param-dtype', 'bf16']
    got = run.json('plot', *words, '--knob', 'micro_batch=1,2', '--knob', 'sharding=full,none')
    differ(said, 'points', [point['settings'] for point in got['points']],
           [{'micro_batch': '1', 'sharding': 'full'}, {'micro_batch': '2', 'sharding': 'full'}])
    differ(said, 'refused', [text.split(': ')[0] for text in got['refused']],
           ['micro_batch=1, sharding=none', 'micro_batch=2, sharding=none'])
    for point in got['points']:
        figures = run.json('predict', *words, '--micro-batch', point['settings']['micro_batch'])
        for key in ('fits', 'alloc_retries', 'step_ms', 'peak_allocated_bytes', 'peak_reserved_bytes', 'tflops_per_gpu'):
            differ(said, key, near(point[key], figures[key]), True)
    run('predict', *words, '--trace', 'point.trace')
    both = run.json('plot', *words[:3], 'point.trace', *words[3:], '--knob', 'micro_batch=1,2')
    differ(said, 'points with a trace', [point['settings']['micro_batch'] for point in both['points']], ['1', '2', '1'])
    done = subprocess.run([run.program, 'plot', *words, '--json'], capture_output=True, text=True, check=False)
    differ(said, 'without a knob', (done.returncode, '--json' in done.stderr), (2, True))
    return said


def check_replay(run):
    """A predicted trace that says it is measured holds what a play of its plan would; and one number changed."""
    said = []
    run('predict', 'gpt-toy', '-n', '2', '--cluster', 'this-machine', '--trace', 'toy.trace')
    path = os.path.join(run.folder, 'toy.trace')
    with open(path, encoding='utf-8') as file:
        text = file.read().replace('\nside predicted\n', '\nside measured\n', 1)
    with open(path.replace('toy', 'replayed'), 'w', encoding='utf-8') as file:
        file.write(text)
    words = ['gpt-toy', '-n', '2', 'replayed.trace']
    got = run.json('replay', *words)
    differ(said, 'equal', [got['equal'], *[rank['equal'] for rank in got['ranks']]], [True] * (1 + len(got['ranks'])))
    differ(said, 'instructions', 'equal at all %d instructions' % got['ranks'][0]['instructions'] in run('replay', *words), True)
    header, rows = text.split('\nmemory 0 0 ', 1)
    first = rows.split('\n')[1]  # of step 0: 2 MiB more are reserved
    numbers = first.split()
    numbers[-1] = str(int(numbers[-1]) + 2097152)
    with open(path.replace('toy', 'other'), 'w', encoding='utf-8') as file:
        file.write(header + '\nmemory 0 0 ' + rows.replace(first, ' '.join(numbers), 1))
    done = subprocess.run([run.program, 'replay', *words[:3], path.replace('toy', 'other'), '--json'],
                          capture_output=True, text=True, check=False)
    got = json.loads(done.stdout)
    rank = got['ranks'][0]
    differ(said, 'another', (done.returncode, got['equal'], rank['equal']), (1, False, False))
    for key, more in (('step', ''), ('instruction', 0), ('allocated_bytes', 0), ('reserved_bytes', 2097152)):
        differ(said, key, rank['measured'][key], rank['replayed'][key] + more)
    return said


def keys_of(value):
    """All but names that are data: categories, kinds of collectives."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not re.search('/|^(all_gather|all_reduce|reduce_scatter|parameters|gradients|optimizer|activations|temporary|'
                             'communication)$', key):
                yield key
            yield from keys_of(inner if key != 'settings' else None)  # whose keys are a strategy's
    elif isinstance(value, list):
        for inner in value[:1]:
            yield from keys_of(inner)


def check_page(run, command, cases):
    referred = {'rehearse': ['run'], 'choose': ['diagnose']}  # a page refers to another
    said = set()
    for page in [command, *referred.get(command, [])]:
        with open(os.path.join(SOURCE, 'man', 'foreshard-%s.in' % page), encoding='utf-8') as file:
            said |= set(re.findall(r'\w+', file.read()))
    return ['%s is not in the page (%s)' % (key, ' '.join(words)) for words in cases
            for key in keys_of(run.json(command, *words)) if key not in said]


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(os.path.abspath(sys.argv[1]), folder)
        tap.case('explain', check_explain(run))
        tap.case('explain shardings', check_explain_sharding(run))
        tap.case('diagnose', check_diagnose(run))
        tap.case('diagnose what does not fit', check_diagnose_what_does_not_fit(run))
        tap.case('report', check_report(run))
        tap.case('explain what does not fit', check_partial_rows(run))
        tap.case('ways to fit of predict', check_ways_of_predict(run))
        tap.case('list', check_list(run))
        tap.case('units', check_units(run))
        tap.case('collectives', check_collectives(run))
        tap.case('plot', check_plot(run))
        tap.case('replay', check_replay(run))
        for command, cases in PAGES.items():
            tap.case('the page of ' + command, check_page(run, command, cases))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
