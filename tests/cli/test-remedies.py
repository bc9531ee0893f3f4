"""tests/cli/test-remedies.py FORESHARD SOURCE NETWORK [PAIRS] - the remedies that refused strategies are told ("set
KEY=VALUE and KEY=VALUE, or KEY=VALUE"): each is taken, does away with what was refused, and leads on to a plan."""
import os
import random
import re
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from runner import Runner, flat
from tap import Tap

PAIRS = 60  # of settings that are drawn, for each network, beside all with these
ALWAYS = [('flavour', 'fsdp1'), ('offload', 'optimizer')]
STEPS = 5  # remedies, one after the other, that may be needed
NETWORKS = ('gpt-toy', 'llama-toy', 'moe-toy')
ARGUMENTS = {'N': '2', 'every=K': 'every=2', 'size=N': 'size=5000', 'module=REGEX': 'module=layers.0',
             'ratio=P': 'ratio=0.5', 'from=K': 'from=1024', 'conf=TEXT': 'conf=expandable_segments:True'}
NUMBERS = {'ranks': '1 6', 'replicate': '2 4', 'limit_all_gathers': '0', 'lora_rank': '4', 'context': '2 8',
           'tensor': '2 4', 'pipeline': '2', 'pipeline_stages': '2', 'expert': '2', 'accumulate': '2',
           'seq': '30', 'document': '8', 'clip': '1', 'expert_overload': '9'}
PAIR = r'[a-z_0-9]+ ?= ?[\w.+-]+'


def settings(source):
    """Every value of every key, a few of the numbers'."""
    with open(os.path.join(source, 'plan', 'strategy', 'keys.def'), encoding='utf-8') as file:
        rows = re.findall(r'^(?:CHOICE|VARIANT)\(\w+, "(\w+)", \w+, "([^"]*)"', file.read(), re.MULTILINE)
    return [(key, ARGUMENTS.get(value, value)) for key, values in [*rows, *NUMBERS.items()]
            for value in values.split()]


def remedies(message):
    """The alternatives behind "; set " that are settings alone. A bare value is the last key's."""
    behind = re.sub(r'leave (\w+) at (\w+)', r'\1=\2', message.rsplit('; ', 1)[-1])
    found, key = [], ''
    for words in re.split(r',? or ', re.sub(r'^set ', '', behind)):
        if found and re.fullmatch(r'[\w-]+', words):
            words = '%s=%s' % (key, words)
        if re.fullmatch('%s(?:,? and %s)*' % (PAIR, PAIR), words):
            pairs = [tuple(re.split(' ?= ?', pair)) for pair in re.findall(PAIR, words)]
            found.append(dict(pairs))
            key = pairs[-1][0]
    return found


class Asked:
    """What foreshard says to a strategy, asked once each."""

    def __init__(self, run, network):
        self.run, self.network, self.known = run, network, {}

    def __call__(self, strategy):
        words = [word for key, value in sorted(strategy.items()) for word in ('--' + key.replace('_', '-'), value)]
        if tuple(words) not in self.known:
            status, _, err = self.run('plan', self.network, *words)
            if status not in (0, 2):
                raise RuntimeError('%s: status %d, %s' % (' '.join(words), status, err))
            self.known[tuple(words)] = flat(err) if status else ''
        return self.known[tuple(words)]


def is_no_remedy(before, after):
    return before == after or ' must be ' in after or 'Unknown option' in after


def leads_on(asked, strategy):
    """Whether remedies, one after the other, end in a plan, or in advice without a value."""
    front, seen = [strategy], set()
    for _ in range(STEPS):
        following = []
        for one in front:
            message = asked(one)
            ways = remedies(message)
            if not message or not ways:
                return True
            following += [{**one, **way} for way in ways]
        front = [one for one in following if tuple(sorted(one.items())) not in seen]
        seen |= {tuple(sorted(one.items())) for one in front}
    return any(not asked(one) for one in front)


def check(run, network, drawn):
    asked, said, n = Asked(run, network), [], 0
    for pair in drawn:
        strategy = {'ranks': '8', **dict(pair)}
        message = asked(strategy)
        for way in remedies(message):
            after = asked({**strategy, **way})
            n += 1
            if is_no_remedy(message, after):
                said.append('%s: %s leads to: %s' % (strategy, way, after))
        if message and not leads_on(asked, strategy):
            said.append('%s: no way out of: %s' % (strategy, message))
    return said if n > 0 else ['nothing was refused with a remedy']


def main():
    program, source, wanted = sys.argv[1:4]
    assert wanted in NETWORKS, wanted
    pairs = int(sys.argv[4]) if len(sys.argv) > 4 else PAIRS
    tap, draw = Tap(), random.Random(pairs)
    each = settings(source)
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(program, folder)
        for network in NETWORKS:
            drawn = [(one,) for one in each] + [(fixed, one) for fixed in ALWAYS for one in each]
            drawn += [draw.sample(each, 2) for _ in range(pairs)]
            if network == wanted:
                tap.case('remedies of ' + network, check(run, network, drawn))
    sys.exit(tap.finish())


if __name__ == '__main__':
    main()
