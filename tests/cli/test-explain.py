"""tests/cli/test-explain.py FORESHARD - what `foreshard explain` says of a number is the number that
`foreshard predict` printed, and its parts sum up to it."""
import json
import os
import re
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from runner import Runner, flat
from tap import Tap

PLANS = {
    'fsdp2': ['gpt-toy', '-n', '8', '--cluster', 'a100-node'],
    'fsdp1, bf16, two micro-batches': ['t5-toy', '-n', '4', '--flavour', 'fsdp1', '--param-dtype', 'bf16',
                                       '--accumulate', '2', '--cluster', 'dgx-h100'],
    'stages, the last the fullest': ['llama-toy', '-n', '4', '--pipeline', '2', '--accumulate', '3', '--network-key',
                                     'vocab=8000', '--micro-batch', '16', '--cluster', 'a100-node'],
    'ddp': ['mlp-toy', '-n', '2', '--flavour', 'ddp', '--sharding', 'none', '--cluster', 'this-machine'],
}
EVERY_KEY = {
    'of what fits': ['gpt-toy', '-n', '8', '--cluster', 'a100-node'],
    'of what does not': ['gpt2-xl', '-n', '8', '--sharding', 'none', '--micro-batch', '32', '--cluster',
                         'a100-node'],
    'of stages': ['llama-toy', '-n', '4', '--pipeline', '2', '--accumulate', '3', '--cluster', 'a100-node'],
    'of an evaluation': ['gpt-toy', '-n', '8', '--cluster', 'a100-node', '--eval-batches', '2'],
    'of every rank': ['gpt-toy', '-n', '2', '--cluster', 'a100-node', '--every-rank', '--jitter', '5'],
}
FULL_STAGES = ['llama3-8b', '-n', '8', '--micro-batch', '8', '--cluster', 'dgx-h100', '--pipeline', '2', '--accumulate', '4',
               '--network-key', 'layers=4', '--network-key', 'seq=32768']
RETRIES = ['gpt-175b', '-n', '64', '--cluster', 'a100-roce', '--flavour', 'fsdp1', '--param-dtype', 'bf16', '--checkpointing', 'full']
TRACED = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'oracle', 'traced', 'gpt_toy.network')
CATEGORIES = ['parameters', 'gradients', 'optimizer', 'activations', 'temporary', 'communication']


def near(said, wanted):
    return abs(said - wanted) <= 1e-6 + 6e-4 * abs(wanted)


def check_numbers(run, source):
    """source: a network with its options, or a trace."""
    said = []
    figures = json.loads(run.figures)

    def number(key, name=None):
        status, out, err = run('explain', key, *source)
        found = re.search(r'^%s = ([-0-9.e+]+|[a-z].*?)(?=[: ])' % re.escape(name or key), out, re.M)
        if status or not found:
            said.append('%s: status %d, %s%s' % (key, status, err, out[:100]))
            return None
        return found.group(1)

    for key in ('step_ms', 'step_ms_p95', 'tokens_per_s_per_gpu', 'tflops_per_gpu', 'mfu',
                'compute_ms', 'host_ms', 'peak_allocated_bytes', 'peak_active_bytes',
                'peak_reserved_bytes'):
        value = number(key)
        if value is not None and not near(float(value), figures[key]):
            said.append('%s is %s, predict says %s' % (key, value, figures[key]))
    for kind, comm in figures['comm'].items():
        for key in ('total_ms', 'exposed_ms'):
            name = 'comm.%s.%s' % (kind, key)
            value = number(name)
            if value is not None and not near(float(value), comm[key]):
                said.append('%s is %s, predict says %s' % (name, value, comm[key]))
    for category in CATEGORIES:
        if figures['peak_by_category'][category]:
            name = 'peak_by_category.' + category
            if int(number(name) or 0) != figures['peak_by_category'][category]:
                said.append('%s is not what predict says' % name)
    return said


def keys_of(value, name=''):
    """Each key of an object, and of those in it: "comm", "comm.all_gather", ..."""
    if isinstance(value, dict):
        for key, inner in value.items():
            path = name + '.' + key if name else key
            yield path
            yield from keys_of(inner, path)


# Of what is told in words, or of several at once.
IN_WORDS = re.compile(r'near_edge\.|oom\.|every_rank\.|published_errors\.')


def check_every_key(run, words, few=()):
    """All that predict --json prints can be asked for, and a number is the same there, also where memory runs out."""
    status, out, err = run('predict', *words, '--trace', 'every-key.trace', '--json')
    if status:
        return [err]
    said, figures = [], json.loads(out)
    source = ['every-key.trace'] if figures['fits'] else words  # a trace ends where memory runs out
    for key in few or keys_of(figures):
        status, explained, err = run('explain', key, *source, '--json')
        if status or not json.loads(explained)['lines']:
            said.append('%s: status %d, %s' % (key, status, err))
            continue
        wanted, numbers = figures, json.loads(explained)['numbers']
        for part in key.split('.'):
            wanted = wanted[part]
        if isinstance(wanted, (int, float)) and not IN_WORDS.match(key):
            value = numbers.get(key, {}).get('value')
            if value is None or not near(value, wanted):
                said.append('%s is %s, predict says %s' % (key, value, wanted))
    return said


def check_enough_memory(run):
    """What runs out is explained as if memory sufficed, and says so; of `oom` the rows are those until then."""
    words = EVERY_KEY['of what does not']
    said, begins = [], 'as if memory sufficed: it runs out of memory in step 0, forward of unit root'
    for key in ('step_ms', 'compute_ms', 'peak_allocated_bytes', 'activations', 'root', 'linear'):
        status, out, err = run('explain', key, *words)
        if status or not flat(out).startswith(begins):
            said.append('%s: %s%s' % (key, out[:100], err))
    for key, source in (('oom', words), ('step_ms', EVERY_KEY['of what fits']), ('checkpointing', words)):
        _, out, _ = run('explain', key, *source)
        if not out or 'as if memory' in out:
            said.append('%s: %s' % (key, out[:100]))
    held = run.json('predict', *words)['oom']['held_by_category']
    _, out, _ = run('explain', 'oom', *words)
    if sum(int(part) for part in re.findall(r'^  \w+/\w+ +(\d+) B in', out, re.M)) != sum(held.values()):
        said.append('oom: %s' % out)
    return said


def check_parts(run, source):
    said = []
    _, out, _ = run('explain', 'peak_allocated_bytes', *source)
    total = int(re.search(r'= (\d+)', out).group(1))
    parts = [int(part) for part in re.findall(r'^  \w+/\w+ +(\d+) B in', out, re.M)]
    if sum(parts) != total:
        said.append('the categories sum up to %d, not to %d' % (sum(parts), total))
    _, out, _ = run('explain', 'step_ms', *source)
    step = float(re.search(r'= ([0-9.]+)', out).group(1))
    phases = [float(part) for part in re.findall(r'^  [a-z]+ +([0-9.]+) ms$', out, re.M)]
    if not near(sum(phases), step):
        said.append('the phases sum up to %g ms, not to %g' % (sum(phases), step))
    _, out, _ = run('explain', 'host_ms', *source)
    parts = [float(part) for part in re.findall(r'us = +([0-9.]+) ms$', out, re.M)]
    if not near(sum(parts), float(re.search(r'= ([0-9.]+)', out).group(1))):
        said.append('the instructions do not sum up to the host\'s time')
    return said


def check_tensors(run, source):
    """The tensors of a category are as many as its buffers, and hold as much."""
    said = []
    scale = {'B': 1, 'KiB': 2 ** 10, 'MiB': 2 ** 20}
    for category in CATEGORIES:
        _, out, err = run('explain', category, *source)
        total = re.search(r'^peak_by_category.%s = (\d+)' % category, out, re.M)
        buffers = sum(int(n) for n in re.findall(r'^  \w+/\w+ +\d+ B in (\d+) buffers?,', out, re.M))
        tensors = re.findall(r'^ +([0-9.]+) (\w+) in +(\d+)  %s/\w+ +\S' % category, out, re.M)
        rest = re.findall(r'^ +([0-9.]+) (\w+) in (\d+) kinds? more', out, re.M)
        held = sum(float(number) * scale[unit] for number, unit, _ in tensors + rest)
        if not total or abs(held - int(total.group(1))) > 0.01 * held or \
                not rest and buffers != sum(int(n) for _, _, n in tensors):
            said.append('%s: %s%s' % (category, out, err))
    _, long_way, _ = run('explain', 'peak_by_category.communication', *source)
    if out != long_way:
        said.append('communication is not peak_by_category.communication')
    return said


def check_names_of_tensors(run):
    """Of all blocks together; a traced network's tensors have the names of its own ops."""
    said = []
    for source, wanted in ((['gpt-toy', '-n', '8', '--cluster', 'a100-node'],
                            r' activations/saved +layers\.\*\.mlp\.up: y of linear$'),
                           ([TRACED, '-n', '2', '--cluster', 'this-machine'],
                            r' activations/saved +\S+\.\*\.\S+: addmm$')):
        status, out, err = run('explain', 'activations', *source)
        if status or not re.search(wanted, out, re.M):
            said.append('%s: %s%s' % (wanted, out, err))
    return said


def check_diagnosis(run):
    """What diagnose says of a plan is of the ranks that predict shows."""
    said = []
    figures = json.loads(run.figures)
    status, out, err = run('diagnose', 'a.trace', '--json')
    if status:
        return [err]
    diagnosis = json.loads(out)
    for key in ('peak_allocated_bytes', 'peak_by_category'):
        if diagnosis['memory'][key] != figures[key]:
            said.append('%s is %s, predict says %s' % (key, diagnosis['memory'][key], figures[key]))
    for kind, comm in diagnosis['comm'].items():
        for key in ('total_ms', 'exposed_ms'):
            if not near(comm[key], figures['comm'][kind][key]):
                said.append('%s.%s is %s, predict says %s' % (kind, key, comm[key], figures['comm'][kind][key]))
    return said


def check_units_of_stages(run):
    """A unit is explained by rows of a rank that has it; of several of one name, by the fullest's."""
    said = []
    for unit, parameter, rank in (('root', 'head.weight', 2), ('layers.1', 'layers.1.mlp', 2),
                                  ('layers.0', 'layers.0.mlp', 0)):
        status, out, err = run('explain', unit, 'stages.trace')
        if status or parameter not in out or 'rows are those of rank %d,' % rank not in flat(out) or \
                not re.search(r'^ +[0-9.]+ ms  linear ', out, re.M):
            said.append('%s: %s%s' % (unit, out, err))
    return said


def check_things(run):
    said = []
    for name, wanted in (('layers.0', 'layers.0.mlp.up.weight'), ('linear', 'module layers.1.mlp.down'),
                         ('all_gather', 'comm.all_gather.total_ms'), ('bound_by', 'bound_by = ')):
        status, out, err = run('explain', name, *PLANS['fsdp2'])
        if status or wanted not in out:
            said.append('%s does not show %s: %s' % (name, wanted, err))
    _, out, _ = run('explain', 'all_gather', *PLANS['fsdp2'])
    gather = re.search(r'instruction (\d+)', out).group(1)
    _, out, _ = run('explain', gather, *PLANS['fsdp2'])
    cost = re.search(r'latency ([0-9.]+) ms \+ transfer ([0-9.]+) ms = ([0-9.]+) ms', out)
    if not cost or not near(float(cost.group(1)) + float(cost.group(2)), float(cost.group(3))):
        said.append('a collective\'s cost is not latency and transfer: ' + out)
    _, figures, _ = run('predict', *PLANS['fsdp2'])  # counts instructions in each section, a trace all of them
    section, number = re.search(r'\(section\s+(\w+),\s+instruction (\d+)\)', figures).groups()
    _, peak, _ = run('explain', 'peak_allocated_bytes', *PLANS['fsdp2'])
    at = re.search(r'\(instruction (\d+)\)', peak).group(1)
    if run('explain', section + ':' + number, *PLANS['fsdp2']) != run('explain', at, *PLANS['fsdp2']):
        said.append('%s:%s is not %s' % (section, number, at))
    return said


def check_sharding(run):
    said = []
    status, out, err = run('explain', 'shardings', 'gpt-toy', '-n', '16', '--cluster', 'dgx-h100')
    if status:
        return [err]
    peaks, steps = out[out.index('held at the peak'):].split('\nin a steady step\n')
    for sharding in ('none', 'optimizer-only', 'grad-op', 'full', 'hybrid', 'hybrid-grad-op'):
        _, figures, _ = run('predict', 'gpt-toy', '-n', '16', '--cluster', 'dgx-h100', '--sharding',
                            sharding, '--json')
        row = re.search(r'^%s .* ([0-9.]+)$' % sharding, steps, re.M)
        fits = re.search(r'^%s .*  fits$' % sharding, peaks, re.M)
        if not row or not fits or abs(float(row.group(1)) - json.loads(figures)['step_ms']) > 0.001:
            said.append('%s is not what predict says' % sharding)
    return said


# What a strategy says of its units after forward, and what `full` is then said to do.
KEPT = (('', 'before backward; dropped after each'),
        ('--reshard-after-forward no', 'they stay whole until their backward is through'),
        ('--reshard-after-forward 2', 'kept by fewer ranks between them'),
        ('--pipeline 2 --accumulate 2', 'whole until its last backward is through'),
        ('--pipeline 2 --accumulate 2 --reshard-after-forward yes', 'before backward; dropped after each'),
        ('--pipeline 2 --accumulate 2 --pipeline-stages 2 --pipeline-schedule interleaved-1f1b',
         'whole until its last backward is through'),
        ('--pipeline 2 --accumulate 2 --pipeline-stages 4 --pipeline-schedule interleaved-1f1b',
         'that are needed next; dropped where others are'))


def check_what_stays_whole(run):
    said = []
    for options, wanted in KEPT:
        status, out, err = run('explain', 'shardings', 'llama-toy', '-n', '8', '--cluster', 'dgx-h100',
                               '--network-key', 'layers=16', *options.split())
        row = re.search(r'^full +units.*$', out, re.M)
        if status or not row or not row.group(0).endswith(wanted):
            said.append('%s: %s, not %s%s' % (options, row and row.group(0), wanted, err))
        if status == 0 and ('stages share the blocks' in out) != ('--pipeline' in options):
            said.append('%s: who shares blocks is not said' % options)
    return said


def check_settings(run):
    """A setting's name says what it does and what it is here."""
    said = []
    for name, parts in (('limit_all_gathers', ('(--limit-all-gathers), here 3: FSDP1\'s rate limiter', 'plot NETWORK --knob limit_all_gathers=A,B')),
                        ('backward-prefetch', ('backward_prefetch is a setting', 'here pre: when backward gathers the next unit',
                                                 'it is one of pre, post, none'))):
        status, out, err = run('explain', name, 'gpt-toy', '-n', '2', '--cluster', 'a100-node', '--flavour', 'fsdp1',
                               '--limit-all-gathers', '3')
        missing = [part for part in parts if part not in flat(out)]
        if status or missing:
            said.append('%s: status %d, without %s: %s%s' % (name, status, missing, out, err))
    status, out, err = run('explain', 'prefetch', 'gpt-toy', '-n', '2', '--cluster', 'a100-node')
    both = ('backward_prefetch is a setting', 'forward_prefetch is a setting')
    return said + ([] if status == 0 and all(part in out for part in both) else [out + err])


def check_examples(run):
    """Without a network an example is explained, in which a setting does something; its figures are predict's."""
    said = []
    words = ['gpt2-xl', '-n', '8', '--cluster', 'a100-node', '--param-dtype', 'bf16', '--micro-batch', '2']
    status, out, err = run('explain', 'backward_prefetch')
    for value in ('pre', 'none'):
        figures = run.json('predict', *words, '--backward-prefetch', value)
        row = re.search(r'^  %s +step +([0-9.]+) ms.* ([0-9.]+) TFLOP/s/GPU +([0-9.]+) GiB' % value, out, re.M)
        wanted = ('%.3f' % figures['step_ms'], '%.1f' % figures['tflops_per_gpu'],
                  '%.2f' % (figures['peak_reserved_bytes'] / 2**30))
        if status or not row or row.groups() != wanted:
            said.append('%s: %s, not %s%s' % (value, row and row.groups(), wanted, err))
    if 'note: of gpt2-xl on a100-node with ranks=8, param_dtype=bf16, micro_batch=2' not in flat(err):
        said.append(err)
    for same in ('--backward-prefetch', 'backward-prefetch'):
        said += [] if run('explain', same)[1] == out else [same]
    said += [] if run('explain', 'backward_prefetch', *words)[1] == out else ['of the network by name']
    for name in ('limiter', 'bucket_mb', 'accumulate', 'lora_rank', 'tensor', 'context', 'pipeline', 'expert', 'float8_gather',
                 'flavour', 'sharding'):
        status, out, err = run('explain', name)
        others = [row for row in re.findall(r'^  \S+ +step .*', out, re.M) if ' here ' not in row]
        if status or not others or 'changes nothing here' in out:
            said.append('%s: status %d, %s%s' % (name, status, out, err))
    status, out, err = run('explain', 'shardings')
    return said + ([] if status == 0 and 'grad-op             98' in out else [out + err])


# A setting, of what, a value that does not go with it, and what is said to go.
NEAREST = (('flavour', ['--param-dtype', 'bf16'], 'ddp', '--autocast bf16 --param-dtype model'),
           ('sharding', ['--param-dtype', 'bf16'], 'none', '--autocast bf16 --param-dtype model'),
           ('sharding', ['--param-dtype', 'fp16'], 'none', '--autocast fp16 --param-dtype model'),
           ('param_dtype', ['--flavour', 'ddp'], 'bf16', '--flavour fsdp2 --sharding full'),
           ('flavour', ['--param-dtype', 'bf16'], 'plain', None))


def check_nearest(run):
    """Of a value that is refused what it takes is shown, and its figures are those of predict with it."""
    said = []
    for key, words, value, takes in NEAREST:
        kept = ['gpt2', '-n', '4', '--cluster', 'a100-node', '--network-key', 'layers=2']
        out = flat(run('explain', key, *kept, *words)[1])
        row = re.search(r'(?<= )%s step +([0-9.]+) ms .*? reserved +\S+ %%, with (--.*?)(?= \w\S* +(?:step|not)| other values)' % value, out)
        if takes is None:
            said += [] if re.search(r' %s not possible: ' % value, out) else [out]
            continue
        if not row or row.group(2) != takes:
            said.append('%s=%s: %s in %s' % (key, value, row and row.group(2), out))
            continue
        option = '--' + key.replace('_', '-')
        changed = takes.split() + ([] if option in takes.split() else [option, value])
        figures = run.json('predict', *kept, *changed)
        if '%.3f' % figures['step_ms'] != row.group(1):
            said.append('%s=%s: %s, predict says %s' % (key, value, row.group(1), figures['step_ms']))
    return said


def check_kinds_of_nodes(run):
    """Costs are those of the node that the rows' rank is on, of whichever kind."""
    with open(os.path.join(run.folder, 'kinds.ini'), 'w', encoding='utf-8') as file:
        file.write('[cluster]\nlike = dgx-h100\n[nodes old]\nat = 1\nlike = a100-p4de\nhost.cpu_factor = 3\n')
    words = ['gpt2', '-n', '16', '--cluster', './kinds.ini', '--network-key', 'layers=3', '--micro-batch', '8',
             '--flavour', 'fsdp2']
    figures = run.json('predict', *words)
    said = []
    for key in ('host_ms', 'compute_ms', 'step_ms', 'mfu'):
        value = run.json('explain', key, *words)['numbers'][key]['value']
        if abs(value / figures[key] - 1) > 1e-5:
            said.append('%s %s, not %s' % (key, value, figures[key]))
    return said


def check_refusals(run):
    said = []
    for words, wanted in ((('explain',), 'give what to explain'),
                          (('explain', 'gpt2-xl'), 'give what to explain of gpt2-xl, as in: foreshard explain step_ms gpt2-xl'),
                          (('explain', 'x', 'a.trace'), 'unit or op; there are\n  time             step_ms, '),
                          (('explain', 'x', 'a.trace'), '\n  a collective     comm.all_reduce\n'),
                          (('explain', 'memory', 'a.trace'), 'did you mean peak_reserved_bytes or '),
                          (('explain', 'step_ms', 'a.trace', '--cluster', 'dgx-h100'), 'was predicted on this-machine'),
                          (('explain', 'step', 'a.trace'), 'did you mean step_ms or step_ms_p95?'),
                          (('explain', 'activation', 'a.trace'), 'did you mean activations?'),
                          (('explain', 'step_ms', 'no.trace'), 'no.trace'),
                          (('explain', 'step_ms', 'a.trace', '--cluster', 'nowhere'), 'nowhere'),
                          (('explain', 'shardings', 'no-such-network'), 'no-such-network'),
                          (('explain', 'shardings', 'gpt-toy', '--sharding', 'full'), 'leave --sharding away'),
                          (('explain', '--sharding', 'gpt-toy'), 'sharding must be one of none, ')):
        status, out, err = run(*words)
        if status != 2 or wanted not in err or out:
            said.append('%s: status %d, %s' % (' '.join(words), status, err))
    return said


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(os.path.abspath(sys.argv[1]), folder)
        for name, words in PLANS.items():
            run.figures = run('predict', *words, '--trace', 'a.trace', '--json')[1]
            tap.case('the numbers, ' + name, check_numbers(run, words))
            tap.case('the numbers from a trace, ' + name, check_numbers(run, ['a.trace']))
            tap.case('the parts, ' + name, check_parts(run, ['a.trace']))
            tap.case('the tensors, ' + name, check_tensors(run, ['a.trace']))
            tap.case('the diagnosis, ' + name, check_diagnosis(run))
        for name, words in EVERY_KEY.items():
            tap.case('every key, ' + name, check_every_key(run, words))
        tap.case('keys of stages that do not fit', check_every_key(run, FULL_STAGES, [
            'pipeline.bubbles_ms', 'peak_allocated_bytes', 'peak_reserved_bytes', 'compute_ms', 'step_ms', 'oom.rank']))
        tap.case('keys of retries', check_every_key(run, RETRIES, ['host_ms', 'alloc_retry_rate.per_step', 'ways_without_retries']))
        tap.case('what runs out of memory', check_enough_memory(run))
        tap.case('names of tensors', check_names_of_tensors(run))
        tap.case('units and ops', check_things(run))
        run('predict', *PLANS['stages, the last the fullest'], '--trace', 'stages.trace')
        tap.case('units of stages', check_units_of_stages(run))
        tap.case('every sharding', check_sharding(run))
        tap.case('what stays whole after forward', check_what_stays_whole(run))
        tap.case('settings', check_settings(run))
        tap.case('examples', check_examples(run))
        tap.case('the nearest that is possible', check_nearest(run))
        tap.case('kinds of nodes', check_kinds_of_nodes(run))
        tap.case('refusals', check_refusals(run))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
