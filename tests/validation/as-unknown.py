"""tests/validation/as-unknown.py FOLDER [SCORES.csv] - what predictions of a program that no rule knows are off by.

Alone it writes each train_*.csv into FOLDER as though a stranger had published it: source, reference and notes are gone, and
the program is called PyTorch, with FSDP1, FSDP2 or DDP as it shards. Then

    foreshard validate --csv FOLDER/train_*.csv > SCORES.csv

predicts all of it by the rules for strangers alone, and with SCORES.csv this program says how far off that is: over all rows,
and over sources, each by its own median, so that a source with hundreds of rows counts as one."""
import collections
import csv
import glob
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def program(row):
    """What a stranger would call the program of a row."""
    framework, sharding = row['framework'].lower(), row['sharding_strategy'].lower()
    if row['gpus'] == '1':
        return 'PyTorch'
    if 'ddp' in framework.replace('fsdp', '') or sharding.startswith('ddp'):
        return 'PyTorch DDP'
    if 'fsdp1' in sharding or 'fsdp1' in framework:
        return 'PyTorch FSDP1'
    newer = ('fsdp2' in framework + sharding, 'fully_shard' in sharding, framework.startswith(('torchtitan', 'torchtune')))
    return 'PyTorch FSDP2' if any(newer) else 'PyTorch FSDP1'


def tables():
    """Name and rows of each table, without what FSDP does not run."""
    for path in sorted(glob.glob(os.path.join(HERE, 'train_*.csv'))):
        with open(path, encoding='utf-8', newline='') as file:
            rows = [row for row in csv.DictReader(file) if not row['framework'].startswith('YaFSDP')]
        yield os.path.basename(path), rows


def write(folder):
    os.makedirs(folder, exist_ok=True)
    for name, rows in tables():
        with open(os.path.join(folder, name), 'w', encoding='utf-8', newline='') as file:
            table = csv.DictWriter(file, rows[0].keys(), lineterminator='\n')
            table.writeheader()
            for row in rows:
                table.writerow({**row, 'framework': program(row), 'source': 'a stranger', 'source_ref': 'README.md', 'notes': ''})


def within(values, share):
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def score(path):
    sources = {(name, line): row['source'] for name, rows in tables() for line, row in enumerate(rows, 2)}
    errors = {'time': collections.defaultdict(list), 'memory': collections.defaultdict(list)}
    with open(path, encoding='utf-8', newline='') as file:
        for row in csv.DictReader(file):
            source = sources[os.path.basename(row['file']), int(row['line'])]
            for kind, got, real in (('time', 'predicted', 'measured'), ('memory', 'predicted_gib', 'measured_gib')):
                if row[got] and row[real]:
                    errors[kind][source].append(100 * abs(float(row[got]) / float(row[real]) - 1))
    for kind, by_source in errors.items():
        every = [error for some in by_source.values() for error in some]
        medians = [within(some, 0.5) for some in by_source.values()]
        print('%-6s %4d rows median %5.1f %%  p90 %5.1f %%; %2d sources: median of their medians %5.1f %%' % (
            kind, len(every), within(every, 0.5), within(every, 0.9), len(medians), within(medians, 0.5)))


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if len(sys.argv) == 2:
        write(sys.argv[1])
    else:
        score(sys.argv[2])
