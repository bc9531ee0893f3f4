"""tests/validation/first-sight.py [README...] - what first predictions of published runs were off by, of all in
first-sight.csv that are on record one by one; and whether these pages say so.

A run that was refused at first counts by its first prediction after that. What stands for several runs without a
number for each ("-47 to -59", "0.0 each") is not counted, nor what stands in brackets: a reason."""
import csv
import math
import os
import re
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'first-sight.csv')
NOT_ONE_BY_ONE = re.compile(r'\([^)]*\)|\S+ to \S+|\S+ each')
ERROR = re.compile(r'(?<!\S)(?:[-+]\d+(?:\.\d+)?|0\.0)(?=[,;]|\s|$)')


def errors(column):
    """Shares of what was measured, in percent, without their sign, rising."""
    with open(TABLE, encoding='utf-8', newline='') as file:
        cells = [row[column] or '' for row in csv.DictReader(file)]
    return sorted(abs(float(text)) for cell in cells for text in ERROR.findall(NOT_ONE_BY_ONE.sub('', cell)))


def within(values, share):
    return values[max(0, math.ceil(share * len(values)) - 1)]


def percent(value):
    return '%.0f' % value if value >= 10 else '%.1f' % value


def sentences():
    """As README.md has them."""
    times, peaks = errors('time_percent'), errors('peak_percent')
    return ['one by one (%d), half were within %s %% and nine in ten within %s %%' % (
                len(times), percent(within(times, 0.5)), percent(within(times, 0.9))),
            'of %d peaks, %s and %s %%' % (
                len(peaks), percent(within(peaks, 0.5)), percent(within(peaks, 0.9)))]


def main(pages):
    missing = []
    for sentence in sentences():
        print(sentence)
        for page in pages:
            with open(page, encoding='utf-8') as file:
                if sentence not in ' '.join(file.read().split()):
                    missing.append('%s lacks: %s' % (page, sentence))
    for line in missing:
        print(line, file=sys.stderr)
    return 1 if missing else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
