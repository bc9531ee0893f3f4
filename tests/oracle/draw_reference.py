"""Settings of the reference's recorder, all its options at random: toys of odd shape, blocks of real width, and whole
networks, on 1 to 64 ranks."""

import networks  # the recorder's

DTYPES = ("bf16", "bf16", "fp16", "fp32")
SEQUENCES = {"gpt2": (64, 512, 1024), "gpt2-xl": (256, 1024), "gpt-175b": (128, 2048), "llama3-8b": (512, 4096, 8192),
             "llama2-7b": (512, 4096), "t5-11b": (64, 512)}
WHOLE = ("gpt2", "gpt2", "gpt2-xl", "llama2-7b", "llama3-8b", "t5-11b")


def draw_odd_shape(d):
    """Widths, heads and vocabularies that divide nothing."""
    family = d.one("gpt", "gpt", "llama", "llama", "t5", "mlp")
    d.add("--preset", family + "-toy")
    d.option(0.7, "--layers", 1, 2, 3, 4, 6)
    d.option(0.5, "--batch", 2, 3, 4, 7)
    if family == "mlp":
        d.option(0.6, "--width", 1, 2, 13, 63, 97, 250)
        d.option(0.3, "--seq", 1, 3, 20)
        return family
    heads = d.one(1, 2, 3, 4, 5, 7)
    head_dim = d.one(2, 4, 6, 10, 16, 32, 64)
    if d.happens(0.6):
        d.add("--heads", heads)
        if family == "gpt":
            d.add("--width", heads * d.one(2, 3, 9, 16, 40, 64))
        else:
            d.add("--head-dim", head_dim, "--width", d.one(heads * head_dim, 11, 40, 77, 192))
    elif family == "llama":
        heads = 4
    if family == "llama" and ("--heads" in d.words or d.happens(0.4)):
        d.add("--kv-heads", d.one(*(n for n in range(1, heads + 1) if heads % n == 0)))
    d.option(0.5, "--ffn", 1, 3, 50, 111, 256)
    d.option(0.5, "--vocab", 2, 3, 50, 129, 513, 2000)
    d.option(0.5, "--seq", 1, 3, 12, 31, 65, 200)
    return family


def draw_real_width(d):
    """A few blocks of a network's own width."""
    preset = d.one(*SEQUENCES)
    d.add("--preset", preset, "--layers", d.one(1, 2, 3, 5), "--seq", d.one(*SEQUENCES[preset]))
    d.option(0.6, "--batch", 1, 2, 3, 4)
    d.option(0.2, "--vocab", 1000, 32001, 50257)
    return networks.PRESETS[preset]["kind"]


def draw_whole(d):
    preset = d.one(*WHOLE)
    d.add("--preset", preset)
    d.option(0.4, "--batch", 2, 4, 8)
    return networks.PRESETS[preset]["kind"]


def draw_ops(d, family):
    if family == "mlp":
        return
    if family != "mlp":
        d.sometimes(0.3, d.one("--tied", "--no-tied"))
    d.option(0.35, "--attention", "flash", "math-eager")
    if family == "gpt":
        d.option(0.3, "--gelu", "tanh", "none")
    if family == "t5":
        d.sometimes(0.4, "--gated")
    d.option(0.15, "--model-dtype", "bf16", "fp16")


def draw_ranks(d, wants_groups):
    """The world, one of its ranks, and the ranks of a group where there are several."""
    world = d.random.randint(2, 64) if wants_groups is not False and d.happens(0.5) else d.one(1, 2, 4, 8, 8, 16, 32, 64)
    sizes = [n for n in range(1, world) if world % n == 0]
    d.add("--world", world, "--rank", d.one(0, 0, world - 1, d.random.randrange(world)))
    if wants_groups and sizes:
        d.add("--shard-size", d.one(*sizes))
        return world, True
    return world, False


def draw_mode(d):
    mode = d.one("fsdp1", "fsdp1", "fsdp1", "fsdp2", "fsdp2", "fsdp2", "ddp", "none")
    d.add("--mode", mode)
    world, hybrid = draw_ranks(d, mode.startswith("fsdp") and d.happens(0.35))
    if mode == "fsdp1":
        d.add("--strategy", d.one(*(("HYBRID_SHARD", "_HYBRID_SHARD_ZERO2") if hybrid else
                                    ("FULL_SHARD", "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"))))
        d.sometimes(0.4, "--no-use-orig-params")
        d.option(0.6, "--backward-prefetch", "pre", "post", "none")
        d.sometimes(0.35, "--forward-prefetch")
        d.sometimes(0.35, "--no-limit-all-gathers")
    elif mode == "fsdp2":
        ranks = int(d.words[d.words.index("--shard-size") + 1]) if hybrid else world
        d.option(0.6, "--reshard-after-forward", "true", "false", "default",
                 *(n for n in range(2, ranks) if ranks % n == 0))
        d.sometimes(0.25, "--no-fsdp2-backward-prefetch")
    elif mode == "ddp":
        d.option(0.5, "--ddp-bucket-mb", 0.003, 0.05, 0.5, 2, 50)
        d.sometimes(0.4, "--ddp-bucket-view")
    if mode.startswith("fsdp"):
        d.option(0.65, "--param-dtype", *DTYPES)
        d.option(0.45, "--reduce-dtype", *DTYPES)


def draw_passes(d):
    d.option(0.5, "--checkpointing", "inside", "outside")
    if d.happens(0.4):
        d.add("--accumulate", d.one(2, 3, 4), "--accumulate-sync", d.one("last", "every"))
    d.add("--steps", d.one(1, 2, 3, 3, 4))
    optimizer = d.one("adamw", "adamw", "adam", "sgd")
    d.add("--optimizer", optimizer)
    kernels = ("default", "foreach", "loop") if optimizer == "sgd" else ("default", "foreach", "fused", "loop")
    d.option(0.6, "--optimizer-kernel", *kernels)
    if optimizer == "sgd":
        d.option(0.5, "--momentum", 0.9)
    d.option(0.35, "--clip", 0.5, 1.0)


def draw_reference(d):
    family = d.one(draw_odd_shape, draw_odd_shape, draw_real_width, draw_real_width, draw_real_width, draw_whole)(d)
    draw_ops(d, family)
    draw_mode(d)
    draw_passes(d)
    if family == "mlp" and "--param-dtype" not in d.words and "--model-dtype" in d.words:
        at = d.words.index("--model-dtype")
        del d.words[at:at + 2]
