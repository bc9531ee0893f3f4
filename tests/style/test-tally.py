#!/usr/bin/env python3
"""tests/style/test-tally.py TALLY - the count at the end of `./setup test` is true.

Runs tests/tally on planted logs as Meson writes them, among them those that tempt it to count a
failure as a success: a program that dies after its last good case, and one that times out.
"""
import json
import os
import subprocess
import sys
import tempfile

from tap import Tap


def case(name, suite, verdict):
    inner = {'passed': '', 'failed': '<failure/>', 'skipped': '<skipped/>'}[verdict]
    return '<testcase name="%s" classname="%s">%s</testcase>' % (name, suite, inner)


def plant(folder, programs, suite_name):
    """programs: (name, result, [(case, verdict)]); a program without cases is one by itself."""
    logs = os.path.join(folder, 'meson-logs')
    os.makedirs(logs)
    suites = ''
    with open(os.path.join(logs, 'testlog.json'), 'w', encoding='utf-8') as log:
        for name, result, cases in programs:
            record = 'foreshard:unit / ' + name
            log.write(json.dumps({'name': record, 'result': result}) + '\n')
            suite = suite_name(record, name) if cases else 'foreshard'
            text = ''.join(case(inner, suite, verdict) for inner, verdict in cases)
            if not cases:
                text = case(record, suite, 'failed' if result == 'FAIL' else 'passed')
            suites += '<testsuite name="%s">%s</testsuite>' % (suite, text)
    with open(os.path.join(logs, 'testlog.junit.xml'), 'w', encoding='utf-8') as junit:
        junit.write("<?xml version='1.0' encoding='utf-8'?><testsuites>" + suites + '</testsuites>')


def tally(command, *folders):
    run = subprocess.run([sys.executable, command] + list(folders), stdout=subprocess.PIPE,
                         check=False)
    return run.returncode, run.stdout.decode().strip().split('\n')


def verdict_of(command, *folders):
    status, lines = tally(command, *folders)
    return status, lines[-1]


def shows_how_it_ended(command):
    """Of a program that died: what it printed last on each stream, but not its good cases."""
    with tempfile.TemporaryDirectory() as folder:
        plant(folder, [('tap', 'ERROR', GOOD)], lambda record, name: 'foreshard.' + name)
        path = os.path.join(folder, 'meson-logs', 'testlog.json')
        with open(path, encoding='utf-8') as log:
            record = json.loads(log.read())
        record.update(stdout='ok 1 /a\nok 2 /b\n# first\n' + '# more\n' * 20 + '# last\n',
                      stderr='assertion failed\n')
        with open(path, 'w', encoding='utf-8') as log:
            log.write(json.dumps(record) + '\n')
        lines = tally(command, folder)[1]
    shown = [line[4:] for line in lines if line.startswith('  | ')]
    expected = ['# more'] * 11 + ['# last', 'assertion failed']
    return [] if shown == expected else ['found ' + repr(lines)]


GOOD = [('/a', 'passed'), ('/b', 'passed')]
# name, programs, status, last line
PLANTED = [
    ('cases', [('tap', 'OK', GOOD + [('/c', 'skipped')]), ('plain', 'OK', []),
               ('left-out', 'SKIP', [])], 0, '3 passed, 0 failed, 2 skipped'),
    ('failed-case', [('tap', 'FAIL', GOOD + [('/c', 'failed')])], 1,
     '2 passed, 1 failed, 0 skipped'),
    ('failed-case-and-status', [('tap', 'ERROR', GOOD + [('/c', 'failed')])], 1,
     '2 passed, 1 failed, 0 skipped'),
    ('died-after-good-cases', [('tap', 'ERROR', GOOD)], 1, '2 passed, 1 failed, 0 skipped'),
    ('timed-out', [('plain', 'TIMEOUT', []), ('tap', 'TIMEOUT', GOOD)], 1,
     '2 passed, 2 failed, 0 skipped'),
    ('plain-failure', [('plain', 'FAIL', []), ('other', 'OK', [])], 1,
     '1 passed, 1 failed, 0 skipped'),
    ('none-ran', [('left-out', 'SKIP', [])], 1, '0 passed, 0 failed, 1 skipped'),
]


def main(command):
    tap = Tap()
    styles = [('meson-1.0', lambda record, name: 'foreshard.' + record),
              ('later', lambda record, name: 'foreshard.' + name)]
    for style, suite_name in styles:
        for name, programs, status, line in PLANTED:
            with tempfile.TemporaryDirectory() as folder:
                plant(folder, programs, suite_name)
                found = verdict_of(command, folder)
            tap.case('/style/tally/' + style + '/' + name,
                     [] if found == (status, line) else ['found %d, %s' % found])
    with tempfile.TemporaryDirectory() as folder:
        plant(os.path.join(folder, 'one'), [('tap', 'OK', GOOD)], styles[0][1])
        plant(os.path.join(folder, 'two'), [('tap', 'OK', GOOD)], styles[0][1])
        both = verdict_of(command, os.path.join(folder, 'one'), os.path.join(folder, 'two'))
        lost = verdict_of(command, os.path.join(folder, 'one'), os.path.join(folder, 'none'))
    tap.case('/style/tally/two-folders',
             [] if both == (0, '4 passed, 0 failed, 0 skipped') else ['found %d, %s' % both])
    tap.case('/style/tally/folder-without-log',
             [] if lost == (1, '2 passed, 0 failed, 0 skipped') else ['found %d, %s' % lost])
    tap.case('/style/tally/shows-how-it-ended', shows_how_it_ended(command))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
