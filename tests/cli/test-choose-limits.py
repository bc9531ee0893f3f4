"""tests/cli/test-choose-limits.py FORESHARD (days | price) - what `foreshard choose` lists keeps within the days or the
budget that are given, what it leaves out does not, and it says what would do. Each takes half of a minute, so they are
two programs to Meson."""
import os
import re
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from runner import Runner
from tap import Tap


def check_unpriced_kind(run):
    """One kind of node without a price: what uses it has none, and cannot be held against a budget."""
    with open(os.path.join(run.folder, 'mixed.ini'), 'w') as file:
        file.write('[cluster]\nlike = dgx-h100\n[topology]\nnodes = 2\n[device]\nprice_per_hour = 2.5\n'
                   '[nodes old]\nat = 1\nlike = a100-p4d\n')
    words = ['choose', 'gpt2', '-n', '16', '--cluster', 'mixed.ini', '--knob', 'micro_batch=4', '--tokens', '1e9']
    _, out, _ = run(*words)
    status, _, err = run(*words, '--budget', '1')
    said = [] if 'no price of mixed is known' in out else [out]
    return said if status == 2 and 'no price of mixed is known' in err else said + ['status %d, %s' % (status, err)]


def check_money(run):
    said = []
    both = ['gpt2', '-n', '8', '--seq', '512', '--cluster', 'a100-node', '--cluster', 'dgx-h100', '--top', '1']
    plain = run.json('choose', *both, '--price', 'dgx-h100=8')
    if plain['ranked_by'] != 'tokens_per_s_per_gpu' or plain['choices'][0]['cluster'] != 'dgx-h100':
        said.append('one price alone ranks by ' + plain['ranked_by'])
    priced = run.json('choose', *both, '--price', 'dgx-h100=8', '--price', 'a100-node=1', '--tokens', '3e9')
    rows = priced['choices']
    if priced['ranked_by'] != 'price_per_billion_tokens' or [row['cluster'] for row in rows] != [
            'a100-node', 'dgx-h100']:
        said.append('by price: %s' % [row['cluster'] for row in rows])
    for row, price in zip(rows, (1, 8)):
        seconds = 3e9 / row['tokens_per_s']
        wanted = {'days': seconds / 86400, 'price': price * 8 * seconds / 3600,
                  'price_per_billion_tokens': price * 8 * seconds / 3600 / 3}
        for key, value in wanted.items():
            if abs(row[key] - value) > 1e-9 * value:
                said.append('%s is %s, not %s' % (key, row[key], value))
        if 'tokens' in row:
            said.append('tokens are told of a training whose tokens were given')
    span = run.json('choose', *both, '--price', 'dgx-h100=8', '--price', 'a100-node=1', '--days', '60')
    for row, price in zip(span['choices'], (1, 8)):
        wanted = {'days': 60, 'tokens': 60 * 86400 * row['tokens_per_s'], 'price': 60 * 24 * 8 * price}
        for key, value in wanted.items():
            if abs(row[key] - value) > 1e-9 * value:
                said.append('in 60 days %s is %s, not %s' % (key, row[key], value))
    if span['n_predicted'] != priced['n_predicted'] or 'n_late' in span:
        said.append('days without tokens leave out something')
    more = run.json('choose', *both[:5], '--cluster', 'dgx-h100:2', '--price', 'dgx-h100=8')
    if more['choices'][0].get('price_per_billion_tokens', 0) <= 0:
        said.append('a name without its :NODES has no price')
    said += check_unpriced_kind(run)
    return said


def check_deadline(run):
    """Of all that fits those that are done in time, and no other; where none is, what is quickest."""
    said = []
    words = ['gpt2-xl', '--cluster', 'dgx-h100:4', '--top', '99', '--tokens', '1T']
    everything = run.json('choose', *words)['choices']
    days = sorted(row['days'] for row in everything)
    limit = days[len(days) // 3]
    kept = run.json('choose', *words, '--days', '%.17g' % limit)
    wanted = [row['settings'] for row in everything if row['days'] <= limit]
    if [row['settings'] for row in kept['choices']] != wanted or kept['n_late'] != len(days) - len(wanted):
        said.append('%d in time and %d late, for %d of %d' % (len(kept['choices']), kept['n_late'],
                                                              len(wanted), len(days)))
    late = run.json('choose', *words, '--days', '%.17g' % (0.45 * days[0]))
    if late['choices'] or late['quickest']['days'] != days[0] or 'nearest' in late:
        said.append('none in time, and quickest is %s' % late.get('quickest', {}).get('days'))
    status, out, err = run('choose', *words, '--days', '%.17g' % (0.45 * days[0]), '-o', 'late.ini')
    # Of 32 GPUs 72 are 2.22 times as many: whole nodes, rounded up.
    if status or 'nothing finishes in time, so late.ini' not in err or '-n 72 --cluster dgx-h100:9' not in out:
        said.append('%s%s' % (out, err))
    for share, is_told in ((1.05, True), (9, False)):
        out = ' '.join(run('choose', *words, '--days', '%.17g' % (share * days[0]))[1].split())
        if ('days only if steps take at most so much more than predicted: row 1 5.0 %' in out) != is_told:
            said.append('what an error would make late, %s: %s' % (share, out))
    out = run('choose', *words, '--days', '1')[1]
    if 'nothing that fits finishes in 1 day; the fastest' not in out:
        said.append(out)
    more = run.json('choose', 'gpt2-xl', '-n', '72', '--cluster', 'dgx-h100:9', '--tokens', '1T', '--days',
                    '%.17g' % (0.45 * days[0]))
    if not more['choices']:
        said.append('nor with 72 GPUs')
    suffixed, plain = (run.json('choose', *words[:3], '-n', '8', '--tokens', text) for text in ('3B', '3e9'))
    if suffixed != plain:
        said.append('3B is not 3e9')
    return said


def check_budget(run):
    """Of what is done in time that which the budget pays, and no other; where none is, what is cheapest."""
    said = []
    words = ['gpt2-xl', '--cluster', 'dgx-h100:4', '--cluster', 'a100-node', '--price', 'dgx-h100=3', '--price', 'a100-node=4',
             '--top', '99', '--tokens', '1T']
    everything = run.json('choose', *words)['choices']
    limit = sorted(row['price'] for row in everything)[len(everything) // 3]
    days = sorted(row['days'] for row in everything)[len(everything) // 2]
    for most_days in (days, 1e9):
        timely = [row for row in everything if row['days'] <= most_days]
        kept = run.json('choose', *words, '--days', '%.17g' % most_days, '--budget', '%.17g' % limit)
        wanted = [row['settings'] for row in timely if row['price'] <= limit]
        if [row['settings'] for row in kept['choices']] != wanted or kept['n_dear'] != len(timely) - len(wanted) or \
                kept['most_price'] != limit or not 0 < len(wanted) < len(timely):
            said.append('%d of %d are kept, %d wanted' % (len(kept['choices']), len(timely), len(wanted)))
    least = min(row['price'] for row in everything)
    dear = run.json('choose', *words, '--budget', '%.17g' % (0.9 * least))
    if dear['choices'] or dear['cheapest']['price'] != least or 'nearest' in dear:
        said.append('none is within, and cheapest is %s' % dear.get('cheapest', {}).get('price'))
    a100 = min(row['price'] for row in everything if row['cluster'] == 'a100-node')
    empty = run.json('choose', *words, '--budget', '%.17g' % (0.5 * (least + a100)))['clusters_without_choice']
    if [(place['cluster'], place['least_price']) for place in empty] != [('a100-node', a100)]:
        said.append('%s' % empty)
    _, out, _ = run('choose', *words, '--budget', '%.17g' % (0.5 * (least + a100)))
    if not re.search(r'not listed: a100-node, where nothing costs \d+ or less; the cheapest costs %.0f, on 8 GPUs' % a100,
                     ' '.join(out.split())):
        said.append(out)
    _, out, err = run('choose', *words, '--budget', '%.17g' % (0.9 * least), '-o', 'dear.ini')
    if 'nothing is within the budget, so dear.ini' not in err or 'the cheapest costs %.0f and takes' % least not in out:
        said.append('%s%s' % (out, err))
    return said


def check_clusters_without_a_row(run):
    """Each cluster that was asked about has a row or says why it has none: no room, or no time."""
    said = []
    words = ['gpt-10b', '--cluster', 'a10g-g5:1', '--cluster', 'a100-node', '--cluster', 'dgx-h100:4', '--tokens', '1T']
    days = min(row['days'] for row in run.json('choose', *words, '--top', '99')['choices']
               if row['cluster'] == 'a100-node')
    words += ['--days', '%.17g' % (0.9 * days)]
    empty = {place['cluster']: place for place in run.json('choose', *words)['clusters_without_choice']}
    if sorted(empty) != ['a100-node', 'a10g-g5:1'] or empty['a100-node']['least_days'] != days or \
            [empty[name]['fits'] for name in sorted(empty)] != [True, False]:
        said.append('%s' % empty)
    status, out, _ = run('choose', *words, '--price', 'dgx-h100=2')
    for wanted in (r'not listed: a10g-g5:1, where nothing fits; the nearest needs ([\d.]+) GiB of ([\d.]+) GiB',
                   r'not listed: a100-node, where nothing finishes in [\d.]+ days; the fastest takes \d+ days, on 8 GPUs'):
        if status or not re.search(wanted, ' '.join(out.split())):
            said.append('%s: %s' % (wanted, out))
    _, out, _ = run('choose', 'gpt-10b', '--cluster', 'a100-p4de:1', '--cluster', 'dgx-h100:4', '--tokens', '1T', '--days',
                    '%.17g' % (0.3 * days))
    wanted = r'takes [\d.]+ days, on 8 GPUs; 32 would do if each stayed as fast \(--cluster a100-p4de:4\)'
    if not re.search(wanted, ' '.join(out.split())):  # of 8 GPUs 3.3 times as many are 4 nodes
        said.append('%s: %s' % (wanted, out))
    _, out, _ = run('choose', 'gpt2', '-n', '8', '--cluster', 'a100-node', '--cluster', 'dgx-h100', '--price', 'dgx-h100=2')
    if 'no price of a100-node is known' not in out or 'not listed' in out:
        said.append(out)
    _, out, _ = run('choose', 'gpt-10b', '--cluster', 'a100-node', '--cluster', 'dgx-h100', '--price', 'dgx-h100=2', '--tokens',
                    '1T', '--days', '%.17g' % (0.9 * days))
    if 'ranked by price per token' not in out or 'not listed: a100-node' not in out or 'no price' in out:
        said.append('a price that no row needs: ' + out)
    return said


def main(program, part):
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(os.path.abspath(program), folder)
        if part == 'days':
            tap.case('a deadline', check_deadline(run))
        else:
            tap.case('prices and days', check_money(run))
            tap.case('a budget', check_budget(run))
            tap.case('clusters without a row', check_clusters_without_a_row(run))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
