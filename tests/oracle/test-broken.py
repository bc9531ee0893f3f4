"""tests/oracle/test-broken.py CHECK SOURCE - recordings that are cut short or hold something else are refused by name.

Each is a recording with one thing changed; `check` exits 2 and says which file and line, or what is missing."""
import json
import os
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from tap import Tap

RECORDED = os.path.join('tests', 'oracle', 'recordings', 'mlp-fsdp2-w2-events.jsonl')


def first(lines, kind):
    return next(i for i, line in enumerate(lines) if kind in (line.get('kind'), *line))


def changed(lines, kind, change):
    """The lines with the first of a kind changed, and which it is, from 1."""
    lines = json.loads(json.dumps(lines))
    at = first(lines, kind)
    change(lines[at])
    return lines, at + 1


def of_options(**values):
    return lambda line: line['header']['options'].update(values)


def of_header(key):
    return lambda line: line['header'].pop(key)


SLIPS = (
    ('a header without its version', 'header', of_header('torch'), 'the header lacks torch'),
    ('a header without options', 'header', of_header('options'), 'the header lacks options'),
    ('a world of no rank', 'header', of_options(world=0), 'rank 0 is none of 0 ranks'),
    ('a rank beyond the world', 'header', of_options(rank=2), 'rank 2 is none of 2 ranks'),
    ('an allocation without bytes', 'alloc', lambda line: line.pop('bytes'), 'alloc lacks bytes'),
    ('an allocation of less than nothing', 'alloc', lambda line: line.update(bytes=-5), 'alloc lacks bytes'),
    ('a block that is no whole number', 'free', lambda line: line.update(block=1.5), 'free lacks block'),
    ('a collective without its ranks', 'collective', lambda line: line.pop('group_size'), 'collective lacks group_size'),
    ('an event that waits for no event', 'wait_event', lambda line: line.update(event='x'), 'wait_event lacks event'),
    ('a step that is not due', 'alloc', lambda line: line.update(step=7), 'step 7 stands where step 0 is due'),
    ('a summary without its end', 'summary', lambda line: line['summary'].pop('end'), 'the summary lacks end'),
    ('a peak without bytes', 'summary', lambda line: line['summary']['peak_bytes'].pop('breakdown'),
     'the summary lacks peak_bytes'),
    ('a collective cut short', 'summary', lambda line: line['summary']['collective_order'][0].pop(),
     'the summary lacks collective_order'),
)


def checked(check, lines):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'x-events.jsonl')
        with open(path, 'w') as file:
            file.writelines(json.dumps(line) + '\n' for line in lines)
        done = subprocess.run([check, path], capture_output=True, text=True)
    return done.returncode, done.stderr.replace(path, 'FILE')


def main():
    check, source = sys.argv[1:]
    with open(os.path.join(source, RECORDED)) as file:
        lines = [json.loads(line) for line in file]
    tap = Tap()

    def says(what, broken, begin, words=''):
        status, said = checked(check, broken)
        right = status == 2 and said.startswith('check: FILE' + begin) and words in said
        tap.case(what, [] if right else [f'status {status}: {said}'])

    def is_equal(what, lines):
        status, said = checked(check, lines)
        tap.case(what, [] if (status, said) == (0, '') else [f'status {status}: {said}'])

    is_equal('the recording itself is equal', lines)
    more, _ = changed(lines, 'alloc', lambda line: line.update(of_a_later_recorder=1))
    more.insert(3, {'step': 0, 'n': 0, 'kind': 'of_a_later_recorder'})
    is_equal('fields and kinds that are not known are passed over', more)
    for what, kind, change, words in SLIPS:
        broken, at = changed(lines, kind, change)
        says(what, broken, f':{at}: {words}')
    end = first(lines, 'summary')
    says('a file cut before the first summary', lines[:end], ': ', 'it lacks the summary that ends a step')
    says('a file cut in the second step', lines[:end + 5], ': cut short: step 1 has no summary')
    later, _ = changed(lines, 'header', lambda line: line['header'].update(torch='9.9.0'))
    says('a version not known here', later, ': pytorch must be')
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
