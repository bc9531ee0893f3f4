"""tests/trace/test-export.py FORESHARD - what `foreshard export` writes, held against the trace it came
from, which is read here without any of foreshard's code."""
import json
import os
import pickle
import pickletools
import re
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)),
                os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from tap import Tap
from trace_text import Trace

PLANS = {
    'fsdp2': ['gpt-toy', '-n', '2', '--cluster', 'this-machine'],
    'fsdp1, three ranks, bf16': ['gpt-toy', '-n', '3', '--flavour', 'fsdp1', '--param-dtype', 'bf16',
                                 '--cluster', 'a100-node'],
    'ddp': ['mlp-toy', '-n', '2', '--sharding', 'none', '--cluster', 'a100-node'],
}
# What the reader in PyTorch's memory_viz page knows of protocol 4 (torch/utils/viz/MemoryViz.js).
PAGE_OPCODES = {
    'APPENDS', 'BINGET', 'BININT', 'BININT1', 'BININT2', 'EMPTY_DICT', 'EMPTY_LIST', 'LONG1',
    'LONG_BINGET', 'MARK', 'MEMOIZE', 'SETITEMS', 'STOP', 'APPEND', 'NEWFALSE', 'NEWTRUE',
    'BINUNICODE', 'PROTO'}


def us(ns):
    return round(ns / 1000, 3)


def check_form(events):
    """What Perfetto wants of a thread: of two slices that overlap one lies in the other; of a counter: time goes on."""
    said, threads, counted = [], {}, {}
    for event in events:
        if event['ph'] == 'X':
            begin = round(event['ts'] * 1000)
            threads.setdefault((event['pid'], event['tid']), []).append((begin, begin + round(event['dur'] * 1000)))
        elif event['ph'] == 'C':
            counter = event['pid'], event['name']
            if event['ts'] < counted.get(counter, 0):
                said.append('%s goes back to %s' % (counter, event['ts']))
            counted[counter] = event['ts']
        elif event['ph'] != 'M':
            said.append('a phase %s' % event['ph'])
    for thread, slices in threads.items():
        ends = []
        for begin, end in sorted(slices, key=lambda times: (times[0], -times[1])):
            while ends and ends[-1] <= begin:
                ends.pop()
            if ends and end > ends[-1]:
                said.append('a slice of %s from %d to %d ends behind the one that it lies in' % (thread, begin, end))
            ends.append(end)
    return said[:3]


def check_chrome(trace, text):
    """Every op row is an event of its lane's thread; every memory row shows its sizes."""
    document = json.loads(text)
    said = check_form(document['traceEvents'])
    origin = int(document['otherData']['origin_ns'])
    events = document['traceEvents']
    threads = {(event['pid'], event['tid']): event['args']['name'] for event in events
               if event['name'] == 'thread_name'}
    found = sorted((event['pid'], event['args']['step'], event['args']['instruction'], event['name'],
                    threads[event['pid'], event['tid']], round(event['ts'], 3), round(event['dur'], 3))
                   for event in events if event['ph'] == 'X' and 'args' in event)
    wanted = sorted((op['rank'], op['step'], op['number'],
                     trace.kinds[op['instruction']['rest'][0]][1],
                     'host' if op['instruction']['what'] == 'host_op' else trace.lanes[op['lane']],
                     us(op['start'] - origin), us(op['end'] - op['start'])) for op in trace.ops)
    if found != wanted:
        said.append('op events are not the op rows: %d and %d' % (len(found), len(wanted)))
    empty = {thread for thread in threads if threads[thread] == 'host'} - \
        {(event['pid'], event['tid']) for event in events if event['ph'] == 'X'}
    if empty:
        said.append('threads of hosts without an event: %s' % sorted(empty))
    if min(event['ts'] for event in events if 'ts' in event) < 0:
        said.append('an event before 0')
    counters = [event for event in events if event['ph'] == 'C']
    by_category = [event for event in counters if 'categor' in event['name']]
    statistics = [event for event in counters if event['name'].startswith('allocator')]
    for rows, name, value in ((by_category, 'by category', lambda args: sum(args.values())),
                              (statistics, 'allocated', lambda args: args['allocated'])):
        # Before the first row of a rank stands one for the state in which recording begins.
        found = [(event['pid'], round(event['ts'], 3), value(event['args'])) for event in rows]
        wanted = [(row['rank'], us(row['at'] - origin), row['allocated']) for row in trace.memory]
        if [entry for entry in found if entry[2] > 0 or entry in wanted] != wanted:
            said.append('counters %s are not the memory rows' % name)
    for rank in trace.ranks:
        wanted = [(row['active'], row['reserved']) for row in trace.memory if row['rank'] == rank]
        found = [(event['args']['active'], event['args']['reserved']) for event in statistics
                 if event['pid'] == rank]
        if found[-len(wanted):] != wanted:
            said.append('active and reserved are not those of the memory rows')
    return said


def check_opcodes(data):
    said, open_marks, since_mark = [], [], 0
    for opcode, _, _ in pickletools.genops(data):
        if opcode.name not in PAGE_OPCODES:
            said.append('the page does not know the opcode ' + opcode.name)
    return said[:3]


def replay(trace, rank, events, segments):
    """The events, played: sums must be those of the rows, and no two blocks may share an address."""
    said, live, pending, end = [], {}, {}, 0
    base = segments[0]['address']
    sizes = []
    for event in events:
        action, address, size = event['action'], event.get('addr'), event.get('size')
        if action == 'alloc':
            for other, other_size in list(live.items()) + list(pending.items()):
                if address < other + other_size and other < address + size:
                    said.append('blocks overlap at %d' % address)
            live[address] = size
        elif action == 'free_requested':
            pending[address] = live.pop(address)
        elif action == 'free_completed':
            pending.pop(address)
        elif action == 'segment_map':
            if address != base + end:
                said.append('the segment does not grow at its end')
            end += size
        elif action == 'segment_unmap':
            end -= size
        if any(at + n > base + end for at, n in list(live.items())[-1:]) and action == 'alloc':
            said.append('a block out of the segment')
        if action in ('alloc', 'free_requested'):
            sizes.append((sum(live.values()), sum(live.values()) + sum(pending.values())))
    rows = [row for row in trace.memory if row['rank'] == rank and row['delta'] != 0]
    if [row['allocated'] for row in rows] != [allocated for allocated, _ in sizes]:
        said.append('allocated is not that of the rows')
    # What was freed at a row may be completed right behind it, so allocations tell.
    if any(active < row['active'] for row, (_, active) in zip(rows, sizes) if row['delta'] > 0):
        said.append('fewer bytes are active than the rows say')
    peaks = max(row['active'] for row in rows), max(active for _, active in sizes)
    if peaks[1] > 1.02 * peaks[0]:
        said.append('peak active %d; the rows say %d' % (peaks[1], peaks[0]))
    if end < max(row['reserved'] for row in rows[-1:]):
        said.append('less is reserved at the end than the last row says')
    blocks = [block for segment in segments for block in segment['blocks']]
    held = sum(block['size'] for block in blocks if block['state'] == 'active_allocated')
    if held != rows[-1]['allocated'] or sum(block['size'] for block in blocks) != end:
        said.append('the blocks at the end are not what is held then')
    return said


def check_memory_viz(trace, data):
    said = check_opcodes(data)
    snapshot = pickle.loads(data)
    for device, rank in enumerate(sorted(trace.ranks)):
        events = snapshot['device_traces'][device]
        segments = [segment for segment in snapshot['segments'] if segment['device'] == device]
        said += replay(trace, rank, events, segments)
        categories = {event['category'] for event in events if 'category' in event}
        if categories - {'unknown'} != {row['category'].split('/')[0] for row in trace.memory}:
            said.append('categories are %s' % sorted(categories))
        frames = [event['frames'] for event in events if event['action'] == 'alloc']
        wanted = [(row['number'], row['step']) for row in trace.memory
                  if row['rank'] == rank and row['delta'] > 0]
        if [(frame[0]['line'], frame[1]['line']) for frame in frames] != wanted:
            said.append('frames do not name the instructions')
        if not all(re.fullmatch(r'.+, module \S+, lane \S+', frame[1]['name']) for frame in frames):
            said.append('a frame names no module: %s' % frames[0])
    return said


def ask_twice(path):
    """Behind the last memory row, the last step's first allocation is asked for twice more."""
    with open(path, encoding='utf-8') as file:
        lines = file.read().split('\n')
    head = max(at for at, line in enumerate(lines) if line.startswith('memory '))
    count = int(lines[head].split(' ')[3])
    rows = [[int(cell) for cell in line.split(' ')] for line in lines[head + 1:head + 1 + count]]
    number, _, category, delta, _, _, _ = next(row for row in rows if row[3] > 0)
    allocated = rows[-1][4]
    more = ['%d 1000 %d %d %d 0 0' % (number, category, delta, allocated + (1 + i) * delta)
            for i in range(2)]
    lines[head] = re.sub(r'\d+$', str(count + 2), lines[head])
    lines[head + 1 + count:head + 1 + count] = more
    text = re.sub(r'^(end ops \d+ memory) (\d+)$', lambda end: '%s %d' % (end[1], int(end[2]) + 2),
                  '\n'.join(lines), flags=re.M)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return number, delta, allocated


def check_asked_twice(data, number, delta, allocated):
    """Before its second block comes, a buffer gives its first back."""
    snapshot = pickle.loads(data)
    said = []
    actions = [event['action'] for event in snapshot['device_traces'][0]
               if event.get('frames') and event['frames'][0]['line'] == number]
    if actions[-4:] != ['alloc', 'free_requested', 'free_completed', 'alloc']:
        said.append('its last events are %s' % actions[-4:])
    held = sum(block['size'] for segment in snapshot['segments'] for block in segment['blocks']
               if block['state'] == 'active_allocated')
    if held != allocated + delta:
        said.append('%d bytes are held at the end, not %d' % (held, allocated + delta))
    return said


def check_pipes(program, path):
    """What comes through a pipe, once, is what lies in the file, for whoever looks at its begin first."""
    said = []
    with open(path, 'rb') as file:
        data = file.read()

    def told(words, **more):
        done = subprocess.run([program, *words], capture_output=True, check=False, **more)
        return done.returncode, done.stdout

    for words in (['export', '--chrome', '%s', '-o', '-'], ['compare', '%s', path], ['compare', path, '%s'],
                  ['diagnose', '%s', '--json'], ['explain', 'step_ms', '%s'], ['plot', '%s']):
        wanted = told([path if word == '%s' else word for word in words])
        for name in ('-', '/dev/stdin'):
            found = told([name if word == '%s' else word for word in words], input=data)
            if wanted[0] != 0 or found[0] != 0 or len(found[1]) < 0.9 * len(wanted[1]):
                said.append('%s with %s: status %d, %d' % (words, name, wanted[0], found[0]))
            elif words[0] in ('export', 'explain', 'diagnose') and found[1] != wanted[1]:
                said.append('%s with %s: other words' % (words, name))
    return said


def add_twin(path):
    """Rank 1 does what rank 0 does, in the same trace."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    head, rows = text.split('\nrank 0 0\n')
    rows, end = rows.split('\nend ')
    counts = [str(2 * int(word)) if word.isdigit() else word for word in end.split()]
    twin = re.sub(r'^(ops|memory) 0 ', r'\1 1 ', rows, flags=re.M)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(head.replace(' ranks 1', ' ranks 2') + '\nrank 0 0\nrank 1 0\n' + rows + '\n' +
                   twin + '\nend ' + ' '.join(counts) + '\n')


def main():
    program = sys.argv[1]
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'a.trace')
        for name, words in PLANS.items():
            subprocess.run([program, 'predict', *words, '--trace', path], check=True,
                           stdout=subprocess.DEVNULL)
            if name == 'ddp':
                add_twin(path)
            trace = Trace(path)
            written = []
            for option in ('--chrome', '--memory-viz', '--chrome', '--memory-viz'):
                output = os.path.join(folder, 'out')
                subprocess.run([program, 'export', option, path, '-o', output], check=True)
                with open(output, 'rb') as file:
                    written.append(file.read())
            tap.case('chrome, ' + name, check_chrome(trace, written[0]))
            tap.case('memory-viz, ' + name, check_memory_viz(trace, written[1]))
            tap.case('same bytes again, ' + name,
                     [] if written[:2] == written[2:] else ['the bytes differ'])
        subprocess.run([program, 'predict', *PLANS['fsdp2'], '--trace', path], check=True,
                       stdout=subprocess.DEVNULL)
        tap.case('a trace through a pipe', check_pipes(program, path))
        asked = ask_twice(path)
        data = subprocess.run([program, 'export', '--memory-viz', path, '-o', '-'], check=True,
                              stdout=subprocess.PIPE).stdout
        tap.case('memory-viz, a buffer asked for twice', check_asked_twice(data, *asked))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
