"""The matrix of strategies, sampled in pairs: each value of each option meets each value of each other option.

    python3 -B test-pairwise.py FORESHARD

Sharding mode and flavour, ranks, units, gathers in backward and in forward, resharding, checkpointing and
accumulation: a global batch of 12 on 1 to 4 ranks, whose losses of 20 steps must follow one rank by itself to 1e-5.
The first strategy of each mode is run by mpirun. The others' ranks are forked: that takes a third of the time.
A pair that no strategy has, for the planner refuses all that are tried, is counted and named with --verbose."""
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "style"))
from tap import Tap  # noqa: E402

STEPS, BATCH, BOUND = 20, 12, 1e-5
TRIES = 20  # of completing a pair at random
BESIDE = 2  # runs at once: ranks begin and end for longer than they train
MATRIX = {
    "mode": ("--sharding full", "--sharding full --flavour fsdp1", "--sharding grad-op",
             "--sharding grad-op --flavour fsdp1", "--sharding hybrid", "--sharding hybrid --flavour fsdp1",
             "--sharding hybrid-grad-op --flavour fsdp1", "--sharding none", "--sharding none --flavour fsdp1",
             "--sharding optimizer-only"),
    "ranks": (1, 2, 3, 4),
    "wrap": ("block", "whole", "linear", "every=2", "size=20000"),
    "backward-prefetch": ("pre", "post", "none"),
    "forward-prefetch": ("no", "yes"),
    "reshard-after-forward": ("default", "yes", "no", "2"),
    "checkpointing": ("none", "full", "every=2", "ratio=0.5", "selective-op"),
    "accumulate": ("once", "last", "every"),
}
KEYS = tuple(MATRIX)


def words_of(choice):
    """choice: a value for each of KEYS. What is a default is not given, for not every flavour knows it."""
    point = dict(zip(KEYS, choice))
    ranks = point["ranks"]
    passes = 1 if point["accumulate"] == "once" else 2 if ranks == 3 else 3  # 12 is to be divided
    words = f"-n {ranks} --micro-batch {BATCH // ranks // passes} {point['mode']}"
    if "hybrid" in point["mode"]:
        words += f" --replicate {ranks if ranks % 2 else 2}"
    defaults = {"backward-prefetch": "pre", "forward-prefetch": "no", "reshard-after-forward": "default",
                "wrap": "block", "checkpointing": "none"}
    for key, usual in defaults.items():
        if point[key] != usual:
            words += f" --{key} {point[key]}"
    if passes > 1:
        words += f" --accumulate {passes} --accumulate-sync {point['accumulate']}"
    return words.split()


def pairs_of(choice):
    return set(itertools.combinations(enumerate(choice), 2))


def all_pairs():
    return {((a, x), (b, y)) for a, b in itertools.combinations(range(len(KEYS)), 2)
            for x in MATRIX[KEYS[a]] for y in MATRIX[KEYS[b]]}


def foreshard(*words, forks=False):
    """forks: where no mpirun is found, the program forks its ranks."""
    env = {**os.environ, "PATH": "/"} if forks else None
    return subprocess.run([program, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def can_be_planned(choice, folder, known={}):
    if choice not in known:
        known[choice] = foreshard("plan", "gpt-toy", *words_of(choice), "-o", folder + "/x.plan").returncode == 0
    return known[choice]


def complete(pair, left, rng, folder):
    """Of the sound strategies with this pair, one that has many of the pairs left; None if there is none."""
    candidates = []
    for mode in MATRIX["mode"]:  # the plainest strategies that have it: if none is sound, no other is
        choice = [mode, 4, *(MATRIX[key][0] for key in KEYS[2:])]
        for place, value in pair:
            choice[place] = value
        candidates.append(tuple(choice))
    for _ in range(TRIES):
        usual = rng.random()  # share of options at their defaults, which few strategies refuse
        choice = [rng.choice(MATRIX[key]) if rng.random() > usual else MATRIX[key][0] for key in KEYS]
        for place, value in pair:
            choice[place] = value
        candidates.append(tuple(choice))
    candidates.sort(key=lambda choice: -len(pairs_of(choice) & left))
    return next((choice for choice in candidates if can_be_planned(choice, folder)), None)


def sample(folder):
    """Strategies, and the pairs that none has."""
    rng, left, chosen, impossible = random.Random(1), all_pairs(), [], []
    for pair in sorted(left, key=str):
        if pair in left:
            choice = complete(pair, left, rng, folder)
            if choice:
                chosen.append(choice)
                left -= pairs_of(choice)
            else:
                impossible.append(pair)
    return chosen, impossible


def losses_of(words, forks):
    run = foreshard("run", "gpt-toy", *words, "--steps", str(STEPS), "--json", forks=forks)
    if run.returncode:
        raise SystemExit(f"{' '.join(words)}: {run.stderr}")
    return json.loads(run.stdout)["losses"]


def main():
    tap, complaints, worst = Tap(), [], 0
    with tempfile.TemporaryDirectory() as folder:
        chosen, impossible = sample(folder)
    expected = losses_of(["-n", "1", "--sharding", "none", "--micro-batch", str(BATCH)], False)
    modes = [choice[0] for choice in chosen]
    forks = [mode in modes[:i] for i, mode in enumerate(modes)]
    with ThreadPoolExecutor(BESIDE) as pool:
        losses = list(pool.map(losses_of, map(words_of, chosen), forks))
    for choice, got in zip(chosen, losses, strict=True):
        words = words_of(choice)
        differs = max(abs(a / b - 1) for a, b in zip(got, expected, strict=True))
        worst = max(worst, differs)
        if differs > BOUND:
            complaints.append(f"{' '.join(words)}: losses differ by {differs:.2g} relative")
    print(f"# {len(all_pairs()) - len(impossible)} of {len(all_pairs())} pairs in {len(chosen)} strategies, "
          f"{forks.count(False)} of them by mpirun; the others are refused; losses differ by at most {worst:.2g} relative")
    if "--verbose" in sys.argv:
        for (a, x), (b, y) in impossible:
            print(f"# refused: {KEYS[a]} {x} with {KEYS[b]} {y}")
    tap.case("/exec/pairwise/losses agree", complaints)
    tap.case("/exec/pairwise/most pairs are possible",
             [] if len(impossible) < len(all_pairs()) / 4 else [f"{len(impossible)} are not"])
    return tap.finish()


program = sys.argv[1]
sys.exit(main())
