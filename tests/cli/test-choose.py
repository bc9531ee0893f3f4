"""tests/cli/test-choose.py FORESHARD - what `foreshard choose` ranks is what `foreshard predict` says
of each setting, and nothing that fits is lost by what it leaves out."""
import itertools
import os
import re
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from runner import Runner, flat
from tap import Tap

XL = ['gpt2-xl', '-n', '8', '--cluster', 'a100-node', '--param-dtype', 'bf16', '--flavour', 'fsdp2']
KNOBS = {'sharding': ['full', 'grad-op'], 'checkpointing': ['full', 'none'],
         'micro_batch': ['4', '32', '64', '256']}
CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'oracle', 'recorder', 'configs', 'llama3-8b.json')
REFUSED = [
    (['gpt-toy'], 'give a cluster'),
    (['gpt-toy', '--cluster', 'a100-node', '--knob', 'no_such=1'], "'no_such' is no key of a strategy"),
    (['gpt-toy', '--cluster', 'a100-node', '--knob', 'sharding=half'], 'sharding must be one of'),
    (['gpt-toy', '--cluster', 'a100-node', '--knob', 'seq'], 'give a strategy key and its values'),
    (['gpt-toy', '--cluster', 'a100-node', '--knob', 'seq=16', '--knob', 'seq=32'], 'given twice'),
    (['gpt-toy', '--cluster', 'a100-node', '--seq', '16', '--knob', 'seq=32'],
     'as a setting and as a knob'),
    (['gpt-toy', '--cluster', 'a100-node', '--price', '-1'], 'what an hour of a GPU costs'),
    (['gpt-toy', '--cluster', 'a100-node', '--price', '0'], 'what an hour of your own GPU costs you'),
    (['gpt-toy', '--cluster', 'a100-node', '--price', 'dgx-h100=2'], 'there is no --cluster dgx-h100'),
    (['gpt-toy', '--cluster', 'a100-node', '--tokens', '-5'], '--tokens takes a number'),
    (['gpt-toy', '--cluster', 'a100-node', '--tokens', '2 trillion'], 'as in 2e12, 2T or 300B'),
    (['gpt-toy', '--cluster', 'a100-node', '--tokens', 'T'], '--tokens takes a number'),
    (['gpt-toy', '--cluster', 'a100-node', '--tokens', '0'], '--tokens takes a number'),
    (['gpt-toy', '--cluster', 'a100-node', '--tokens', '1e30'], '--tokens takes a number up to 1e18'),
    (['gpt-toy', '--cluster', 'a100-node', '--tokens', '1T', '--days', '0'], 'a number of days, above 0'),
    (['gpt-toy', '--cluster', 'a100-node', '--tokens', '1T', '--days', 'nan'], 'a number of days, above 0'),
    (['gpt-toy', '--cluster', 'a100-node', '--price', '2', '--budget', '9k'], 'give --tokens too'),
    (['gpt-toy', '--cluster', 'a100-node', '--tokens', '1T', '--price', '2', '--budget', '0'], '--budget takes a sum'),
    (['gpt-toy', '--cluster', 'a100-node', '--cluster', 'dgx-h100', '--tokens', '1T', '--budget', '9k', '--price', 'a100-node=2'],
     'no price of dgx-h100 is known'),
    (['gpt-toy', '--cluster', 'a100-node', '--spare', '100'], "--spare takes percent of a GPU's memory"),
    (['gpt-toy', '--cluster', 'a100-node', '--spare', '-1'], "--spare takes percent of a GPU's memory"),
    (['gpt-toy', '--cluster', 'a100-node', '--top', '-5'], '--top takes a number'),
    (['gpt-toy', '--cluster', 'a100-node', '--cores', '-1'], '--cores takes a number'),
    (['gpt-toy', '--cluster', 'a100-node', '-n', '8', '--global-batch', '7'], 'no batch divides'),
    (['gpt-toy', '--cluster', 'a100-node', '--global-batch', '8', '--accumulate', '2'],
     'leave --accumulate away'),
    (['llama-toy', '--cluster', 'a100-node', '--knob', 'pipeline=1,2'], 'give --global-batch N'),
    (['llama-toy', '--cluster', 'a100-node', '--global-batch', '32', '--pipeline', '2', '--knob',
      'pipeline_schedule=interleaved-1f1b,looped-bfs'], 'values that go together'),
    (['llama-toy', '--cluster', 'a100-node', '--pipeline', '2', '--accumulate', '4'],
     'instead of --accumulate'),
    (['gpt-toy', '--cluster', 'a100-node', '-n', '16'], 'has place for 8 GPUs, not 16; it cannot have more nodes; name a cluster that can (with these GPUs: a100-p4d'),
    (['gpt-toy', '--cluster', 'dgx-h100:1', '-n', '16'], 'has place for 8 GPUs, not 16; with :2 behind'),
    (['gpt-toy', '--cluster', 'a100-node:2'], 'no network between nodes'),
    (['gpt-toy', '--cluster', 'dgx-h100:0'], 'give a number of nodes'),
    (['no-such', '--cluster', 'a100-node'], 'no network is called'),
    (['a.plan', '--cluster', 'a100-node'], 'a.plan is a plan or a trace, whose settings are settled'),
    (['a.trace', '--cluster', 'a100-node'], 'a.trace is a plan or a trace, whose settings are settled'),
]


def knob_words(knobs):
    return [word for key, values in knobs.items() for word in ('--knob', key + '=' + ','.join(values))]


def options_of(settings):
    return [word for key, value in settings.items() for word in ('--' + key.replace('_', '-'), value)]


def check_against_predictions(run):
    """Each setting is predicted by itself: those that fit are there, ranked, with equal figures."""
    said = []
    chosen = run.json('choose', *XL, *knob_words(KNOBS), '--top', '99')
    rows = {tuple(row['settings'].values()): row for row in chosen['choices']}
    fitting = {}
    for values in itertools.product(*KNOBS.values()):
        settings = dict(zip(KNOBS, values))
        figures = run.json('predict', *XL, *options_of(settings))
        if figures['fits']:
            fitting[values] = figures
    if set(rows) != set(fitting) or not 4 <= len(rows) <= 14:
        said.append('%d rows, %d settings fit' % (len(rows), len(fitting)))
    for values, figures in fitting.items():
        for key in ('step_ms', 'tokens_per_s_per_gpu', 'mfu', 'peak_reserved_bytes', 'alloc_retries',
                    'trains_well'):
            if values in rows and abs(rows[values][key] - figures[key]) > 1e-9 * abs(figures[key]):
                said.append('%s of %s is %s, predict says %s' % (key, values, rows[values][key],
                                                                 figures[key]))
    order = [(row['alloc_retries'] > 0, -row['tokens_per_s_per_gpu']) for row in chosen['choices']]
    if order != sorted(order):
        said.append('not ranked: %s' % order)
    if chosen['n_left_out'] == 0:
        said.append('nothing was left out, so that leaving out was not tried')
    return said


def check_strategy_file(run):
    said = []
    chosen = run.json('choose', 'gpt2', '-n', '8', '--cluster', 'a100-node', '--clip', '1', '-o', 'best.ini')
    figures = run.json('predict', 'gpt2', '--strategy', 'best.ini', '--cluster', 'a100-node')
    best, simple = chosen['choices'][0], chosen['baseline']
    if abs(figures['step_ms'] - best['step_ms']) > 1e-9:
        said.append('best.ini takes %s ms, not %s' % (figures['step_ms'], best['step_ms']))
    if not chosen['took_bf16'] or 'clip = 1\n' not in best['strategy']:
        said.append('what was given, or taken, is not in the file: ' + best['strategy'])
    if 'DDP, autocast to bf16' not in simple['title']:
        said.append('the simplest is ' + simple['title'])
    status, out, _ = run('choose', 'gpt2', '-n', '8', '--cluster', 'a100-node', '--clip', '1', '-o', '-')
    if status or out.partition('\n')[2] != best['strategy']:
        said.append('-o - is not the strategy alone: ' + out)
    return said


def check_rows_shown(run):
    """Five of one place; the best of each of several."""
    one = run.json('choose', 'gpt2-xl', '-n', '8', '--cluster', 'dgx-h100', '--knob', 'micro_batch=8, 16')['choices']
    several = run.json('choose', 'gpt2-xl', '--cluster', 'dgx-h100:4')['choices']
    ranks = sorted(row['ranks'] for row in several)
    return [] if len(one) == 5 and ranks == [8, 16, 32] else ['%d rows; ranks %s' % (len(one), ranks)]


def check_global_batch(run):
    chosen = run.json('choose', 'gpt-toy', '--cluster', 'a100-roce', '--knob', 'ranks=4,8', '--global-batch', '32',
                      '--top', '9')
    return ['%s makes %s' % (row['title'], row['tokens_per_step']) for row in chosen['choices']
            if row['ranks'] * row['micro_batch'] * row['accumulate'] != 32 or
            row['tokens_per_step'] != 32 * 32] or ([] if len(chosen['choices']) > 4 else ['few rows'])


def check_shared_batch(run):
    """Two ranks that share layers or a sequence have one batch between them."""
    said = []
    for words in (['--tensor', '2'], ['--knob', 'tensor=1,2'], ['--context', '2']):
        chosen = run.json('choose', 'llama-toy', '-n', '4', '--cluster', 'a100-roce', '--global-batch', '8',
                          '--knob', 'sharding=full', '--knob', 'checkpointing=none', '--top', '9', *words)
        rows = chosen['choices']
        said += ['%s: %s makes %s' % (words, row['title'], row['tokens_per_step']) for row in rows
                 if row['tokens_per_step'] != 8 * 32]
        said += [] if rows else ['%s: no rows' % words]
    return said


def check_stages(run):
    """Stages are ranked among others of one batch, as predict has them; the baseline has none."""
    words = ['llama-toy', '-n', '4', '--cluster', 'a100-roce', '--param-dtype', 'bf16']
    chosen = run.json('choose', *words, '--global-batch', '32', '--knob', 'pipeline=1,2', '--top', '99')
    rows = [row for row in chosen['choices'] if row['settings']['pipeline'] == '2']
    said = ['%d of %d rows have stages' % (len(rows), len(chosen['choices']))] \
        if not 0 < len(rows) < len(chosen['choices']) else []
    for row in rows:
        settings = dict(row['settings'], accumulate=str(row['accumulate']))
        figures = run.json('predict', *words, *options_of(settings))
        said += ['%s: %s' % (settings, key) for key in ('step_ms', 'mfu', 'peak_reserved_bytes')
                 if row[key] != figures[key]]
        said += ['%s sequences a step' % row['tokens_per_step']
                 for _ in [0] if row['tokens_per_step'] != 32 * 32]
    if 'pipeline' in chosen['baseline']['title']:
        said.append('the simplest has stages: ' + chosen['baseline']['title'])
    return said


def check_schedules(run):
    """Of schedules and stages a rank those are tried that go together, and the others not refused."""
    words = ['llama-toy', '-n', '4', '--cluster', 'a100-roce', '--network-key', 'layers=8', '--global-batch', '32']
    chosen = run.json('choose', *words, '--knob', 'pipeline=1,2', '--knob',
                      'pipeline_schedule=1f1b,interleaved-1f1b', '--knob', 'pipeline_stages=1,2', '--top', '99')
    keys = ('pipeline', 'pipeline_schedule', 'pipeline_stages')
    tried = sorted({tuple(row['settings'][key] for key in keys) for row in chosen['choices']})
    wanted = [('1', '1f1b', '1'), ('2', '1f1b', '1'), ('2', 'interleaved-1f1b', '2')]
    return ['tried %s' % tried] * (tried != wanted) + \
        ['%d refused: %s' % (chosen['n_refused'], chosen)] * (chosen['n_refused'] > 0)


def check_nothing_fits(run):
    status, out, _ = run('choose', 'gpt-175b', '-n', '8', '--cluster', 'a100-node')
    chosen = run.json('choose', 'gpt-175b', '-n', '8', '--cluster', 'a100-node')
    said = [] if not status and 'nothing fits; nearest on a100-node: --sharding full' in out else [out]
    words = ['llama3-405b', '-n', '2', '--cluster', 'a100-node', '--sharding', 'full', '--checkpointing', 'none',
             '--micro-batch', '1']
    status, out, _ = run('choose', *words)
    if status or 'nearest on a100-node: what was asked for,' not in out:
        said.append(out)
    status, _, err = run('choose', 'gpt-175b', '-n', '8', '--cluster', 'a100-node', '-o', 'none.ini')
    if status or 'nothing fits, so none.ini was not written' not in err or os.path.exists(
            os.path.join(run.folder, 'none.ini')):
        said.append('no file, and not a word: ' + err)
    if chosen['ways_to_fit']:
        said.append('ways: %s' % chosen['ways_to_fit'])
    said += ['rows of what does not fit'] if chosen['choices'] or 'nearest' not in chosen else []
    return said + check_ways(run)


def check_without_retries(run):
    """Where the best gives memory back, what does without is told, and does."""
    words = ['llama3-8b', '-n', '4', '--cluster', 'l40s-node:1']
    chosen = run.json('choose', *words, '-o', 'retries.ini')
    _, out, _ = run('choose', *words)
    ways = chosen.get('ways_without_retries')
    said = [] if chosen['choices'][0]['alloc_retries'] and ways and \
        out.count('row 1 has no retries with ') == len(ways) else ['%s, but: %s' % (ways, out)]
    for way in ways or []:
        options = [word for pair in way['settings'].split() for word in as_options(*pair.split('=', 1))]
        figures = run.json('predict', 'llama3-8b', '--strategy', 'retries.ini', '--cluster', 'l40s-node:1', *options)
        if not figures['fits'] or figures['alloc_retries'] or figures['step_ms'] != way['step_ms']:
            said.append('%s: %s' % (way, figures))
    calm = run.json('choose', *XL[:5], '--top', '1')
    if 'ways_without_retries' in calm or 'no retries with' in run('choose', *XL[:5])[1]:
        said.append('of what has none: %s' % calm)
    return said


def check_larger_changes(run):
    """Where no setting helps, nothing is offered that was asked for already."""
    said = []
    words = ['choose', CONFIG, '-n', '1', '--cluster', 'l4-node', '--network-key', 'seq=65536']
    for more, wanted, unwanted in (
            ([], ['adapters only (--lora-rank 16; with --lora-base nf4', '--network-key code=own'], []),
            (['--lora-rank', '16'], ['(--seq), weights of 4 bits (--lora-base nf4), or'], ['adapters only']),
            (['--lora-rank', '16', '--lora-base', 'nf4'], ['(--seq), or GPUs with more'], ['adapters only', '(--lora-'])):
        status, out, err = run(*words, *more)
        if status or any(part not in flat(out) for part in wanted) or any(part in out for part in unwanted):
            said.append('%s: %s%s' % (more, out, err))
    return said


def check_reasons(run):
    """Of refused settings two reasons are told, where there are two."""
    words = ['qwen2.5-0.5b', '-n', '8', '--cluster', 'dgx-h100', '--seq', '512', '--knob', 'micro_batch=1']
    said = []
    for more, told in ((['--knob', 'kernels=eager,compiled', '--knob', 'float8=none,tensorwise'], True),
                       (['--knob', 'float8=none,tensorwise'], False)):
        out = flat(run('choose', *words, *more)[1])
        if '(the first: float8 is planned only with compiled blocks; ' not in out or \
                ('or float8=none; another: qwen2.5-0.5b: float8 is not planned for biases' in out) != told or \
                (' another: ' in out) != told:
            said.append('%s: %s' % (more, out))
    return said


def check_four_bits(run):
    """Weights in 4 bits are sharded, too; the strategy that is written says how they lie."""
    words = ['llama-toy', '-n', '2', '--cluster', 'a100-node', '--lora-rank', '4', '--lora-base', 'nf4',
             '--micro-batch', '1']
    chosen = run.json('choose', *words, '--top', '99', '-o', 'four-bits.ini')
    _, out, _ = run('choose', *words)
    said = [] if {'full', 'grad-op', 'none'} <= {row['settings']['sharding'] for row in chosen['choices']} else \
        ['rows: %s' % chosen]
    for row in chosen['choices']:
        if not {'lora_base_storage = model', 'model_dtype = bf16'} <= set(row['strategy'].split('\n')):
            said.append(row['strategy'])
    if 'with --model-dtype bf16 --lora-base-storage model, which FSDP wants' not in flat(out):
        said.append('it is not told: ' + out)
    for more, is_told in (([], True), (['--model-dtype', 'bf16'], False), (['--lora-base', 'nf4'], False)):
        if ('frozen weights are kept in fp32;' in flat(run('choose', *words[:7], *more)[1])) != is_told:
            said.append('what frozen weights lie in: %s' % more)
    if '--lora-base-storage model' in flat(run('choose', *words, '--lora-base-storage', 'uint8')[1]):
        said.append('what was given is changed')
    figures = run.json('predict', 'llama-toy', '--strategy', 'four-bits.ini', '--cluster', 'a100-node')
    if figures['step_ms'] != chosen['choices'][0]['step_ms']:
        said.append('the file is another strategy: %s' % figures)
    return said


def check_small_amounts(run):
    """What a short training takes is shown in three digits; what time is left out is said."""
    words = ['gpt2', '-n', '8', '--cluster', 'a100-node', '--micro-batch', '8', '--sharding', 'full',
             '--checkpointing', 'none', '--price', '2', '--tokens', '10M']
    row = run.json('choose', *words)['choices'][0]
    _, out, _ = run('choose', *words)
    _, evaluated, _ = run('choose', *words, '--eval-batches', '2')
    cells = re.search(r'^  1 +(.*)$', out, re.M).group(1).split()
    wanted = ['%#.3g' % (row['kwh_per_billion_tokens'] / 1e5), '%#.3g' % row['price'], '%#.3g' % row['days']]
    said = [] if cells[-3:] == wanted else ['%s, not %s' % (cells[-3:], wanted)]
    for text, told in ((out, 'restarts and saving'), (evaluated, 'restarts, saving and evaluations')):
        if 'GPUs only, without the time of ' + told not in flat(text):
            said.append('what days lack: ' + text)
    return said


def check_ways(run):
    """What the text offers is what JSON lists, and it does fit."""
    words = ['llama3-70b', '-n', '16', '--cluster', 'dgx-h100']
    ways = run.json('choose', *words)['ways_to_fit']
    _, out, _ = run('choose', *words)
    said = [] if ways and out.count('  fits with ') == len(ways) else ['%s, but: %s' % (ways, out)]
    for way in ways:
        options = [word for pair in way['settings'].split() for word in as_options(*pair.split('=', 1))]
        fits = run.json('predict', 'llama3-70b', '--cluster', 'dgx-h100', '--param-dtype', 'bf16',
                        '--checkpointing', 'full', *(['-n', '16'] if '-n' not in options else []), *options)
        if not fits['fits'] or fits['peak_reserved_bytes'] != way['peak_reserved_bytes']:
            said.append('%s: %s' % (options, fits['peak_reserved_bytes']))
    return said


def check_sharers(run):
    """What shards in vain for its experts, or for one long sequence, is shared by ranks."""
    said = []
    for words, wanted in (
            (['mixtral-8x7b', '--seq', '4096'], ['--expert', '8']),
            (['qwen2.5-72b', '--seq', '32768'], ['--context', '2'])):
        words = [*words, '-n', '64', '--cluster', 'dgx-h100', '--param-dtype', 'bf16', '--checkpointing', 'full']
        _, out, _ = run('predict', *words)
        offered = re.findall(r'^  fits with (.*): step .*, ([\d.]+) GiB reserved(.*)$', out, re.MULTILINE)
        fits = run.json('predict', *words, *wanted)
        reserved = '%.2f' % (fits['peak_reserved_bytes'] / 2**30)
        fewer = ' (of fewer tokens: ranks share a batch)' if '--context' in wanted else ''
        if not fits['fits'] or offered != [(' '.join(wanted), reserved, fewer)]:
            said.append('%s: %s' % (words[0], offered))
    return said


def check_spare(run):
    """What fits by a hair is said to; --spare leaves it out, as though the memory were not there."""
    said = []
    words = ['choose', 'llama3-70b', '-n', '32', '--cluster', 'h200-p5e', '--seq', '8192', '--top', '99']
    everything, kept = run.json(*words), run.json(*words, '--spare', '10')
    tight = [row for row in everything['choices'] if row['peak_reserved_bytes'] > 0.95 * row['allocator_bytes'] and
             row['trains_well']]
    _, out, _ = run(*words)
    if not tight or len(re.findall(r'  \d\.\d % left$', out, re.MULTILINE)) != len(tight) or '--spare 5 keeps' not in out:
        said.append('%d are tight: %s' % (len(tight), out))
    for row in kept['choices']:
        room = everything['choices'][0]['allocator_bytes']
        if row['peak_reserved_bytes'] > 0.9 * room or abs(row['allocator_bytes'] - 0.9 * room) > 1:
            said.append('%s: %s of %s' % (row['title'], row['peak_reserved_bytes'], row['allocator_bytes']))
    _, out, _ = run(*words, '--spare', '10')
    if not kept['choices'] or kept['spare_percent'] != 10 or 'of: its memory less 10 %' not in out:
        said.append(out)
    return said


def as_options(key, value):
    if key.startswith('network.'):
        return ['--network-key', '%s=%s' % (key[len('network.'):], value)]
    return ['-n' if key == 'ranks' else '--' + key.replace('_', '-'), value]


def check_said_once(run):
    """A setting with one value in all rows is said above them, as options, and has no column; one that differs
    has one; of a single row nothing is said above."""
    words = ['choose', 'gpt2-xl', '-n', '8', '--cluster', 'a100-node', '--knob', 'sharding=full', '--knob',
             'micro_batch=1,2', '--knob', 'checkpointing=full']
    (_, several, _), (_, one, _) = run(*words, '--top', '9'), run(*words, '--top', '1')
    head = 'all rows have --sharding full --checkpointing full\n     micro- '
    said = [] if head in several else [several]
    return said + ([] if 'all rows have' not in one and '     sharding  micro-  checkpointing ' in one else [one])


def check_long_names(run):
    """A cluster's name that is too long for a column stands below its row."""
    names = ['dgx-h100:1', 'dgx-h100:1:inter_node.nic_gb_per_s=25:host.record_us=2:host.queue_depth=999']
    _, out, _ = run('choose', 'gpt2', '-n', '8', '--cluster', names[0], '--cluster', names[1], '--tokens', '1T', '--price',
                    '2')
    below = re.findall(r'^ {5}(dgx-h100:1\S*?)(?:;.*)?$', out, re.MULTILINE)
    return [] if sorted(below) == names and max(map(len, out.splitlines())) <= 100 else [out]


def check_few_predictions(run):
    """So that 64 GPUs and 70 billion parameters are a matter of seconds."""
    chosen = run.json('choose', 'llama3-70b', '-n', '64', '--cluster', 'dgx-h100')
    return [] if chosen['n_predicted'] <= 16 else ['%d predictions' % chosen['n_predicted']]


def check_nodes(run):
    """The same cluster with 64 nodes in its file."""
    said = []
    _, text, _ = run('list', 'dgx-h100')
    with open(os.path.join(run.folder, 'larger.ini'), 'w', encoding='utf-8') as file:
        file.write(text.replace('\nnodes = 16', '\nnodes = 64'))
    words = ['gpt2-xl', '-n', '512', '--cluster']
    named, copied = (run.json('predict', *words, name) for name in ('dgx-h100:64', './larger.ini'))
    named['cluster'] = copied['cluster'] = ''
    if named != copied or 'nodes = 64' not in open(os.path.join(run.folder, 'larger.ini')).read():
        said.append('dgx-h100:64 is not a copy with 64 nodes')
    status, _, err = run('predict', 'gpt-toy', '-n', '512', '--cluster', 'dgx-h100:64', '--trace', 'larger.trace')
    other = run('diagnose', 'larger.trace')
    if status or other[0]:
        said.append('its trace cannot be diagnosed: %s%s' % (err, other[2]))
    status, _, err = run('predict', 'gpt2-xl', '-n', '512', '--cluster', 'dgx-h100')
    if status != 2 or '(NAME:64)' not in err:
        said.append('no remedy: ' + err)
    return said


def check_commands(run, source):
    """What is said to be typed next is taken: of a cluster's own file, with a number changed, of a network's key."""
    said = []
    config = os.path.join(source, 'tests', 'oracle', 'recorder', 'configs', 'llama3-8b.json')
    os.makedirs(os.path.join(run.folder, 'own'), exist_ok=True)
    with open(os.path.join(run.folder, 'own', 'mine.ini'), 'w', encoding='utf-8') as file:
        file.write('[cluster]\nlike = dgx-h100\n')
    for network, cluster, keys in (('gpt2', 'own/mine.ini:1', []),
                                   (config, 'dgx-h100:1:inter_node.nic_gb_per_s=25', ['--network-key', 'loss=kernel'])):
        words = [network, '--seq', '1024', '--param-dtype', 'bf16', '--checkpointing', 'none', '--sharding', 'full',
                 '--cluster', cluster]
        _, out, err = run('choose', *words, *keys, '-n', '8', '--knob', 'micro_batch=1', '-o', 'next.ini')
        command = re.search(r"next.ini has row 1's strategy: foreshard (diagnose .* --cluster \S+)", flat(out))
        status, _, err = run(*command.group(1).split()) if command else (2, '', out + err)
        if status or not set(keys) <= set(command.group(1).split()):
            said.append('%s: %s' % (command and command.group(1), err))
        _, out, _ = run('choose', *words, '--tokens', '1T', '--days', '3', '--knob', 'micro_batch=1')
        larger = re.search(r'would do if each stayed as fast: (-n \d+ --cluster (\S+))', out)
        status, _, err = run('predict', *words[:-2], *larger.group(1).split()) if larger else (2, '', out)
        if status or not larger.group(2).endswith(cluster.partition(':1')[2]):
            said.append('%s: %s' % (larger and larger.group(1), err))
        if not out.startswith('llama3-8b.json: ' if network == config else 'gpt2: '):
            said.append('not the name of its plans: ' + out)
    _, out, _ = run('choose', 'gpt2', '--cluster', 'a100-node', '--tokens', '10T', '--days', '3', '--knob', 'micro_batch=1')
    return said + ([] if ', on a cluster whose file has more nodes' in ' '.join(out.split()) else [out])


def check_unlike_ranks(run):
    """Where one rank cannot stand for all, what is shown is what every rank says, in the order of that; most of what
    is not shown is not played so, which is told."""
    said = []
    unlike = {'spine': ('[inter_node]\noversubscription = 4\nnodes_per_leaf = 1\n', 'an oversubscribed spine'),
              'kinds': ('[nodes big]\nat = 1\nlike = h200-p5e\n', 'nodes of several kinds')}
    for name, (lines, reason) in unlike.items():
        with open(os.path.join(run.folder, name + '.ini'), 'w', encoding='utf-8') as file:
            file.write('[cluster]\nlike = dgx-h100\n' + lines)
        words = ['gpt2', '-n', '16', '--cluster', './%s.ini' % name, '--param-dtype', 'bf16', '--flavour', 'fsdp2',
                 '--network-key', 'layers=3']
        knobs = ['--knob', 'sharding=full,hybrid,grad-op', '--knob', 'micro_batch=1,4,16', '--knob',
                 'checkpointing=none,full']
        few, many = run.json('choose', *words, *knobs), run.json('choose', *words, *knobs, '--top', '99')
        for row in many['choices']:
            figures = run.json('predict', *words, *options_of(row['settings']))
            said += ['%s: %s of %s is not as predict has it' % (name, key, row['settings'])
                     for key in ('step_ms', 'mfu', 'peak_reserved_bytes', 'fits', 'trains_well')
                     if row[key] != figures[key]]
        rates = [row['tokens_per_s_per_gpu'] for row in many['choices']]
        if len(rates) < 15 or rates != sorted(rates, reverse=True):
            said.append('%s: rates %s' % (name, rates))
        if few['choices'] != many['choices'][:5]:
            said.append('%s: of few others are best: %s' % (name, few))
        if not 5 <= few['n_every_rank'] < 12 or few['n_predicted'] != many['n_predicted']:
            said.append('%s: %s' % (name, {key: few[key] for key in few if key != 'choices'}))
        out = flat(run('choose', *words, *knobs)[1])
        both = flat(run('choose', *words, *knobs, '--cluster', 'dgx-h100')[1])
        for text in (out, both):
            if ' %s has %s' % (name, reason) not in text or 'no GPU stands for all there' not in text or \
                    'dgx-h100 has' in text:
                said.append(text)
    return said + (['of equal ranks'] if 'n_every_rank' in run.json('choose', *XL) else [])


def check_refusals(run):
    said = []
    run('predict', 'gpt-toy', '-n', '2', '--cluster', 'a100-node', '--trace', 'a.trace')
    run('plan', 'gpt-toy', '-n', '2', '-o', 'a.plan')
    for words, wanted in REFUSED:
        status, out, err = run('choose', *words)
        if status != 2 or wanted not in err or out:
            said.append('%s: status %d, %s%s' % (' '.join(words), status, err, out))
    return said


def check_same_twice(run):
    words = ['choose', 'gpt2', '--cluster', 'a100-node', '--top', '99']
    return [] if run(*words) == run(*words) else ['two runs differ']


def check_wide(run):
    """A table that is too wide says each row's settings below it, as options, and every row is one line."""
    words = ['gpt2', '--cluster', 'a100-node', '--cluster', 'dgx-h100:1', '--price', '2', '--tokens', '1e12', '-n', '8',
             '--flavour', 'fsdp2', '--param-dtype', 'bf16', '--micro-batch', '4', '--knob', 'sharding=full,grad-op', '--knob',
             'checkpointing=full,none', '--knob', 'optimizer_kernel=foreach,fused', '--knob',
             'backward_prefetch=pre,none', '--knob', 'kernels=eager,fused', '--top', '99']
    status, out, err = run('choose', *words)
    if status:
        return ['status %d, %s' % (status, err)]
    lines = out.split('\n')
    rows = [i for i, line in enumerate(lines) if re.match(r' +\d+ +(a100-node|dgx-h100:1) +\d', line)]
    chosen = run.json('choose', *words)['choices']
    said = [] if len(rows) == len(chosen) == 64 else ['%d rows of %d' % (len(rows), len(chosen))]
    for i, end, row in zip(rows, rows[1:], chosen):
        below, options = ' '.join(lines[i + 1:end]).split(';')[0].split(), options_of(row['settings'])
        if below != options or len(lines[i].split()) != len(lines[rows[0]].split()):
            said.append('%s / %s, not %s' % (lines[i], below, options))
    return said


def main(program, source):
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(os.path.abspath(program), folder)
        tap.case('is what predict says', check_against_predictions(run))
        tap.case('writes a strategy', check_strategy_file(run))
        tap.case('rows shown', check_rows_shown(run))
        tap.case('a global batch', check_global_batch(run))
        tap.case('a global batch of ranks that share', check_shared_batch(run))
        tap.case('stages', check_stages(run))
        tap.case('schedules', check_schedules(run))
        tap.case('nothing fits', check_nothing_fits(run))
        tap.case('larger changes', check_larger_changes(run))
        tap.case('two reasons', check_reasons(run))
        tap.case('without retries', check_without_retries(run))
        tap.case('weights in 4 bits', check_four_bits(run))
        tap.case('small amounts', check_small_amounts(run))
        tap.case('ranks that share, to fit', check_sharers(run))
        tap.case('memory kept free', check_spare(run))
        tap.case('said once', check_said_once(run))
        tap.case('a wide table', check_wide(run))
        tap.case('long names', check_long_names(run))
        tap.case('few predictions', check_few_predictions(run))
        tap.case('a cluster with other nodes', check_nodes(run))
        tap.case('what to type next', check_commands(run, source))
        tap.case('ranks that are not alike', check_unlike_ranks(run))
        tap.case('refusals', check_refusals(run))
        tap.case('same input, same bytes', check_same_twice(run))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2]))
