"""tests/oracle/gpu/snapshot.py - PyTorch's memory snapshot in a few KB.

condensed() keeps the segments by size and stream, how often each action of the allocator happened, and who held
the memory at the peak of what was recorded; for toys also every event, as a word each:
a (asked for bytes), f (released: the how-manieth a, from 0; - for an older one), s and S (a segment came, went), in host order.
"""
import collections

OWN_FILES = ('networks.py', 'building_blocks.py', 't5.py')


def condensed(taken, with_events):
    trace = taken['device_traces'][0]
    return {'segments': segments(taken['segments']),
            'actions': dict(collections.Counter(entry['action'] for entry in trace)),
            'at_peak': at_peak(trace), **({'events': events(trace)} if with_events else {})}


def segments(taken):
    """[bytes, stream, small or large, how many, bytes allocated in them, bytes active in them]"""
    streams = {}
    sums = {}
    for segment in taken:
        stream = streams.setdefault(segment['stream'], len(streams))
        key = (segment['total_size'], stream, segment['segment_type'])
        count, allocated, active = sums.get(key, (0, 0, 0))
        sums[key] = (count + 1, allocated + segment['allocated_size'], active + segment['active_size'])
    return [[*key, *values] for key, values in sorted(sums.items(), reverse=True)]


def label_of(frames):
    """The innermost frame of the networks' own files, else of any Python code."""
    for frame in frames:
        name = frame['filename'].rsplit('/', 1)[-1]
        if name in OWN_FILES:
            return '%s:%s:%d' % (name, frame['name'], frame['line'])
    for frame in frames:
        if frame['filename'].endswith('.py'):
            return '%s:%s' % ('/'.join(frame['filename'].rsplit('/', 2)[-2:]), frame['name'])
    return 'backward, or without a Python frame'


def at_peak(trace, most=15):
    """Who made the blocks of the recorded stretch that lived when it held most."""
    live, held, best, best_live = {}, 0, -1, {}
    changed = False
    for entry in trace:
        if entry['action'] == 'alloc':
            live[entry['addr']] = entry
            held += entry['size']
            changed = True
        elif entry['action'] == 'free_requested' and entry['addr'] in live:
            if changed and held > best:
                best, best_live = held, dict(live)
            changed = False
            held -= live.pop(entry['addr'])['size']
    if changed and held > best:
        best, best_live = held, dict(live)
    sums = collections.defaultdict(lambda: [0, 0])
    for entry in best_live.values():
        owner = sums[label_of(entry.get('frames', []))]
        owner[0] += entry['size']
        owner[1] += 1
    owners = sorted(([size, count, label] for label, (size, count) in sums.items()), reverse=True)
    return {'bytes_of_the_step': max(best, 0), 'owners': owners[:most],
            'others': sum(size for size, _, _ in owners[most:])}


def events(trace):
    words, number_of, made = [], {}, 0
    for entry in trace:
        action = entry['action']
        if action == 'alloc':
            number_of[entry['addr']] = made
            made += 1
            words.append('a%d' % entry['size'])
        elif action == 'free_requested':
            words.append('f%s' % number_of.pop(entry['addr'], '-'))
        elif action in ('segment_alloc', 'segment_free'):
            words.append(('s%d' if action == 'segment_alloc' else 'S%d') % entry['size'])
    return ' '.join(words)
