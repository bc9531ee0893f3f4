"""tests/oracle/gpu/cluster_file.py - a cluster file from what the recorders measured.

    cluster_file.py RESULTS -o models/clusters/h200-measured.ini --base models/clusters/h200-node.ini
        --foreshard build/cli/foreshard --fit-gemm build/bench/fit-gemm

RESULTS is a folder with products.csv, kernels.jsonl, host.jsonl and copies.jsonl, as record_*.py write them, and
any memory-*.jsonl. Each number that was measured replaces the base file's, with its source above it; the others
are kept as they are and say so. What a file lacks (the time did not suffice, say) is left as the base has it.

The host's numbers are PyTorch's: `launch_us` is what is left of a block's forward and backward, run by PyTorch
on tiny tensors, when its allocations are paid, shared out to the launches that the plan of the same block has.
"""
import argparse
import collections
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

# At least so many bytes must a call move for its rate to be memory's and not a cache's (H200: 60 MB of L2).
LARGE_BYTES = 128e6
# As sim/costs/compute.c tells them apart.
REDUCTIONS = ('layernorm layernorm_backward rmsnorm rmsnorm_backward softmax softmax_backward log_softmax '
              'log_softmax_backward nll_loss embedding embedding_backward sum_rows sum_columns').split()
COLLECTIVES = ('all_gather', 'reduce_scatter', 'all_reduce', 'broadcast')
STREAMING = 'copy cast add accumulate mul gelu_tanh gelu_tanh_backward silu silu_backward'.split()


class Unusable(Exception):
    pass


# ---- reading -------------------------------------------------------------------------------------

class Results:
    """The rows of all files of a folder, by what they are of."""

    def __init__(self, folder):
        self.folder = folder
        self.header = None
        self.rows = collections.defaultdict(list)
        for name in ('kernels.jsonl', 'host.jsonl', 'copies.jsonl'):
            self.read(os.path.join(folder, name))
        if self.header is None:
            raise Unusable(folder + ': no kernels.jsonl, host.jsonl or copies.jsonl; run the recorders first')
        if self.header['device'] != 'cuda':
            raise Unusable(folder + ': recorded without a GPU (device %s); a cluster file needs one'
                           % self.header['device'])

    def read(self, path):
        if not os.path.exists(path):
            return
        with open(path, encoding='utf-8') as lines:
            for number, line in enumerate(lines, 1):
                try:
                    row = json.loads(line)
                except ValueError:
                    raise Unusable('%s:%d: no JSON; the file is cut short or damaged' % (path, number)) from None
                if 'header' in row:
                    self.header = self.header or row['header']
                elif row:
                    self.rows[next(iter(row))].append(row)

    def matching(self, kind, **wanted):
        return [row for row in self.rows[kind] if all(row.get(k) == v for k, v in wanted.items())]

    def source(self):
        head = self.header
        return '%s, %s, driver %s, torch %s' % (head['date'], head['gpu'], head.get('driver', '?'), head['torch'])


def median(rows, key):
    values = [row[key] for row in rows if key in row]
    return statistics.median(values) if values else None


# ---- the base file -------------------------------------------------------------------------------

def own_entries_of(path):
    """[(section, key, value, comment)]: a comment counts for all keys below it up to the next one."""
    entries, section, comment, fresh = [], '', [], False
    with open(path, encoding='utf-8') as lines:
        for line in lines:
            line = line.strip()
            if line.startswith('#'):
                comment = [*comment, line[1:].strip()] if fresh else [line[1:].strip()]
                fresh = True
            elif line.startswith('['):
                section, comment, fresh = line[1:-1], [], False
            elif '=' in line:
                key, value = (part.strip() for part in line.split('=', 1))
                entries.append((section, key, value, ' '.join(comment)))
                fresh = False
            elif not line:
                fresh = False
    return entries


def entries_of(path):
    """The same with those of the files beside it that it is like, section by section."""
    own = own_entries_of(path)
    like = next((value for section, key, value, _ in own if (section, key) == ('cluster', 'like')), None)
    theirs = entries_of(os.path.join(os.path.dirname(path), like + '.ini')) if like else []
    entries = {entry[:2]: entry for entry in [*theirs, *own] if entry[:2] != ('cluster', 'like')}
    sections = list(dict.fromkeys(section for section, _ in entries))
    return sorted(entries.values(), key=lambda entry: sections.index(entry[0]))


# ---- what was measured -----------------------------------------------------------------------------

class Measured:
    """(section, key) -> (value, how it was measured)."""

    def __init__(self):
        self.numbers = {}

    def set(self, section, key, value, source):
        if value is not None:
            self.numbers[section, key] = ('%.4g' % value if isinstance(value, float) else str(value), source)


def rate(results, op, dtype=None):
    rows = [r for r in results.matching('kernel', kernel=op)
            if r['bytes'] >= LARGE_BYTES and (dtype is None or r['dtype'] == dtype)]
    return median(rows, 'gb_per_s')


def take_device(measured, results, peak_gb_per_s):
    head = results.header
    measured.set('device', 'model', head['gpu'], 'as the driver calls it')
    measured.set('device', 'memory_bytes', head.get('memory_bytes'), 'cudaMemGetInfo: total')
    measured.set('device', 'compute_capability', head.get('compute_capability'), 'as the driver says')
    measured.set('device', 'sms', head.get('sms'), 'as the driver says')
    for key, ops, words in (('memory_efficiency', STREAMING, 'kernels that only move bytes'),
                            ('reduction_efficiency', REDUCTIONS, 'kernels that add up')):
        rates = [r for r in (rate(results, op, 'bf16') for op in ops) if r]
        if rates:
            measured.set('device', key, statistics.median(rates) / peak_gb_per_s,
                         'median of %d kinds of %s, bf16, 128 MB and more: %.0f GB/s of %.0f'
                         % (len(rates), words, statistics.median(rates), peak_gb_per_s))
    gap = median(results.matching('launch'), 'us')
    measured.set('device', 'launch_overhead_ns', round(gap * 1e3) if gap else None,
                 'from one tiny kernel to the next, the host ahead of them')
    ways = [median(results.matching('copy', copy=way, memory='pinned', bytes=2**30), 'gb_per_s')
            for way in ('to_gpu', 'to_host')]
    if all(ways):
        measured.set('device', 'host_link_gb_per_s', float(min(ways)),
                     'pinned copies of 1 GiB: %.1f GB/s to the GPU, %.1f back' % tuple(ways))


def take_outside(measured, folder):
    """What the driver counts as used beside what PyTorch's allocator holds."""
    outside = []
    for path in sorted(glob.glob(os.path.join(folder, 'memory-*.jsonl'))):
        with open(path, encoding='utf-8') as lines:
            for line in lines:
                row = json.loads(line)
                for phase in row.get('summary', {}).get('phases', {}).values():
                    if 'device_used' in phase:
                        outside.append(phase['device_used'] - phase['reserved'])
    if outside:
        measured.set('device', 'outside_allocator_bytes', int(statistics.median(outside)),
                     'cudaMemGetInfo less PyTorch\'s reserved bytes: %.2f to %.2f GiB in %d readings; without '
                     'NCCL, which takes more' % (min(outside) / 2**30, max(outside) / 2**30, len(outside)))


def take_kernels(measured, results):
    for op in sorted({row['kernel'] for row in results.rows['kernel']}):
        value = rate(results, op)
        if value and ' ' not in op:  # "adamw fused" is a step of the optimizer, below
            measured.set('kernels', op, float(value), 'GB/s, median over shapes and dtypes')
    fused = rate(results, 'adamw fused')
    measured.set('kernels', 'adam_fused', float(fused) if fused else None, 'GB/s of a step of fused AdamW, fp32')


def take_allocator(measured, results):
    for key, call in (('segment_new_us', 'cudaMalloc'), ('segment_free_us', 'cudaFree')):
        rows = [r for r in results.matching('malloc', malloc=call)
                if r.get('alive') == 100 and 20 * 2**20 <= r['bytes'] <= 1024 * 2**20]
        if rows:
            measured.set('allocator', key, float(median(rows, 'us')),
                         '%s of 20 MiB to 1 GiB beside 100 segments: %.0f to %.0f us'
                         % (call, min(r['us'] for r in rows), max(r['us'] for r in rows)))


# ---- the host's share of a block -------------------------------------------------------------------

def counts_of(foreshard, network, layers, options):
    """How often each kind of instruction stands in a later step of the plan, by phase."""
    with tempfile.TemporaryDirectory() as folder:
        path, plan = os.path.join(folder, 'blocks.ini'), os.path.join(folder, 'blocks.plan')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(re.sub(r'(?m)^layers *=.*', 'layers = %d' % layers, network))
        subprocess.run([foreshard, 'plan', path, '-o', plan, *options], check=True, stdout=subprocess.DEVNULL)
        with open(plan, encoding='utf-8') as lines:
            text = lines.read()
    section = re.split(r'(?m)^section (?:steady.*)$', text.split('\nsection second', 1)[1])[0]
    counts, phase = collections.Counter(), ''
    for line in section.split('\n'):
        words = line.split()
        if words and words[0].startswith('@'):
            phase = words[0][1:]
        elif words and words[0] == 'launch':
            counts[phase, 'collective' if words[2] in COLLECTIVES else 'launch'] += 1
        elif words:
            counts[phase, words[0]] += 1
    return counts


def per_block(foreshard, network, options):
    few, many = (counts_of(foreshard, network, layers, options) for layers in (2, 10))
    return {key: (many[key] - few[key]) / 8 for key in many}


def take_host(measured, results, foreshard, network):
    call = {name: median(results.matching('call', call=name), 'us')
            for name in ('record', 'wait', 'host_wait of a past event', 'zeros', 'zeros + mark')}
    known = {'alloc': median(results.matching('call', call='alloc', size='3 MiB'), 'us'),
             'free': median(results.matching('call', call='free', size='3 MiB'), 'us'),
             'record': call['record'], 'wait': call['wait']}
    if call['zeros'] and call['zeros + mark']:
        known['mark'] = max(0.0, call['zeros + mark'] - call['zeros'])
    for kind, us in known.items():
        measured.set('host', kind + '_us', float(us) if us is not None else None, 'loops of that call alone')
    known = {kind: us for kind, us in known.items() if us is not None}
    measured.set('host', 'host_wait_us', call['host_wait of a past event'], 'a wait for an event long past')

    def block_us(mode):
        return [median(results.matching('block', mode=mode, phase=phase), 'us') for phase in ('forward', 'backward')]

    def paid(counts, kinds):
        return sum(n * known.get(kind, 0) for (phase, kind), n in counts.items()
                   if phase in ('forward', 'backward') and kind in kinds)

    def number_of(counts, kind):
        return sum(n for (phase, k), n in counts.items() if phase in ('forward', 'backward') and k == kind)

    plain = block_us('none')
    if not foreshard or None in plain or not {'alloc', 'free'} <= set(known):
        return
    counts = per_block(foreshard, network, ['-n', '1', '--sharding', 'none'])
    launches = number_of(counts, 'launch')
    launch_us = (sum(plain) - paid(counts, ('alloc', 'free'))) / launches
    measured.set('host', 'cpu_factor', 1, 'what is measured is of this host')
    measured.set('host', 'launch_us', float(launch_us),
                 'a block of GPT takes PyTorch %.0f us forward and %.0f backward on tiny tensors: %.0f launches and '
                 'their allocations' % (*plain, launches))
    sharded = block_us('fsdp2')
    if None in sharded:
        return
    counts = per_block(foreshard, network, ['-n', '8', '--param-dtype', 'bf16', '--reduce-dtype', 'fp32'])
    collectives = number_of(counts, 'collective')
    rest = sum(sharded) - paid(counts, known) - launch_us * number_of(counts, 'launch')
    measured.set('host', 'collective_us', max(float(rest / collectives), launch_us),
                 'the same block in FSDP2: %.0f us forward, %.0f backward; what launches and allocations leave, for '
                 '%.0f collectives: FSDP\'s hooks are in it' % (*sharded, collectives))


# ---- products and attention ------------------------------------------------------------------------

def take_products(measured, results, fit_gemm, base_name, notes):
    path = os.path.join(results.folder, 'products.csv')
    if not fit_gemm or not os.path.exists(path):
        return
    sections = {'matmul_efficiency': 'device', 'attention_efficiency': 'device',
                'attention_backward_efficiency': 'device'}
    for what, section in (('products', 'matmul'), ('attention', 'attention')):
        answer = subprocess.run([fit_gemm, base_name, path, what], capture_output=True, text=True, check=False)
        if answer.returncode:
            raise Unusable('fit-gemm: ' + answer.stderr.strip())
        errors = [line.lstrip('# ') for line in answer.stdout.split('\n') if line.startswith('#')]
        if not re.search(r'fitted: [1-9]', answer.stdout):
            notes.append('no %s of this GPU in products.csv; models/published/gemm.ini names GPUs' % what)
            continue
        for key, value in re.findall(r'(?m)^(\w+) = (\S+)$', answer.stdout):
            measured.set(sections.get(key, section), key, value, 'bench/fit-gemm: ' + '; '.join(errors))


# ---- writing -----------------------------------------------------------------------------------------

def text_of(measured, base, results, title, base_name):
    lines = ['# Measured by tests/oracle/gpu on %s.' % results.source(),
             '# Host: %s. Each number stands below how it was measured; "base" marks what was not, and is' %
             results.header['host'], '# as in %s.ini.' % base_name]
    sections = []
    for section, _, _, _ in base:
        if section not in sections:
            sections.append(section)
    sections.insert(sections.index('host'), 'kernels')
    for section in sections:
        keys = [entry for entry in base if entry[0] == section]
        known = {entry[1] for entry in keys}
        keys += [(s, key, None, '') for s, key in measured.numbers if s == section and key not in known]
        lines += ['', '[%s]' % section] if keys else []
        last_comment = None
        for _, key, value, comment in keys:
            if (section, key) == ('cluster', 'title'):
                lines.append('title = ' + title)
                continue
            value, source = measured.numbers.get((section, key), (value, 'base' + (': ' + comment if comment else '')))
            if source != last_comment:
                lines += wrapped(source)
                last_comment = source
            lines.append('%s = %s' % (key, value))
    return '\n'.join(lines) + '\n'


def wrapped(text, width=118):
    lines, line = [], '#'
    for word in text.split():
        if len(line) + 1 + len(word) > width:
            lines.append(line)
            line = '#'
        line += ' ' + word
    return [*lines, line]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('results')
    parser.add_argument('--base', required=True)
    parser.add_argument('-o', '--output', required=True)
    parser.add_argument('--foreshard', help='to count the launches of a block; without it launch_us stays the base\'s')
    parser.add_argument('--fit-gemm', help='without it products and attention stay the base\'s')
    options = parser.parse_args()
    base_name = os.path.splitext(os.path.basename(options.base))[0]
    measured, notes = Measured(), []
    try:
        results = Results(options.results)
        base = entries_of(options.base)
        numbers = {(section, key): value for section, key, value, _ in base}
        take_device(measured, results, float(numbers['device', 'memory_gb_per_s']))
        take_outside(measured, options.results)
        take_kernels(measured, results)
        take_allocator(measured, results)
        network = os.path.join(os.path.dirname(options.base), '..', 'networks', 'gpt-toy.ini')
        with open(network, encoding='utf-8') as file:
            take_host(measured, results, options.foreshard, file.read())
        take_products(measured, results, options.fit_gemm, base_name, notes)
    except (Unusable, OSError, subprocess.CalledProcessError) as error:
        print('cluster_file.py: %s' % error, file=sys.stderr)
        sys.exit(2)
    title = '%s, measured %s; links as in %s' % (results.header['gpu'], results.header['date'], base_name)
    aside = options.output + '.new'
    with open(aside, 'w', encoding='utf-8') as file:
        file.write(text_of(measured, base, results, title, base_name))
    os.rename(aside, options.output)
    for note in notes:
        print('note: ' + note)
    print('%s: %d numbers measured, %d as in %s' % (options.output, len(measured.numbers), sum(
        (section, key) not in measured.numbers for section, key, _, _ in base), base_name))


if __name__ == '__main__':
    main()
