"""tests/gpu/suites.py - the suite gpu: runs its programs, and tells what came of each test.

A test that ends its program keeps none of the others from running, and programs run beside one another where
they may.
"""
import os
import re

RANKS = 'exec/gpu'  # the program whose tests have ranks


def cases_of(output):
    """{path: ok, skip or not ok} of TAP."""
    cases = {}
    for how, path, why in re.findall(r'(?m)^\s*(not ok|ok)(?: \d+)? ([^#\n]*?)\s*(#.*)?$', output):
        cases[path] = 'skip' if how == 'ok' and '# SKIP' in why.upper() else how
    return cases


class Suite:
    """What came of one program of tests. `cases`: path -> ok, skip or not ok."""

    def __init__(self):
        self.cases, self.output, self.wall_s, self.rc = {}, '', 0, 0
        self.not_reached, self.all_skipped, self.is_cut = 0, False, False

    def count(self, how):
        return sum(verdict == how for verdict in self.cases.values())

    def verdict(self):
        if self.count('not ok') or self.rc not in (0, 77, 124):
            return 'FAIL'
        if self.rc == 124:
            return 'skip' if self.is_cut else 'MISS'
        return 'ok' if self.count('ok') else 'skip'

    def text(self):
        counts = [(self.count('ok'), 'passed'), (self.count('not ok'), 'failed'), (self.count('skip'), 'skipped'),
                  (self.not_reached, 'not reached in the time')]
        if self.is_cut and not self.cases:
            return 'not reached in the time'
        text = ', '.join('%d %s' % pair for pair in counts if pair[0] or pair[1] == 'passed')
        text += ' in %.0f s' % self.wall_s
        worst = largest_error(self.output)
        if worst:
            text += ', errors at most %.2g of their bounds' % worst
        bad = next((path for path, how in self.cases.items() if how == 'not ok'), None)
        if bad:
            return '%s; first: %s%s' % (text, bad, told_before(self.output, bad))
        return text if self.rc in (0, 77, 124) else '%s; status %d' % (text, self.rc)


def told_before(output, path):
    """What the test of that path said of its failure, after the test before it had ended."""
    parts = re.split(r'(?m)^not ok \d+ %s *$' % re.escape(path), output)
    own = re.split(r'(?m)^(?:not )?ok .*$', parts[0])[-1] if len(parts) > 1 else ''
    found = re.search(r'(?m)^# FAILED: (.*)$', own)
    return ': ' + found.group(1) if found else ''


def largest_error(output):
    """As a share of its bound, of all that a program compared; None when it says nothing of the kind."""
    shares = re.findall(r'largest error: (\S+) of its bound', output)
    return max(map(float, shares)) if shares else None


MOST_CRASHES = 6  # of one program, after each of which its other tests run


def chosen(paths):
    """GLib's words for these tests alone, of which one that fails ends no program."""
    return ['-k', *(word for path in paths for word in ('-p', path))]


def listed(session, test):
    """The names of a program's tests; none where it skips them all."""
    done = session.call(*test['command'], '-l', limit=60, environment=test['environment'])
    return [path for path in done.output.split('\n') if path.startswith('/')]


def run_suite(session, test, paths=()):
    """Runs a program of tests, or these of them; what a test that ends the program keeps from running is run after all."""
    suite, only, wanted = Suite(), chosen(paths), paths
    for _ in range(MOST_CRASHES):
        done = session.call(*test['command'], *only, limit=max(60, test['timeout']), environment=test['environment'])
        suite.output += done.output
        suite.wall_s += done.wall_s
        suite.rc, suite.is_cut = done.rc, done.is_cut
        found = cases_of(done.output)
        suite.cases.update(found)
        suite.all_skipped = bool(re.search(r'(?mi)^1\.\.0 # SKIP', done.output))
        if done.rc == 124:
            planned = re.search(r'(?m)^1\.\.(\d+)', done.output)
            known = len(wanted) - len(suite.cases) if wanted else int(planned.group(1)) - len(found) if planned else 0
            suite.not_reached = max(0, known)
        if done.rc in (0, 77, 124) or suite.all_skipped:
            break
        wanted = wanted or listed(session, test)
        missing = [path for path in wanted if path not in suite.cases]
        if not missing:
            break
        suite.cases[missing[0]] = 'not ok'  # the one that ended the program
        only = chosen(missing[1:])
        if not missing[1:]:
            break
    return suite


# Of the ranks' test: what stands for most comes first, what takes longest last; what looks at all of the GPU's memory has
# it for itself, at the end.
FIRST = ('losses of 20 steps', 'failures say why', 'a hung collective')
LAST = ('a GPU is measured',)
ALONE = ('the driver counts',)
RANKS_BESIDE = 4  # programs of the ranks' test at once: most of their time goes by while CUDA begins
KERNELS_BESIDE = 3  # of kernels' tests, beside those
CORES_FOR_THAT = 8


def joined(suites):
    """One program's, which ran in parts."""
    whole = Suite()
    for suite in suites:
        whole.cases.update(suite.cases)
        whole.output += suite.output
        whole.wall_s += suite.wall_s
        whole.not_reached += suite.not_reached
        whole.rc = whole.rc if whole.rc not in (0, 77, 124) else suite.rc or whole.rc
        whole.is_cut = whole.is_cut or suite.is_cut
    whole.all_skipped = bool(suites) and all(suite.all_skipped for suite in suites)
    return whole


def matching(paths, words):
    return [path for path in paths if any(word in path for word in words)]


def has_cores():
    return (os.cpu_count() or 1) >= CORES_FOR_THAT


def dealt_out(works, hands):
    """The works as so many functions, each of which does its share of them one after the other."""
    def done_by(hand):
        for work in works[hand::hands]:
            work()
    return [lambda hand=hand: done_by(hand) for hand in range(hands)]


def run_ranks_beside(session, test, others, likewise):
    """The ranks' test in parts, of which those that may run at once do so, beside the functions that run other tests; those
    of `likewise` have ranks as well, and begin with the rest of them."""
    found, test = [], bound(session, test)

    def play(some):
        if some:
            found.append(run_suite(session, test, some))
    paths = listed(session, test)
    if not paths:  # all are skipped, and it says why
        found.append(run_suite(session, test))
    first, last, alone = (matching(paths, words) for words in (FIRST, LAST, ALONE))
    shared = first + [path for path in paths if path not in first + last + alone] + last
    session.beside([lambda some=shared[i::RANKS_BESIDE]: play(some) for i in range(RANKS_BESIDE)] + likewise + others)
    play(alone)
    return joined(found)


def bound(session, test):
    """The test, whose ranks share a card, and communicate by way of the host's memory: there many programs are at work at
    once, NCCL's kernels keep the GPU while they wait, and it has a part of its own (by_nccl). Where a toy has trained, each
    of its programs need not train one to see that there is a GPU."""
    known = {'FORESHARD_TEST_HAS_GPU': '1'} if session.trains else {}
    return dict(test, environment=test['environment'] | {'FORESHARD_TEST_COMM': 'local'} | known)


# ---- the part ----------------------------------------------------------------------------------------

def tests(session):
    """The suite gpu: kernels against the host's, the device, ranks on one card."""
    if not session.machine.tests:
        session.row('suite gpu', 'skip', 'these programs have no such tests (built without CUDA)')
        return
    all_tests = session.machine.tests
    ranks = [test for test in all_tests if test['name'] == RANKS and has_cores() and not session.dry]

    def play(test):
        session.suites[test['name']] = run_suite(session, bound(session, test))

    def works_of(some):
        return [lambda test=test: session.attempt(test['name'], play, test) for test in some]
    kernels = [test for test in all_tests if test['name'].startswith('kernels-cuda/')]
    if ranks:
        session.suites[RANKS] = run_ranks_beside(
            session, ranks[0], dealt_out(works_of(kernels), KERNELS_BESIDE),
            works_of(test for test in all_tests if test not in ranks + kernels))
    else:
        dealt_out(works_of(all_tests), 1)[0]()
    for test in all_tests:
        if test['name'] in session.suites:
            session.row(test['name'], *told_of(session, session.suites[test['name']]))


def told_of(session, suite):
    """(verdict, words). Where nvidia-smi shows a GPU that CUDA cannot use, a suite that skips all has failed."""
    if not suite.all_skipped:
        return suite.verdict(), suite.text()
    why = re.search(r'(?mi)^1\.\.0 # SKIP (.*)$', suite.output)
    return 'skip' if session.dry or not session.machine.has_gpu else 'FAIL', why.group(1) if why else 'no GPU here'
