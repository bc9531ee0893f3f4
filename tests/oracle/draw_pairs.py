"""Settings that cover every pair of two options' values, of all options that the reference's recorder has (without
`--device` and `--real`, which leave the GPU).

Each mode has an array of its own for each family. The arrays are made by a greedy search: of many settings at random,
half of them with a pair that is still to be covered, the next is the one with most such pairs. Its choices come from a
seed, so number N is always the same; each thousand of numbers has arrays of its own. Values are words where what they mean depends on others ("half" of the ranks);
settled() makes numbers of them. Options that a mode or family does not use are drawn too: they must change nothing."""

import itertools
import random

import networks  # the recorder's

MODES = ("fsdp2", "fsdp1", "ddp", "none")
PRESETS = {"gpt": ("gpt-toy", "gpt2", "gpt2-xl", "gpt-175b"), "llama": ("llama-toy", "llama3-8b", "llama2-7b"),
           "t5": ("t5-toy", "t5-11b"), "mlp": ("mlp-toy",)}
ARRAYS = tuple(itertools.product(MODES, PRESETS))
DTYPES = (None, "fp32", "bf16", "fp16")
HYBRID = ("HYBRID_SHARD", "_HYBRID_SHARD_ZERO2")
CANDIDATES = 40

NETWORK = {"--layers": (1, 2, 3), "--batch": (None, 2, 3), "--seq": (None, 1, 7, 33, 64), "--model-dtype": DTYPES,
           "--checkpointing": (None, "none", "inside", "outside")}
OF_MLP = {"--width": (None, 1, 17, 128)}
OF_TOKENS = {"--width": (None, "odd", "other"), "--heads": (None, 1, 2, 3, 8), "--head-dim": (None, 2, 8, 24),
             "--kv-heads": (None, 1, "heads", "part"), "--ffn": (None, 1, 5, 100), "--vocab": (None, 2, 33, 257),
             "--tied": (None, "--tied", "--no-tied"), "--attention": (None, "flash", "math-eager"),
             "--gelu": (None, "tanh", "none"), "--gated": (None, "--gated")}
PARALLELISM = {"--world": (None, 1, 2, 3, 6, 8, 16, 100, 512), "--rank": (None, "middle", "last"),
               "--shard-size": (None, 1, "half", "third", "whole", "beyond"), "--param-dtype": DTYPES,
               "--reduce-dtype": DTYPES,
               "--strategy": (None, "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", *HYBRID),
               "--use-orig-params": (None, "--use-orig-params", "--no-use-orig-params"),
               "--backward-prefetch": (None, "pre", "post", "none"), "--forward-prefetch": (None, "--forward-prefetch"),
               "--limit-all-gathers": (None, "--limit-all-gathers", "--no-limit-all-gathers"),
               "--reshard-after-forward": (None, "true", "false", "default", 1, "fewest", "most", "all"),
               "--fsdp2-backward-prefetch": (None, "--fsdp2-backward-prefetch", "--no-fsdp2-backward-prefetch"),
               "--ddp-bucket-mb": (None, 0, 0.001, 0.01, 0.1, 1, 25, 100),
               "--ddp-bucket-view": (None, "--ddp-bucket-view")}
STEP = {"--steps": (None, 1, 2, 3, 4), "--accumulate": (None, 1, 2, 3), "--accumulate-sync": (None, "last", "every"),
        "--optimizer": (None, "adamw", "adam", "sgd"), "--optimizer-kernel": (None, "default", "foreach", "fused", "loop"),
        "--momentum": (None, 0, 0.9), "--clip": (None, 0, 0.5, 1.0)}


def space(family):
    """Each option's values."""
    of_family = OF_MLP if family == "mlp" else OF_TOKENS
    return {"--preset": PRESETS[family], **NETWORK, **of_family, **PARALLELISM, **STEP}


def pairs_of(values):
    """What a setting covers."""
    return {(a, values[a], b, values[b]) for a, b in itertools.combinations(values, 2)}


class Array:
    """The settings of one mode and family, made as far as they were asked for."""

    def __init__(self, mode, family, thousand):
        self.mode, self.family = mode, family
        self.random = random.Random(f"foreshard pairs {mode} {family}" + (f" {thousand}" if thousand else ""))
        self.space = space(family)
        self.left = [(a, x, b, y) for a, b in itertools.combinations(self.space, 2)
                     for x in self.space[a] for y in self.space[b]]
        self.random.shuffle(self.left)
        self.is_left = set(self.left)
        self.made = []

    def candidate(self, with_pair):
        values = {name: self.random.choice(choices) for name, choices in self.space.items()}
        if with_pair and self.left:
            a, x, b, y = self.random.choice(self.left)
            values |= {a: x, b: y}
        return values

    def next(self):
        best = max((self.candidate(i % 2) for i in range(CANDIDATES)), key=lambda v: len(pairs_of(v) & self.is_left))
        self.is_left -= pairs_of(best)
        self.left = [pair for pair in self.left if pair in self.is_left]
        return settled(best, self.mode, self.family, self.random)

    def setting(self, number):
        while len(self.made) <= number:
            self.made.append(self.next())
        return self.made[number]


# ---- values that depend on others --------------------------------------------------------------------

def settle_groups(v, mode, dice):
    """Ranks and groups: FSDP1 wants a group smaller than the world if and only if its strategy is hybrid."""
    if mode == "fsdp1" and v["--strategy"] in HYBRID:
        v["--world"] = 4 if v["--world"] == 1 else v["--world"]
        v["--shard-size"] = v["--shard-size"] if v["--shard-size"] in (1, "half", "third") else dice.choice((1, "half"))
    elif mode == "fsdp1" and v["--shard-size"] in (1, "half", "third"):
        v["--shard-size"] = dice.choice((None, "whole", "beyond"))
    world = v["--world"] or 8
    proper = [n for n in range(1, world) if world % n == 0] or [1]
    v["--shard-size"] = {None: None, 1: 1, "half": proper[-1], "third": proper[len(proper) // 2], "whole": world,
                         "beyond": world + 3}[v["--shard-size"]]
    v["--rank"] = {None: None, "middle": world // 2, "last": world - 1}[v["--rank"]]
    ranks = min(v["--shard-size"] or world, world)
    parts = [n for n in range(2, ranks) if ranks % n == 0] or [ranks]
    words = {"fewest": parts[0], "most": parts[-1], "all": ranks}
    v["--reshard-after-forward"] = words.get(v["--reshard-after-forward"], v["--reshard-after-forward"])


def settle_heads(v, family, dice, preset):
    """Heads that divide; rotary positions want an even head_dim."""
    heads = v["--heads"] or preset["heads"]
    divisors = [n for n in range(1, heads + 1) if heads % n == 0]
    v["--kv-heads"] = {None: None, 1: 1, "heads": heads, "part": divisors[len(divisors) // 2]}[v["--kv-heads"]]
    if family == "llama" and heads % (v["--kv-heads"] or preset.get("kv_heads") or heads):
        v["--kv-heads"] = dice.choice(divisors)
    width = {None: preset["width"], "odd": dice.choice((1, 7, 33, 129)), "other": dice.choice((48, 96, 320))}[v["--width"]]
    if family == "gpt":
        width = heads * dice.choice((1, 5, 8, 20, 64)) if width % heads else width
    elif not v["--head-dim"] and not preset.get("head_dim") and width % (2 * heads):
        v["--head-dim"] = dice.choice((2, 8, 16, 24))
    v["--width"] = width


def settled(values, mode, family, dice):
    """The words for record_fsdp.py."""
    v = dict(values)
    settle_groups(v, mode, dice)
    if family != "mlp":
        settle_heads(v, family, dice, networks.PRESETS[v["--preset"]])
    elif not mode.startswith("fsdp") or not v["--param-dtype"]:
        v["--model-dtype"] = None  # nothing would cast the batch
    words = ["--mode", mode]
    for name, value in v.items():
        if value is not None:
            words += [value] if str(value).startswith("--") else [name, str(value)]
    return words


arrays = {}


def draw_pairs(d):
    """Turns go round the arrays."""
    thousand, number = divmod(d.number, 1000)
    turn, which = divmod(number, len(ARRAYS))
    if (thousand, which) not in arrays:
        arrays[thousand, which] = Array(*ARRAYS[which], thousand)
    d.add(*arrays[thousand, which].setting(turn))
