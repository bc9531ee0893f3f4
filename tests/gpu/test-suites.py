"""tests/gpu/suites.py, and goals.py: what comes of programs of tests, and of what must hold on a GPU.

    test-suites.py SOURCE-ROOT BUILD-FOLDER
"""
import os
import re
import sys
import tempfile
import types

from trying import program, session_in

import goals
import suites
from session import Done
from tap import Tap


def cases_case(tap):
    wanted = {'1..3\nok 1 /a b\nok 2 /c # SKIP no GPU\nnot ok 3 /d: -n 2\n# told\n': {
        '/a b': 'ok', '/c': 'skip', '/d: -n 2': 'not ok'}, '1..0 # SKIP no GPU\n': {}, '': {}}
    tap.case('/gpu/suites/cases of a test are told apart', [
        '%r: %s' % (text, suites.cases_of(text)) for text, cases in wanted.items() if suites.cases_of(text) != cases])


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
    crashing = program(os.path.join(folder, 'crashing.py'), CRASHING)
    test = {'name': 't', 'command': [sys.executable, crashing], 'environment': {}, 'timeout': 60}
    with session_in(os.path.join(folder, 'suite'), 8, dry=True, tests=[test], programs={}) as session:
        suite = suites.run_suite(session, test)
    cases = {'/t/first': 'ok', '/t/crashes': 'not ok', '/t/third': 'ok', '/t/fails': 'not ok'}
    complaints = [] if suite.cases == cases and suite.verdict() == 'FAIL' else ['%s' % suite.cases]
    for words in ('2 passed, 2 failed, 2 not reached', 'at most 0.2 of their bounds', 'first: /t/crashes'):
        if words not in suite.text():
            complaints.append('no "%s" in: %s' % (words, suite.text()))
    if suites.told_before(suite.output, '/t/fails') != ': x (type 1): element 3':
        complaints.append('what a failure said is lost')
    tap.case('/gpu/suites/one test that ends its program does not keep the others from running', complaints)


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
    timed, times = program(os.path.join(folder, 'timed.py'), TIMED), os.path.join(folder, 'times')
    kernels = ['/k/1', '/k/2', '/l/1', '/l/2']
    alone, first = ['/r/the driver counts alike'], ['/r/losses of 20 steps', '/r/failures say why']
    shared, traced = ['/r/plays alike: %d' % i for i in range(8)], ['/r/traced: %d' % i for i in range(2)]

    def test_of(name, paths):
        listed = os.path.join(folder, re.sub(r'\W', '-', name))
        with open(listed, 'w', encoding='utf-8') as file:
            file.write('\n'.join(paths))
        return {'name': name, 'command': [sys.executable, timed, listed, times], 'environment': {}, 'timeout': 60}
    tests = [test_of('kernels-cuda/k', ['/k/1', '/k/2']), test_of('kernels-cuda/l', ['/l/1', '/l/2']),
             test_of('exec/gpu', alone + shared + first + ['/r/plays and crashes']), test_of('exec/traced-gpu', traced)]
    cores, os.cpu_count = os.cpu_count, lambda: suites.CORES_FOR_THAT
    with session_in(os.path.join(folder, 'beside'), tests=tests, programs={}, has_gpu=True) as session:
        session.trains = True
        suites.tests(session)
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
    complaints += [] if set(first) <= set(begun[:suites.RANKS_BESIDE]) else ['begun: ' + ' '.join(begun)]
    complaints += [] if any(('/k' in a) != ('/k' in b) for a, b in overlap) else ['kernels had the machine for themselves']
    complaints += [] if any({a[:2], b[:2]} == {'/k', '/l'} for a, b in overlap) else ['kernels were tried one by one']
    rows = {row['name']: (row['verdict'], row['value']) for row in session.rows}
    complaints += [] if {rows['kernels-cuda/' + name][0] for name in 'kl'} == {'ok'} else [str(rows)]
    complaints += [] if rows['exec/gpu'][0] == 'FAIL' and '11 passed, 1 failed' in rows['exec/gpu'][1] else [str(rows)]
    tap.case('/gpu/suites/tests run beside one another where they may', complaints)


def unusable_case(tap):
    """A GPU that is shown and cannot be used: what would be skipped without one has failed, and says why."""
    suite = suite_of('1..0 # SKIP no GPU: compiled, not run (CUDA driver version is insufficient)\n')
    suite.all_skipped = True
    complaints = []
    for dry, has_gpu, verdict in ((True, False, 'skip'), (False, False, 'skip'), (False, True, 'FAIL')):
        session = types.SimpleNamespace(dry=dry, machine=types.SimpleNamespace(has_gpu=has_gpu))
        told = suites.told_of(session, suite)
        if told != (verdict, 'no GPU: compiled, not run (CUDA driver version is insufficient)'):
            complaints.append('%s, %s: %s' % (dry, has_gpu, told))
    tail = Done(1, 1, 'foreshard-exec: rank 0: it is broken\nforeshard calibrate: Child process exited with code 1\n\n').tail()
    complaints += [] if tail == 'foreshard-exec: rank 0: it is broken' else [tail]
    tap.case('/gpu/suites/a GPU that cannot be used is no skip', complaints)


# ---- the goals -------------------------------------------------------------------------------------

def judged(session):
    out = {}
    session.row = lambda name, verdict, value='': out.update({name: (verdict, value)})
    goals.judge(session)
    return [out[wanted] for wanted, _, _ in goals.GOALS]


def suite_of(output, rc=0):
    suite = suites.Suite()
    suite.cases, suite.output, suite.rc = suites.cases_of(output), output, rc
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
        ran = {'exec/gpu': suite_of(changed.pop('said', RANKS_SAID)), 'kernels-cuda/rows': suite_of(changed.pop(
            'kernels', '# largest error: 0.5 of its bound (y)\nok 1 /kernels-cuda/norm/x\n'))}
        return types.SimpleNamespace(figures=figures | changed, suites=ran)
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
    tap.case('/gpu/suites/each goal is judged', complaints)


def cut_case(tap):
    """Tests that time has cut off have not missed."""
    complaints = []
    for cases, is_cut, verdict, goal in (({'/k/a': 'ok'}, True, 'skip', 'skip'), ({}, True, 'skip', 'skip'),
                                         ({'/k/a': 'ok'}, False, 'MISS', 'MISS'), ({'/k/a': 'not ok'}, True, 'FAIL', 'MISS')):
        suite = suite_of('', 124)
        suite.cases, suite.is_cut = cases, is_cut
        told = goals.kernels(types.SimpleNamespace(suites={'kernels-cuda/k': suite}))
        if (suite.verdict(), told[0]) != (verdict, goal) or 'kernels-cuda/k' not in told[1]:
            complaints.append('%s, %s: %s, %s' % (cases, is_cut, suite.verdict(), told))
    tap.case('/gpu/suites/tests that time has cut off have not missed', complaints)


def main():
    tap = Tap()
    cases_case(tap)
    unusable_case(tap)
    goals_case(tap)
    cut_case(tap)
    with tempfile.TemporaryDirectory() as folder:
        suite_case(tap, folder)
        beside_case(tap, folder)
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
