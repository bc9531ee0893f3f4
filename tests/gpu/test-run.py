"""tests/gpu/run, as far as a machine without a GPU can tell.

    test-run.py SOURCE-ROOT BUILD-FOLDER
"""
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import types

sys.path[:0] = [os.path.join(sys.argv[1], 'tests', folder) for folder in ('style', 'gpu')]

import goals  # noqa: E402
import machine as machines  # noqa: E402
import matrix  # noqa: E402
import parts  # noqa: E402
from session import Done, Session  # noqa: E402
from tap import Tap  # noqa: E402
from trying import BUILD, HERE, ROOT, RUN, run, unlike  # noqa: E402


# ---- the order of parts ----------------------------------------------------------------------------

def parts_case(tap, folder):
    """A part that raises, one that hangs, one that works: each ends alone."""
    def breaks(session):
        raise ValueError('planted')

    def hangs(session):
        done = session.call('sh', '-c', 'echo begun; sleep 60 & wait')
        session.row('hanging', 'FAIL', 'status %d, %s' % (done.rc, done.tail()))

    def works(session):
        done = session.call('sh', '-c', 'echo fine')
        with open(session.path('summary.txt'), encoding='utf-8') as file:
            left = file.read()  # by the parts before, should this program end here
        good = done.rc == 0 and 'ValueError: planted' in left
        session.row('working', 'ok' if good else 'FAIL', done.tail())

    machine = types.SimpleNamespace(environment=lambda: dict(os.environ))
    session = Session(machine, os.path.join(folder, 'parts'), 1, dry=True)
    began = time.monotonic()
    out = sys.stdout
    sys.stdout = sys.stderr  # what is printed is no TAP
    try:
        session.run([('late', 0, works), ('hangs', 40, hangs), ('breaks', 40, breaks), ('works', 520, works)])
    finally:
        sys.stdout = out
    took = time.monotonic() - began
    rows = [(row['part'], row['name'], row['verdict'], row['value']) for row in session.rows if row['name'] != 'time']
    wanted = [('late', 'all of it', 'skip', 'no time is left'), ('hangs', 'hanging', 'FAIL', 'status 124, begun'),
              ('breaks', 'all of it', 'FAIL', 'ValueError: planted'), ('works', 'working', 'ok', 'fine')]
    complaints = [] if rows == wanted else ['%s' % (rows,)]
    if took > 20:
        complaints.append('a part that hangs held the next one up: %.0f s' % took)
    tap.case('/gpu/run/no part keeps the next one from running', complaints)
    with tarfile.open(session.path('logs.tar.gz')) as archive:
        names = archive.getnames()
    tap.case('/gpu/run/what parts print is kept', [] if 'logs/hangs.log' in names else [str(names)])


def share_case(tap, folder):
    """A part that takes more than its own time takes it from all that follow; what one leaves they have."""
    machine = types.SimpleNamespace(environment=lambda: dict(os.environ))
    session = Session(machine, os.path.join(folder, 'shares'), 1, dry=True)  # 45 s
    given = []

    def takes_more(session):
        session.extend(1e9)
        given.append(session.remaining())
        session.until -= given[-1]  # as if it had taken all of it

    def leaves(session):
        given.append(session.remaining())
    out = sys.stdout
    sys.stdout = sys.stderr
    try:
        session.run([('more', 100, takes_more), ('one', 250, leaves), ('two', 250, leaves)])
    finally:
        sys.stdout = out
    tap.case('/gpu/run/a part that takes too long takes no other one\'s time alone', [] if all(
        abs(s - wanted) < 1 for s, wanted in zip(given, (22.5, 11.25, 22.5), strict=True)) else [str(given)])


def full_case(tap, folder):
    """A disk that takes nothing: each part runs, and the table, which is printed, says so."""
    def speaks(session):
        done = session.call('sh', '-c', 'echo fine')
        session.row('speaking', 'ok' if done.rc == 0 else 'FAIL', done.tail())

    machine = types.SimpleNamespace(environment=lambda: dict(os.environ))
    session = Session(machine, os.path.join(folder, 'full'), 1, dry=True)
    for name in (('results.jsonl',), ('summary.txt.new',), ('logs', 'one.log'), ('logs.tar.gz.new',)):
        os.symlink('/dev/full', session.path(*name))
    out = sys.stdout
    sys.stdout = sys.stderr
    try:
        session.run([('one', 300, speaks), ('two', 300, speaks)])
        session.conclude('last', speaks)
        session.save()
    finally:
        sys.stdout = out
    table = '\n'.join(session.table())
    complaints = [] if table.count('ok    speaking: fine') == 3 else [table]
    complaints += ['not told: ' + name for name in ('results.jsonl', 'summary.txt', 'logs', 'logs.tar.gz')
                   if table.count(name + ' could not be written: No space left on device') != 1]
    tap.case('/gpu/run/a disk that is full ends nothing', complaints)


def cases_case(tap):
    wanted = {'1..3\nok 1 /a b\nok 2 /c # SKIP no GPU\nnot ok 3 /d: -n 2\n# told\n': {
        '/a b': 'ok', '/c': 'skip', '/d: -n 2': 'not ok'}, '1..0 # SKIP no GPU\n': {}, '': {}}
    tap.case('/gpu/run/cases of a test are told apart', [
        '%r: %s' % (text, parts.cases_of(text)) for text, cases in wanted.items() if parts.cases_of(text) != cases])


# Stands for a program of GLib's tests: -l lists, -p chooses; one test ends the program, and one hangs.
CRASHING = r'''
import os, sys, time
names = ['/t/first', '/t/crashes', '/t/third', '/t/fails', '/t/hangs', '/t/last']
words = sys.argv[1:]
if words == ['-l']:
    print('\n'.join(names)); sys.exit()
chosen = [words[i + 1] for i, word in enumerate(words) if word == '-p'] or names
failed = 0
print('1..%d' % len(chosen), flush=True)
for number, name in enumerate(chosen, 1):
    if name == '/t/crashes':
        print('Bail out!', flush=True); os.abort()
    if name == '/t/hangs':
        time.sleep(30)
    failed += name == '/t/fails'
    print('# largest error: 0.%d of its bound (x)' % number)
    if name == '/t/fails':
        print('# FAILED: x (type 1): element 3')
    print('%sok %d %s' % ('not ' if name == '/t/fails' else '', number, name), flush=True)
sys.exit(failed)
'''


def suite_case(tap, folder):
    """What one test breaks, the others of its program do not suffer from."""
    program = os.path.join(folder, 'crashing.py')
    with open(program, 'w', encoding='utf-8') as file:
        file.write(CRASHING)
    test = {'name': 't', 'command': [sys.executable, program], 'environment': {}, 'timeout': 60}
    machine = types.SimpleNamespace(environment=lambda: dict(os.environ), tests=[test], programs={})
    session = Session(machine, os.path.join(folder, 'suite'), 1, dry=True)
    session.part_until = time.monotonic() + 8
    with open(os.path.join(folder, 'suite.log'), 'w', encoding='utf-8') as session.log_file:
        suite = parts.run_suite(session, test)
    cases = {'/t/first': 'ok', '/t/crashes': 'not ok', '/t/third': 'ok', '/t/fails': 'not ok'}
    complaints = [] if suite.cases == cases and suite.verdict() == 'FAIL' else ['%s' % suite.cases]
    for words in ('2 passed, 2 failed, 2 not reached', 'at most 0.2 of their bounds', 'first: /t/crashes'):
        if words not in suite.text():
            complaints.append('no "%s" in: %s' % (words, suite.text()))
    if parts.told_before(suite.output, '/t/fails') != ': x (type 1): element 3':
        complaints.append('what a failure said is lost')
    tap.case('/gpu/run/one test that ends its program does not keep the others from running', complaints)


# The same in kind: each test tells when it began and ended, in a file that it shares with others.
TIMED = r'''
import os, sys, time
names = [line.strip() for line in open(sys.argv[1])]
words = sys.argv[3:]
if words == ['-l']:
    print('\n'.join(names)); sys.exit()
chosen = [words[i + 1] for i, word in enumerate(words) if word == '-p'] or names
for number, name in enumerate(chosen, 1):
    began = time.monotonic()
    if 'crashes' in name:
        os.abort()
    time.sleep(0.3)
    print('ok %d %s' % (number, name), flush=True)
    with open(sys.argv[2], 'a') as file:
        file.write('%s\t%f\t%f\t%s\n' % (name, began, time.monotonic(),
            os.environ.get('FORESHARD_TEST_COMM', '') + os.environ.get('FORESHARD_TEST_HAS_GPU', '')))
'''


def beside_case(tap, folder):
    """Tests of ranks run beside one another and beside those of kernels; that which looks at all of its memory alone."""
    program, times = os.path.join(folder, 'timed.py'), os.path.join(folder, 'times')
    kernels = ['/k/1', '/k/2', '/l/1', '/l/2']
    alone, first = ['/r/the driver counts alike'], ['/r/losses of 20 steps', '/r/failures say why']
    shared, traced = ['/r/plays alike: %d' % i for i in range(8)], ['/r/traced: %d' % i for i in range(2)]
    with open(program, 'w', encoding='utf-8') as file:
        file.write(TIMED)

    def test_of(name, paths):
        listed = os.path.join(folder, re.sub(r'\W', '-', name))
        with open(listed, 'w', encoding='utf-8') as file:
            file.write('\n'.join(paths))
        return {'name': name, 'command': [sys.executable, program, listed, times], 'environment': {}, 'timeout': 60}
    tests = [test_of('kernels-cuda/k', ['/k/1', '/k/2']), test_of('kernels-cuda/l', ['/l/1', '/l/2']),
             test_of('exec/gpu', alone + shared + first + ['/r/plays and crashes']), test_of('exec/traced-gpu', traced)]
    machine = types.SimpleNamespace(environment=lambda: dict(os.environ), tests=tests, programs={}, has_gpu=True)
    session = Session(machine, os.path.join(folder, 'beside'), 1, dry=False)
    session.trains = True
    session.part_until = time.monotonic() + 50
    cores, os.cpu_count = os.cpu_count, lambda: parts.CORES_FOR_THAT
    try:
        with open(os.path.join(folder, 'beside.log'), 'w', encoding='utf-8') as session.log_file:
            parts.tests(session)
    finally:
        os.cpu_count = cores
    with open(times, encoding='utf-8') as file:
        lines = [line.rstrip('\n').split('\t') for line in file]
    ran = {name: (float(began), float(ended)) for name, began, ended, _ in lines}
    overlap = [(a, b) for a in ran for b in ran if a < b and ran[a][0] < ran[b][1] and ran[b][0] < ran[a][1]]
    complaints = [] if sorted(ran) == sorted(alone + first + shared + traced + kernels) else ['ran: ' + ' '.join(sorted(ran))]
    complaints += ['%s ran beside %s' % pair for pair in overlap if set(pair) & set(alone)]
    complaints += [name + ' is not told what binds ranks, or that there is a GPU' for name, _, _, told in lines
                   if name[:2] == '/r' and told != 'local1']
    begun = sorted(first + shared, key=lambda name: ran[name][0])
    complaints += [] if set(first) <= set(begun[:parts.RANKS_BESIDE]) else ['begun: ' + ' '.join(begun)]
    complaints += [] if any(('/k' in a) != ('/k' in b) for a, b in overlap) else ['kernels had the machine for themselves']
    complaints += [] if any({a[:2], b[:2]} == {'/k', '/l'} for a, b in overlap) else ['kernels were tried one by one']
    rows = {row['name']: (row['verdict'], row['value']) for row in session.rows}
    complaints += [] if {rows['kernels-cuda/' + name][0] for name in 'kl'} == {'ok'} else [str(rows)]
    complaints += [] if rows['exec/gpu'][0] == 'FAIL' and '11 passed, 1 failed' in rows['exec/gpu'][1] else [str(rows)]
    tap.case('/gpu/run/tests run beside one another where they may', complaints)


# Stands for foreshard-exec: on the host it trains, by NCCL it says what it is told to.
BY_NCCL = r'''#!/bin/sh
case "$*" in
*nccl*) echo '%s'; exit %d;;
*) echo '{"losses": [4.5, 4.25, 4], "step_ms": 1}';;
esac
'''


def nccl_case(tap, folder):
    """Each way to communicate is held against the host's losses. Where NCCL fails on one card it is asked once."""
    complaints = []
    for said, status, verdicts, words in (
            ('{"losses": [4.5, 4.25, 4.00001], "step_ms": 12.5}', 0, {'ok'}, "the host's within 2.5e-06 (bound 2e-05)"),
            ('{"losses": [4.5, 4.3, 4], "step_ms": 2.5e3}', 0, {'ok', 'MISS'}, "the host's within 0.012 (bound 2e-05); a step in "
             '2500 ms'),
            ('ncclCommInitRankConfig failed', 1, {'MISS', 'skip'}, 'on one card here: ncclCommInitRankConfig failed')):
        programs = {}
        for name, text in (('foreshard', '#!/bin/sh\n'), ('foreshard-exec', BY_NCCL % (said, status))):
            programs[name] = os.path.join(folder, 'nccl-' + name)
            with open(programs[name], 'w', encoding='utf-8') as file:
                file.write(text)
            os.chmod(file.name, 0o755)
        machine = types.SimpleNamespace(programs=programs, environment=lambda: dict(os.environ))
        session = Session(machine, os.path.join(folder, 'nccl'), 1, dry=False)
        session.part_until = time.monotonic() + 50
        with open(os.path.join(folder, 'nccl.log'), 'w', encoding='utf-8') as session.log_file:
            matrix.by_nccl(session)
        told = {row['name']: row for row in session.rows}
        good = {row['verdict'] for row in session.rows} == verdicts and all(
            name in told for name, _, _ in matrix.NCCL) and words in told[matrix.NCCL[0][0]]['value']
        complaints += [] if good else ['%s: %s' % (said, session.rows)]
    tap.case('/gpu/run/each way to communicate is held against the host\'s losses', complaints)


# Stands for foreshard-exec: what it is to fail at is in a file.
EXEC = r'''#!/bin/sh
read wrong <%(wrong)s
case "$wrong" in
always) echo "an illegal access${CUDA_LAUNCH_BLOCKING:+ in fill}"; exit 1;;
cudnn) grep -q bf16 %(planned)s && [ -z "$FORESHARD_NO_CUDNN" ] && { echo "cudnnBackendExecute: no"; exit 1; };;
esac
exit 0
'''


def toy_case(tap, folder):
    """A toy that fails is looked at closely, and leaves in the rows what it fails in; where cuDNN is to blame, what follows
    goes without it."""
    wrong, planned, programs = os.path.join(folder, 'wrong'), os.path.join(folder, 'planned'), {}
    for name, text in (('foreshard-exec', EXEC % {'wrong': wrong, 'planned': planned}),
                       ('foreshard', '#!/bin/sh\necho "$@" >%s\n' % planned)):
        programs[name] = os.path.join(folder, 'toy-' + name)
        with open(programs[name], 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(file.name, 0o755)
    machine = types.SimpleNamespace(programs=programs, variables={})
    machine.environment = lambda: os.environ | machine.variables
    session = Session(machine, os.path.join(folder, 'toys'), 1, dry=False)
    kept, parts.sanitizer_tool = parts.sanitizer_tool, lambda: '/nowhere'
    rows, complaints = {}, []
    with open(os.path.join(folder, 'toys.log'), 'w', encoding='utf-8') as session.log_file:
        for what in ('nothing', 'always', 'cudnn'):
            with open(wrong, 'w', encoding='utf-8') as file:
                file.write(what + '\n')
            session.rows.clear()
            session.part_until = 0
            parts.first_program(session)
            rows[what] = [(row['name'], row['verdict']) for row in session.rows]
            complaints += ['%s: %s' % (what, machine.variables)] * (bool(machine.variables) != (what == 'cudnn'))
            complaints += [what + ': it trains, or not'] * (session.trains == (what == 'always'))
            complaints += ['the call is not named'] * (what == 'always' and session.rows[-1]['value'] != 'an illegal access in fill')
    parts.sanitizer_tool = kept
    wanted = {'nothing': [('a toy trains', 'ok'), ('a toy in halves trains', 'ok')],
              'always': [('a toy trains', 'FAIL'), ('a call at a time', '')],
              'cudnn': [('a toy trains', 'ok'), ('a toy in halves trains', 'FAIL'), ('without cuDNN it does', 'MISS')]}
    tap.case('/gpu/run/a toy that fails is looked at closely', complaints + (['%s' % rows] if rows != wanted else []))


def object_case(tap):
    wanted = {'{"a": 1}\n': {'a': 1}, 'NCCL WARN x {y}\n{\n "a": 1\n}\nNCCL WARN z\n': {'a': 1}, '': {}, '{"a": ': {},
              '3\n': {}}
    tap.case('/gpu/run/what a program answers is found among what its libraries say', [
        '%r: %s' % (text, matrix.last_object(text)) for text, answer in wanted.items() if matrix.last_object(text) != answer])


def cut_case(tap, folder):
    """What ends with its part is told apart from what takes longer than it may; what cannot die holds nothing up."""
    machine = types.SimpleNamespace(environment=lambda: dict(os.environ))
    session = Session(machine, os.path.join(folder, 'cut'), 1, dry=True)
    session.part = 'cut'
    with open(os.path.join(folder, 'cut.log'), 'w', encoding='utf-8') as session.log_file:
        session.part_until = time.monotonic() + 60
        slow = session.call('sleep', '20', limit=1)
        session.part_until = time.monotonic() + 1.5
        cut = session.call('sleep', '20', limit=10)
        for done in (slow, cut):
            matrix.failed(session, 'x', done)
    verdicts = [row['verdict'] for row in session.rows]
    with open(os.path.join(folder, 'over.log'), 'w', encoding='utf-8') as session.log_file:
        session.part_until = time.monotonic() + 60
        sleeping = threading.Thread(target=lambda: session.call('sleep', '20'))
        sleeping.start()
        while not session.running:
            time.sleep(0.01)
        session.end_all()
        sleeping.join(5)
        later = session.call('touch', os.path.join(folder, 'later'))
    tap.case('/gpu/run/nothing outlives its end', ['a command goes on'] * sleeping.is_alive() + (
        ['another began'] if later.rc != 124 or os.path.exists(os.path.join(folder, 'later')) else []))
    told = [parts.how(done) for done in (slow, cut, Done(0, 1, ''), Done(1, 1, ''))]
    tap.case('/gpu/run/what is cut off with its part has not failed', [] if verdicts == ['FAIL', 'skip'] and told == [
        'FAIL', 'skip', 'ok', 'FAIL'] else ['%s %s' % (verdicts, told)])


# Stands for foreshard: a calibration that hangs when it has written down some of it.
CALIBRATES = r'''#!/bin/sh
for output; do :; done
printf '# Unfinished: some of it.\n' >"$output.unfinished"
sleep 20
'''


def unfinished_case(tap, folder):
    """A calibration that is cut off leaves what it has, and the rest is predicted with that."""
    program = os.path.join(folder, 'calibrates')
    with open(program, 'w', encoding='utf-8') as file:
        file.write(CALIBRATES)
    os.chmod(program, 0o755)
    machine = types.SimpleNamespace(environment=lambda: dict(os.environ), programs={'foreshard': program})
    session = Session(machine, os.path.join(folder, 'unfinished'), 1, dry=False)
    session.part_until = session.until = time.monotonic() + 2
    with open(os.path.join(folder, 'unfinished.log'), 'w', encoding='utf-8') as session.log_file:
        parts.calibrate(session)
    rows = [(row['name'], row['verdict'], row['value']) for row in session.rows]
    left = os.listdir(session.folder)
    good = rows[0][:2] == ('foreshard calibrate', 'skip') and rows[1:] == [('what it left', '', 'some of it')]
    tap.case('/gpu/run/what a calibration has when it is cut off is kept', [] if good and session.cluster == session.path(
        'calibrated.ini') and 'calibrated.ini' in left and 'calibrated.ini.unfinished' not in left else ['%s, %s' % (rows, left)])


def attempt_case(tap, folder):
    """What one case of a part raises, the cases after it do not suffer from; tests that time cut off have not missed."""
    machine = types.SimpleNamespace(environment=lambda: dict(os.environ), programs={'foreshard-exec': 'none', 'foreshard': 'none'},
                                    data=folder, cluster='h200-node')
    session = Session(machine, os.path.join(folder, 'attempts'), 1, dry=False)
    session.part, session.part_until = 'matrix', time.monotonic() + 600
    kept, tried = (matrix.play, matrix.rehearse), []

    def breaks(_, name, *__):
        tried.append(name)
        raise KeyError('planted')
    matrix.play = matrix.rehearse = breaks
    with open(os.path.join(folder, 'attempts.log'), 'w', encoding='utf-8') as session.log_file:
        matrix.side_by_side(session)
    matrix.play, matrix.rehearse = kept
    wanted = sum(map(len, (matrix.ONE_RANK, matrix.TRACED, matrix.REHEARSED, matrix.SHARED_CARD)))
    failed = [row for row in session.rows if row['verdict'] == 'FAIL' and 'KeyError' in row['value']]
    tap.case('/gpu/run/no case of a part keeps the next one from running', [] if len(tried) == len(failed) == wanted else [
        '%d tried and %d failed of %d' % (len(tried), len(failed), wanted)])
    complaints = []
    for cases, is_cut, verdict, goal in (({'/k/a': 'ok'}, True, 'skip', 'skip'), ({}, True, 'skip', 'skip'),
                                         ({'/k/a': 'ok'}, False, 'MISS', 'MISS'), ({'/k/a': 'not ok'}, True, 'FAIL', 'MISS')):
        suite = suite_of('', 124)
        suite.cases, suite.is_cut = cases, is_cut
        told = goals.kernels(types.SimpleNamespace(suites={'kernels-cuda/k': suite}))
        if (suite.verdict(), told[0]) != (verdict, goal) or 'kernels-cuda/k' not in told[1]:
            complaints.append('%s, %s: %s, %s' % (cases, is_cut, suite.verdict(), told))
    tap.case('/gpu/run/tests that time has cut off have not missed', complaints)


# ---- the goals -------------------------------------------------------------------------------------

def judged(session):
    out = {}
    session.row = lambda name, verdict, value='': out.update({name: (verdict, value)})
    goals.judge(session)
    return [out[wanted] for wanted, _, _ in goals.GOALS]


def suite_of(output, rc=0):
    suite = parts.Suite()
    suite.cases, suite.output, suite.rc = parts.cases_of(output), output, rc
    return suite


RANKS_SAID = '''# gpt-toy -n 2: losses differ by 1.5e-07 relative, memory equal at 900 instructions
ok 1 /exec/gpu/plays alike: gpt-toy -n 2
# gpt-toy -n 2: 20 losses differ by at most 3e-07 relative
ok 2 /exec/gpu/losses of 20 steps
ok 3 /exec/gpu/failures say why
# ended after 3.1 s: rank 0
ok 4 /exec/gpu/a hung collective ends all
'''


def goals_case(tap):
    """All of it holds; each goal in turn missed; nothing measured."""
    def session(**changed):
        figures = {'replayed': [('a', True)], 'memory': [('a', True)], 'memory with marks': [('b', True)],
                   'driver': [('a', True)], 'peak, GPT-175B of 512': [(10**9, 10**9)], 'PyTorch': [('t', True)],
                   'step error': [0.01, 0.04, 0.2], 'tokens': [('g', 1.05)], 'utilization': [('g', 0.6)],
                   'of the copy': [('adam', 0.9), ('cast', 0.86)], 'sanitizer': [('memcheck', True)],
                   'ranks': ['NCCL 2.28.9']}
        suites = {'exec/gpu': suite_of(changed.pop('said', RANKS_SAID)), 'kernels-cuda/rows': suite_of(changed.pop(
            'kernels', '# largest error: 0.5 of its bound (y)\nok 1 /kernels-cuda/norm/x\n'))}
        return types.SimpleNamespace(figures=figures | changed, suites=suites)
    complaints = ['%s: %s' % (goals.GOALS[i][0], answer) for i, answer in enumerate(judged(session())) if answer[0] != 'ok']
    empty = judged(types.SimpleNamespace(figures={}, suites={}))
    complaints += ['of nothing: %s' % (answer,) for answer in empty if answer[0] != 'skip']
    bad = [dict(kernels='not ok 1 /kernels-cuda/norm/x\n'), dict(said=RANKS_SAID.replace('ok 2', 'not ok 2')),
           dict(said=RANKS_SAID.replace('ok 1', 'not ok 1')), dict(sanitizer=[('memcheck', False)]),
           dict(replayed=[('a', False)]), dict(memory=[('a', True), ('c', False)]), dict(driver=[('a', False)]),
           {'peak, T5-11B of 512': [(10**9, 10**9 + 512)]}, dict(PyTorch=[('t', False)]), {'step error': [0.06]},
           dict(tokens=[('g', 1.2), ('l', 0.99)]), dict(utilization=[('g', 0.54)]), {'of the copy': [('adam', 0.84)]},
           dict(said=RANKS_SAID.replace('ok 3', 'not ok 3')), dict(said=RANKS_SAID.replace('ok 4', 'not ok 4'))]
    for i, change in enumerate(bad):
        missed = [k for k, answer in enumerate(judged(session(**change))) if answer[0] == 'MISS']
        if missed != [i]:
            complaints.append('%s: missed are %s' % (goals.GOALS[i][0], missed))
    tap.case('/gpu/run/each goal is judged', complaints)


def run_module():
    loader = importlib.machinery.SourceFileLoader('run', RUN)
    command = importlib.util.module_from_spec(importlib.util.spec_from_loader('run', loader))
    loader.exec_module(command)
    return command


def readme_case(tap):
    """What the README promises of each goal and part is of those that there are, in their order."""
    with open(os.path.join(HERE, 'README.md'), encoding='utf-8') as file:
        text = file.read()
    told = re.findall(r'(?m)^\| (.*?) \| .* \| `(\w+)`(?:, `\w+`)? \|$', text)
    wanted = [(goal, part) for goal, part, _ in goals.GOALS]
    tap.case('/gpu/run/the README tells of each goal', [] if told == wanted else [
        'README: %s' % (pair,) for pair in told if pair not in wanted] + [
        'goals.py: %s' % (pair,) for pair in wanted if pair not in told])
    told = re.findall(r'(?m)^\| `(\w+)` \| (\d+) s \|', text)
    wanted = [(name, str(seconds)) for name, seconds, _ in run_module().PARTS]
    tap.case('/gpu/run/the README tells of each part, in order', [] if told == wanted else ['%s, not %s' % (told, wanted)])


def unusable_case(tap):
    """A GPU that is shown and cannot be used: what would be skipped without one has failed, and says why."""
    suite = suite_of('1..0 # SKIP no GPU: compiled, not run (CUDA driver version is insufficient)\n')
    suite.all_skipped = True
    complaints = []
    for dry, has_gpu, verdict in ((True, False, 'skip'), (False, False, 'skip'), (False, True, 'FAIL')):
        session = types.SimpleNamespace(dry=dry, machine=types.SimpleNamespace(has_gpu=has_gpu))
        told = parts.told_of(session, suite)
        if told != (verdict, 'no GPU: compiled, not run (CUDA driver version is insufficient)'):
            complaints.append('%s, %s: %s' % (dry, has_gpu, told))
    tail = Done(1, 1, 'foreshard-exec: rank 0: it is broken\nforeshard calibrate: Child process exited with code 1\n\n').tail()
    complaints += [] if tail == 'foreshard-exec: rank 0: it is broken' else [tail]
    tap.case('/gpu/run/a GPU that cannot be used is no skip', complaints)


def benchmark_case(tap):
    line = 'layernorm_backward              0.123 ms    4001.5 GB/s   91.2 % of the copy\n'
    other = 'linear                          1.000 ms     700.0 TFLOP/s   88.0 % of the product of 8192 cubed\n'
    shares = parts.shares_of_copy(line + other + line.replace('layernorm_backward', 'adam (fused, fp32)'))
    source = open(os.path.join(ROOT, 'bench', 'kernels-cuda.c'), encoding='utf-8').read()
    tap.case('/gpu/run/lines of the benchmark are read', [
        *([] if shares == {'layernorm_backward': 0.912, 'adam (fused, fp32)': 0.912} else [str(shares)]),
        *('the benchmark has no ' + name for name in parts.AT_COPY_SPEED if 'BYTES("%s"' % name not in source)])


def sanitizer_case(tap):
    """What compute-sanitizer says at its end, where it is refused, and where its time is up."""
    cases = [(0, '========= ERROR SUMMARY: 0 errors', 'ok'), (9, '========= ERROR SUMMARY: 3 errors', 'FAIL'),
             (0, '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)', 'ok'),
             (9, '========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)', 'FAIL'),
             (1, '========= Error: Device not supported. Please refer to the documentation', 'skip'),
             (124, '========= COMPUTE-SANITIZER', 'skip'), (1, 'Bail out!', 'FAIL')]
    complaints = []
    for rc, output, wanted in cases:
        verdict, why = parts.judged_by_sanitizer(Done(rc, 1, output))
        complaints += [] if verdict == wanted and why else ['%d, %s: %s (%s)' % (rc, output, verdict, why)]
    tap.case('/gpu/run/the sanitizer is understood', complaints)


# Stands for compute-sanitizer: a library's call that was refused is an error, unless such are not to be reported.
SANITIZER = r'''#!/bin/sh
case "$*" in
*"--tool memcheck --report-api-errors no"*) echo "========= ERROR SUMMARY: 0 errors";;
*"--tool memcheck"*) echo "========= ERROR SUMMARY: 1 error"; exit 9;;
*) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)";;
esac
'''


def sanitized_case(tap, folder):
    """Of kernels' memory and races it is asked, not of what libraries try."""
    tool = os.path.join(folder, 'compute-sanitizer')
    with open(tool, 'w', encoding='utf-8') as file:
        file.write(SANITIZER)
    os.chmod(tool, 0o755)
    test = {'name': 'kernels-cuda/rows', 'command': ['true'], 'environment': {}, 'timeout': 60}
    machine = types.SimpleNamespace(environment=lambda: dict(os.environ), tests=[test])
    session = Session(machine, os.path.join(folder, 'sanitized'), 1, dry=False)
    session.part_until = time.monotonic() + 20
    path, os.environ['PATH'] = os.environ['PATH'], ':'.join([folder, os.environ['PATH']])
    with open(os.path.join(folder, 'sanitized.log'), 'w', encoding='utf-8') as session.log_file:
        parts.sanitizer(session)
    os.environ['PATH'] = path
    verdicts = [(row['name'], row['verdict']) for row in session.rows]
    tap.case('/gpu/run/the sanitizer tells of kernels', [] if verdicts == [
        ('memcheck kernels-cuda/rows', 'ok'), ('racecheck kernels-cuda/rows', 'ok')] else [str(verdicts)])


# ---- the command -----------------------------------------------------------------------------------

def command_cases(tap, folder):
    output = os.path.join(folder, 'results')
    done = run(RUN, '--dry', '--build', BUILD, '--output', output, '--minutes', '2', env=os.environ | {
        'FORESHARD_TORCH_PYTHON': ''})
    complaints = unlike(done, 0, 'allocated equal at all', 'ok    gpt2, traced, FSDP2: step', '2 ranks on one card', 'ours gpt2-xl', ' 0 failed')
    left = sorted(os.listdir(output)) if os.path.isdir(output) else []
    if left != ['logs.tar.gz', 'records.tar.gz', 'results.jsonl', 'summary.txt', 'traces.tar.gz']:
        complaints.append('leaves ' + ' '.join(left))
    else:
        with open(os.path.join(output, 'summary.txt'), encoding='utf-8') as file:
            if file.read().strip() not in done.stdout:
                complaints.append('the table is not what is printed')
        with open(os.path.join(output, 'results.jsonl'), encoding='utf-8') as file:
            rows = [json.loads(line) for line in file]
        if len({row['part'] for row in rows if 'part' in row}) != 14:  # the goals too
            complaints.append('not all parts left a row')
    tap.case('/gpu/run/all of it runs without a GPU', complaints)
    tap.case('/gpu/run/it says what is wrong', [
        *unlike(run(RUN, '--parts', 'info,everything'), 2, 'there is no part everything'),
        *unlike(run(RUN, '--dry', '--bundle', os.path.join(ROOT, 'README.md')), 2, 'README.md', 'tests/gpu/bundle'),
        *unlike(run(RUN, '--dry', '--build', HERE), 2, 'no build folder'),
        *([] if machines.gpu() else unlike(run(RUN, '--build', BUILD), 2, 'shows a GPU', '--dry'))])


def driver_case(tap, folder):
    """Without nvidia-smi the driver is asked; one that is too old for these programs is told of before they begin."""
    case = '/gpu/run/an old driver is told of'
    if machines.gpu() or not machines.Built(BUILD, None).needs_cuda():
        tap.skip(case, 'there is a GPU, or these programs have no CUDA')
        return
    needed = machines.Built(BUILD, None).needs_cuda()
    environment = os.environ | {'LD_LIBRARY_PATH': os.path.join(BUILD, 'tests', 'gpu'), 'FORESHARD_TORCH_PYTHON': '',
                                'FORESHARD_DRIVER_TAKES': '12040'}
    complaints = unlike(run(RUN, '--build', BUILD, env=environment), 2, 'driver (no nvidia-smi says which) takes programs '
                        'of CUDA 12.4, and these are of CUDA %d' % needed)
    # With a PyTorch, which may well be made for that driver, its parts are done all the same.
    python = os.path.join(folder, 'python-of-torch')
    with open(python, 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\necho 2.11.0\n')
    os.chmod(python, 0o755)
    complaints += unlike(run(RUN, '--build', BUILD, '--parts', 'info,tests,copies', '--minutes', '1', '--output',
                             os.path.join(folder, 'old-driver'),
                             env=environment | {'FORESHARD_TORCH_PYTHON': python}), 0,
                         'skip  all of it: driver (no nvidia-smi', 'ok    copies: ')
    told = run(sys.executable, '-B', '-c', 'import machine; print(machine.gpu(), machine.driver_takes())', cwd=HERE,
               env=environment | {'FORESHARD_DRIVER_TAKES': '%d010' % needed})
    complaints += unlike(told, 0, "'name': 'a GPU of no maker'", "'memory.total': '81920 MiB'", '(%d, 1)' % needed)
    tap.case(case, complaints)


# Stands for nvidia-smi: answers what it is told to know, and refuses the rest as the real one does.
SMI = r'''#!%s
import sys
known = {'name': 'a GPU', 'driver_version': '580.00', 'memory.total': '1 MiB', 'power.limit': '1 W',
         'clocks.max.sm': '1 MHz', 'clocks.max.mem': '1 MHz', 'pstate': 'P0'} | %r
wanted = [word.split('=')[1] for word in sys.argv if word.startswith('--query-gpu=')][0].split(',')
missing = [name for name in wanted if name not in known]
if missing:
    print('Field "%%s" is not a valid field to query.' %% missing[0])
    sys.exit(2)
print(', '.join(known[name] for name in wanted))
'''


def machine_case(tap, folder):
    """Tools that are missing, hang, or know less than others cost no more than what they would have said."""
    complaints, modes = [], {'compute_mode': 'Exclusive_Process', 'mig.mode.current': 'Disabled', 'ecc.mode.current': 'Enabled'}
    path = os.environ['PATH']
    for more in ({}, modes):
        with open(os.path.join(folder, 'nvidia-smi'), 'w', encoding='utf-8') as file:
            file.write(SMI % (sys.executable, more))
        os.chmod(file.name, 0o755)
        os.environ['PATH'] = folder
        gpu = machines.gpu()
        complaints += [] if gpu and gpu['name'] == 'a GPU' and gpu.get('compute_mode') == more.get('compute_mode') else [str(gpu)]
        session = types.SimpleNamespace(dry=True, machine=machines.Built(BUILD, None), rows=[], call=lambda *_, **__: None,
                                        beside=lambda works: [work() for work in works])
        session.machine.torch_version = ''
        session.row = lambda name, verdict, value='', rows=session.rows: rows.append((name, verdict, value))
        parts.info(session)
        told = [value for name, verdict, value in session.rows if (name, verdict) == ('compute mode', 'MISS')]
        complaints += [] if bool(told) == bool(more) else ['of %s: %s' % (more, told)]
        loaded = [library for _, library, _ in session.machine.loaded()]  # there is no ldd on this path
        if os.path.exists(machines.LOADER) and 'libc.so.6' not in loaded:
            complaints.append('without ldd: %s' % loaded)
    os.environ['PATH'] = path
    began = time.monotonic()
    said = machines.output_of('sh', '-c', 'echo begun; trap "" TERM; sleep 30 & wait', timeout=0.5)
    complaints += ['what hangs says %r after %.0f s' % (said, time.monotonic() - began)] * (
        said != '' or time.monotonic() - began > 10)
    tap.case('/gpu/run/a machine may lack tools', complaints)


def like_case(tap):
    """Until it is measured, a GPU is predicted as the cluster file says that its name is in; each of those is there."""
    wanted = {'NVIDIA H100 80GB HBM3': 'dgx-h100', 'NVIDIA H200': 'h200-node', 'NVIDIA H100 PCIe': 'h100-pcie',
              'NVIDIA GH200 480GB': 'gh200-alps', 'NVIDIA A100-SXM4-80GB': 'a100-node', 'a GPU of no maker': 'h200-node'}
    complaints = ['%s: %s' % (name, machines.cluster_like({'name': name})) for name, cluster in wanted.items()
                  if machines.cluster_like({'name': name}) != cluster]
    complaints += ['there is no ' + name for _, name in machines.LIKE
                   if not os.path.exists(os.path.join(ROOT, 'models', 'clusters', name + '.ini'))]
    complaints += [] if machines.cluster_like(None) == 'h200-node' else ['without a GPU']
    tap.case('/gpu/run/a GPU is predicted as one like it', complaints)


def torch_case(tap, folder):
    """A Python that hangs is asked once, however often it is named, and another one is found. What imports PyTorch while
    other things are done says why it cannot, and none waits long for what hangs."""
    asked = os.path.join(folder, 'asked')
    for name, words in (('hangs', 'echo >> %s; sleep 30' % asked), ('python3', 'echo 2.11.0+cu130')):
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\n%s\n' % words)
        os.chmod(file.name, 0o755)
    hangs, old = os.path.join(folder, 'hangs'), (os.environ['PATH'], machines.ASKING_SECONDS, sys.executable)
    os.environ['PATH'], machines.ASKING_SECONDS, sys.executable = folder + ':' + old[0], 0.5, hangs
    os.environ['FORESHARD_TORCH_PYTHON'] = hangs
    found = machines.python_with_torch()
    os.environ['PATH'], machines.ASKING_SECONDS, sys.executable = old
    del os.environ['FORESHARD_TORCH_PYTHON']
    with open(asked, encoding='utf-8') as file:
        times = len(file.readlines())
    complaints = [] if times == 1 and found == (os.path.join(folder, 'python3'), '2.11.0+cu130') else [
        'asked %d times, found %s' % (times, found)]
    with open(os.path.join(folder, 'breaks'), 'w', encoding='utf-8') as file:
        file.write('#!/bin/sh\necho Traceback >&2; echo ImportError: libcudart.so.13 >&2; exit 1\n')
    os.chmod(file.name, 0o755)
    kept, machines.IMPORT_SECONDS = machines.IMPORT_SECONDS, 1
    for name, wanted in (('python3', ''), ('breaks', 'it cannot be imported: ImportError: libcudart.so.13'),
                         ('hangs', 'its import has not ended after 1 s')):
        session = types.SimpleNamespace(machine=types.SimpleNamespace(importing=machines.Import(os.path.join(folder, name))),
                                        row=lambda *row: complaints.append('a row: %s' % (row,)) if row[2] != wanted else None)
        began = time.monotonic()
        told = [parts.has_torch(session, 'memory') for _ in range(2)]
        complaints += [] if told == [not wanted] * 2 and time.monotonic() - began < 10 else ['%s: %s' % (name, told)]
    machines.IMPORT_SECONDS = kept
    tap.case('/gpu/run/an import that hangs is waited for once', complaints)


def holder_case(tap):
    """The GPU is held open as long as the command lives, however it ends; a machine without NVML loses no time over it."""
    code = 'import machine, os; holder = machine.held_open(); print(holder.pid if holder else 0, flush=True); os._exit(0)'
    nvml = os.path.join(BUILD, 'tests', 'emulator')

    def held(folder):
        done = run(sys.executable, '-B', '-c', code, cwd=HERE, env=os.environ | {'LD_LIBRARY_PATH': folder})
        return int(done.stdout or -1)
    complaints = [] if held('/nowhere') == 0 or machines.gpu() else ['it is held without NVML']
    began, old, os.environ['LD_LIBRARY_PATH'] = time.monotonic(), os.environ.get('LD_LIBRARY_PATH', ''), nvml
    holder = machines.held_open()
    os.environ['LD_LIBRARY_PATH'] = old
    if holder:
        time.sleep(0.3)
        complaints += [] if holder.poll() is None else ['what holds it does not stay']
        holder.stdin.close()
        complaints += [] if holder.wait(5) == 0 else ['its status is %d' % holder.returncode]
        holder.stdout.close()
    else:
        complaints.append('it is not held after %.1f s' % (time.monotonic() - began))
    left = held(nvml)
    for _ in range(50):
        if not os.path.exists('/proc/%d' % left):
            break
        time.sleep(0.1)
    else:
        complaints.append('it is held when the command has ended')
    tap.case('/gpu/run/the GPU is held open meanwhile', complaints)


def fork_case(tap, folder):
    """A process that has begun with CUDA may not fork: only the ranks themselves do. (cuBLASLt loads the driver as it is
    loaded itself; that is no beginning.)"""
    case = '/gpu/run/ranks are forked before CUDA begins'
    machine = machines.Built(BUILD, None)
    if machines.gpu() or not machine.needs_cuda():
        tap.skip(case, 'there is a GPU, or these programs have no CUDA')
        return
    plan, begun = os.path.join(folder, 'fork.plan'), os.path.join(folder, 'begun')
    complaints = unlike(run(machine.programs['foreshard'], 'plan', 'gpt-toy', '-n', '2', '-o', plan), 0)
    environment = machine.environment()
    environment |= {'FORESHARD_DRIVER_BEGUN': begun, 'LD_LIBRARY_PATH': ':'.join(
        [os.path.join(BUILD, 'tests', 'gpu'), environment.get('LD_LIBRARY_PATH', '')])}
    with subprocess.Popen([machine.programs['foreshard-exec'], plan, '--device', 'cuda', '--local-ranks', '2'], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) as process:
        output, _ = process.communicate()
    if process.returncode != 1 or 'no GPU can be used' not in output:
        complaints.append('status %d: %s' % (process.returncode, output[-200:]))
    numbers = open(begun, encoding='utf-8').read().split() if os.path.exists(begun) else []
    if not numbers:
        complaints.append('no rank has begun with CUDA')
    if str(process.pid) in numbers:
        complaints.append('the process that forks has begun with CUDA')
    tap.case(case, complaints)


def later_case(tap, folder):
    """What is loaded only when it is wanted is looked for beforehand."""
    parts_of_it = machines.LOADED_LATER['cuDNN']
    machine = types.SimpleNamespace(environment=lambda: {'LD_LIBRARY_PATH': '/nowhere:' + folder},
                                    programs={'foreshard-cuda.so': '/x/foreshard-cuda.so'})
    known, machines.known_to_loader = machines.known_to_loader, lambda: '\tlibnvrtc.so.13 (libc6,x86-64) => /x\n'

    def missed(what):
        return machines.Machine.not_loaded_later(machine, what)
    complaints = [] if missed('cuDNN') == list(parts_of_it[:-1]) else ['not all are missed']
    complaints += [] if missed('NCCL') == ['libnccl.so'] else ['NCCL is not missed']
    for part in parts_of_it[1:]:
        with open(os.path.join(folder, part + '.9'), 'w', encoding='utf-8'):
            pass
    complaints += [] if missed('cuDNN') == [parts_of_it[0]] else ['the one is not missed']
    machine.programs = {'foreshard': '/x/foreshard'}
    complaints += ['asks for %s without a GPU\'s part' % part for part in missed('cuDNN')]
    machines.known_to_loader = known
    tap.case('/gpu/run/what is loaded later is looked for', complaints)


def missing_case(tap):
    """What keeps the GPU's part from being loaded is told of beforehand; what another program lacks is no reason to skip all."""
    command = run_module()
    machine = types.SimpleNamespace(needs_cuda=lambda: 13, lacks=lambda: ['check-memory lacks libx.so'])
    complaints = ['skips all: ' + command.missing(machine, False)] if command.missing(machine, False) else []
    machine.lacks = lambda: ['check-memory lacks libx.so', 'foreshard-cuda.so lacks libcublasLt.so.13']
    told = command.missing(machine, False)
    complaints += [] if told.startswith('foreshard-cuda.so lacks libcublasLt.so.13, which comes with CUDA 13') else [told]
    complaints += ['a dry run is refused'] if command.missing(machine, True) else []
    tap.case('/gpu/run/a library that is missing is told of', complaints)


def gpu_cases():
    """(name, network, options, seq, ranks that are played, 0 for one that is rehearsed) of all that a GPU is to play."""
    cases = [(name, network, options, 0, 1) for name, network, options in matrix.ONE_RANK + matrix.TRACED]
    cases += [(name, network, options, 0, 0) for name, network, _, options in matrix.REHEARSED]
    cases += [('%d ranks, %s' % (ranks, way), network, '-n %d %s' % (ranks, options), 0, ranks)
              for ranks, way, network, options in matrix.SHARED_CARD]
    cases += [('NCCL, ' + way, network, '-n 2 ' + options, 0, 2) for way, network, options in matrix.NCCL]
    return cases + [(name, network, matrix.TRAINING % batch, seq, 1) for name, network, seq, batch in matrix.TRAINED]


def plans_case(tap, folder):
    """What a GPU is to play can be planned, and begins on an emulated one, whose small memory ends it at once: the dry run
    plays toys in its place."""
    machine = machines.Built(BUILD, None)
    session = Session(machine, os.path.join(folder, 'plans'), 1, dry=False)
    session.part_until = time.monotonic() + 200
    emulated = os.path.join(BUILD, 'tests', 'exec', 'foreshard-exec-emulated')
    unplanned, refused = [], []
    with open(os.path.join(folder, 'plans.log'), 'w', encoding='utf-8') as session.log_file:
        for name, network, options, seq, ranks in gpu_cases():
            plan = matrix.planned(session, name, network, options, seq)
            if not plan:
                unplanned.append(name)
            elif os.path.exists(emulated):
                refused += ['%s: %s' % (name, why) for why in ended_by_memory(session, emulated, plan, ranks)]
    tap.case('/gpu/run/what a GPU is to play can be planned', unplanned)
    case = '/gpu/run/what a GPU is to play is taken by its device'
    if os.path.exists(emulated):
        tap.case(case, refused)
    else:
        tap.skip(case, 'no emulated GPU in this build')


def collectives_case(tap):
    """By NCCL, each way to communicate that a GPU has a call for."""
    with open(os.path.join(ROOT, 'plan', 'op', 'collectives.def'), encoding='utf-8') as file:
        wanted = set(re.findall(r'(?m)^(?:\w+_)?COLLECTIVE\(\w+, *"(\w+)"', file.read())) - {'barrier', 'offer', 'broadcast'}
    told = ''
    for _, network, options in matrix.NCCL:
        told += run(os.path.join(BUILD, 'cli', 'foreshard'), 'plan', network, '-n', '2', *options.split(), '--print').stdout
    launched = set(re.findall(r'(?m)^launch \w+ (\w+) ', told))
    tap.case('/gpu/run/NCCL is asked for each collective', [] if wanted and wanted <= launched else [
        'never: ' + ', '.join(sorted(wanted - launched))])


def ended_by_memory(session, emulated, plan, ranks):
    """Complaints of a run that neither trains nor is out of memory."""
    with open(plan, encoding='utf-8') as lines:
        lanes = next(line for line in lines if line.startswith('lanes ')).split()[1:]
    # Room for what each lane has for itself, and little more.
    environment = os.environ | {'FORESHARD_EMULATOR_MIB': str(34 * len(lanes) + 4), 'OPENBLAS_NUM_THREADS': '1'}
    if ranks:
        done = run(emulated, plan, '--device', 'cuda', '--steps', '1', '--local-ranks', str(ranks), env=environment)
    else:
        done = run(session.machine.programs['foreshard'], 'rehearse', plan, '--rank', '0', '--cluster',
                   matrix.far_cluster(session), '--device', 'cuda', '--steps', '1',
                   env=environment | {'FORESHARD_EXEC': emulated})
    good = done.returncode == 0 or (done.returncode == 1 and 'out of memory' in done.stderr)
    return [] if good else ['status %d: %s' % (done.returncode, (done.stderr or done.stdout)[-200:].strip())]


def main():
    tap = Tap()
    cases_case(tap)
    goals_case(tap)
    readme_case(tap)
    unusable_case(tap)
    benchmark_case(tap)
    sanitizer_case(tap)
    object_case(tap)
    with tempfile.TemporaryDirectory() as folder:
        parts_case(tap, folder)
        full_case(tap, folder)
        share_case(tap, folder)
        suite_case(tap, folder)
        beside_case(tap, folder)
        nccl_case(tap, folder)
        toy_case(tap, folder)
        cut_case(tap, folder)
        unfinished_case(tap, folder)
        attempt_case(tap, folder)
        machine_case(tap, folder)
        sanitized_case(tap, folder)
        driver_case(tap, folder)
        like_case(tap)
        torch_case(tap, folder)
        holder_case(tap)
        fork_case(tap, folder)
        later_case(tap, folder)
        missing_case(tap)
        command_cases(tap, folder)
        plans_case(tap, folder)
        collectives_case(tap)
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
