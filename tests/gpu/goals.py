"""tests/gpu/goals.py - what must hold on a GPU, one row each: what is wanted, what came of it, and the verdict.

The parts leave figures (session.figures) and what came of the tests (session.suites); this is where they are judged
together, after all parts. A goal of which nothing was measured here is skipped, and says which part measures it.
"""
import re
import statistics

import suites


def share_of(pairs, wanted):
    """'ok', 'MISS' or None, and words, of [(name, share)]: each is to reach `wanted`, and the least is told."""
    if not pairs:
        return None, ''
    name, least = min(pairs, key=lambda pair: pair[1])
    return 'ok' if least >= wanted else 'MISS', 'least of %d: %.1f %% (%s), median %.1f %%' % (
        len(pairs), least * 100, name, statistics.median(share for _, share in pairs) * 100)


def all_of(pairs):
    """Likewise of [(name, whether it holds)]."""
    if not pairs:
        return None, ''
    bad = [name for name, good in pairs if not good]
    return 'MISS' if bad else 'ok', '%d of %d%s' % (len(pairs) - len(bad), len(pairs),
                                                    '; not ' + ', '.join(bad[:4]) if bad else '')


def cases_like(session, pattern):
    """Cases of the ranks' test whose name matches: (name, ok), for those that ran."""
    suite = session.suites.get(suites.RANKS)
    return [(path.split('/')[-1], how == 'ok') for path, how in suite.cases.items()
            if how in ('ok', 'not ok') and re.search(pattern, path)] if suite else []


def told_by_ranks(session, pattern):
    suite = session.suites.get(suites.RANKS)
    return re.findall(pattern, suite.output) if suite else []


# ---- one function a goal: (verdict or None, words) ---------------------------------------------------

def kernels(session):
    ran = {name: suite for name, suite in session.suites.items()
           if name.startswith('kernels-cuda/') and not suite.all_skipped}
    if not ran:
        return None, ''
    worst = max(((suites.largest_error(suite.output) or 0), name) for name, suite in ran.items())
    bad = [name for name, suite in ran.items() if suite.verdict() in ('MISS', 'FAIL')]
    cut = [name for name, suite in ran.items() if suite.verdict() == 'skip']
    words = '%d tests in %d programs; largest error %.2g of its bound (%s)' % (
        sum(suite.count('ok') for suite in ran.values()), len(ran), *worst)
    return 'MISS' if bad else 'skip' if cut else 'ok', words + (
        '; not ' + ', '.join(bad) if bad else '') + ('; not through in the time: ' + ', '.join(cut) if cut else '')


def losses(session):
    verdict, words = all_of(cases_like(session, 'losses of 20 steps'))
    told = told_by_ranks(session, r'# (\S.*?): 20 losses differ by at most (\S+) relative')
    return verdict, '; '.join('%s: %s' % pair for pair in told) or words


def modes(session):
    verdict, words = all_of(cases_like(session, r'plays alike: .*-n [24]\b'))
    worst = max(map(float, told_by_ranks(session, r'-n [24]\b.*: losses differ by (\S+) relative')), default=None)
    between = sorted(set(session.figures.get('ranks', [])))
    return verdict, words + ('; losses differ by at most %.2g' % worst if worst is not None else '') + (
        '; bound by ' + ', '.join(between) if between else '')


def replayed(session):
    return all_of(session.figures.get('replayed', []))


def predicted(session):
    with_marks = session.figures.get('memory with marks', [])
    verdict, words = all_of(session.figures.get('memory', []))
    marked, marked_words = all_of(with_marks)
    if verdict is None and marked is None:
        return None, ''
    return 'MISS' if 'MISS' in (verdict, marked) else 'ok', 'all three equal: %s; with marks, allocated: %s' % (
        words or 'none played', marked_words or 'none played')


def driver(session):
    return all_of(session.figures.get('driver', []))


def peaks(session):
    found = [(name[len('peak, '):], values[-1]) for name, values in session.figures.items()
             if name.startswith('peak, ') and name.endswith(' of 512')]
    if not found:
        return None, ''
    return 'ok' if all(first == second for _, (first, second) in found) else 'MISS', '; '.join(
        '%s %.3f GB, predicted %.3f' % (name, second / 1e9, first / 1e9) for name, (first, second) in found)


def pytorch(session):
    return all_of(session.figures.get('PyTorch', []))


def times(session):
    errors = session.figures.get('step error', [])
    if not errors:
        return None, ''
    median = statistics.median(errors)
    return 'ok' if median <= 0.05 else 'MISS', 'median %.1f %%, at most %.1f %%, of %d' % (
        median * 100, max(errors) * 100, len(errors))


def tokens(session):
    verdict, words = share_of(session.figures.get('tokens', []), 1)
    return verdict, words and words + '; 110 % is aimed for'


def utilization(session):
    return share_of(session.figures.get('utilization', []), 0.55)


def copy_speed(session):
    return share_of(session.figures.get('of the copy', []), 0.85)


def failures(session):
    return all_of(cases_like(session, 'failures say why'))


def watchdog(session):
    verdict, words = all_of(cases_like(session, 'a hung collective ends all'))
    told = told_by_ranks(session, r'# ended after (\S+) s')
    return verdict, words + ('; all ended after %s s' % told[0] if told else '')


def sanitizer(session):
    return all_of(session.figures.get('sanitizer', []))


# (what is wanted, the part that measures it, who judges)
GOALS = [
    ('every kernel within its bound of the host\'s', 'tests', kernels),
    ('losses of 20 steps as the host\'s', 'tests', losses),
    ('all sharding modes, 2 and 4 ranks on one card', 'tests', modes),
    ('compute-sanitizer finds nothing', 'sanitizer', sanitizer),
    ('memory (a): replayed, equal everywhere', 'matrix', replayed),
    ('memory (b): predicted, equal everywhere', 'matrix', predicted),
    ('driver\'s count within 1 % + 256 MiB', 'matrix', driver),
    ('rehearsed peaks as predicted', 'matrix', peaks),
    ('PyTorch: allocated in 0.5 %, reserved in 2 %', 'memory', pytorch),
    ('step time within 5 % in the median', 'matrix', times),
    ('at least PyTorch\'s tokens/s', 'training', tokens),
    ('55 % of the rate of a product of 8192 cubed', 'training', utilization),
    ('AdamW, norms, casts: 85 % of a copy', 'benches', copy_speed),
    ('failures name call, rank and op', 'tests', failures),
    ('a hung collective ends every process', 'tests', watchdog),
]


def judge(session):
    """A part of its own, after the others."""
    for wanted, part, goal in GOALS:
        verdict, words = goal(session)
        session.row(wanted, verdict or 'skip', words if verdict else 'nothing measured here; part %s does' % part)
