"""Strategies drawn at random: every one is refused with a reason or holds what all must hold.

    python3 -B test-random.py run|rehearse FORESHARD COUNT [SEED]

run: a global batch of 12 on 1 to 4 ranks, of stages on up to 6. Losses follow one rank by itself (1e-5; 2^-6 with numbers in bf16, 2^-9 in
fp16, on which the loss is rounded, too); allocated bytes are as predicted at every instruction, and where no
buffer is marked for another lane so are active and reserved; replayed, all three are. Whole weights are saved,
and they are one rank's. One run in four is by mpirun; the others' ranks are
forked, which takes a third of the time.
rehearse: one rank of 2 to 8 with stand-ins for the others, which needs no MPI; replayed, all memory is equal.

FORESHARD_RANDOM_STRATEGIES in the environment stands for COUNT."""
import array
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "style"))
from tap import Tap  # noqa: E402

STEPS, ADAM_LR = 4, 1e-3
NETWORKS = ("gpt-toy", "gpt-toy", "llama-toy", "t5-toy", "mlp-toy", "gpt-toy-dropout")
# What changes the numbers: the run on one rank has it, too.
NUMBERS = {
    "optimizer": ("adamw", "adamw", "adam", "sgd --lr 0.01", "momentum --lr 0.01"),
    "clip": (None, None, "0.3"),
    "weight-decay": (None, "0.1"),
    "rms-norm": (None, None, "ops"),  # rounds otherwise, which Adam can make 3e-5 of a T5's loss
}
TIED = "--network-key tied=yes".split()  # half of those whose layers ranks share
FROZEN = "--freeze module=embed|.*norm_1|layers.1.*o".split()
# What does not; None: not given.
SHARDING = ("none", "optimizer-only", "grad-op", "full", "full", "full", "hybrid --replicate 2")
CHOICES = {
    "flavour": (None, None, "fsdp1", "fsdp1"),
    "wrap": (None, None, "whole", "linear", "every=2", "size=20000"),
    "wrap-ends": (None, "own"),
    "reshard-after-forward": (None, None, "yes", "no", "2"),
    "reshard-last": (None, "no"),
    "checkpointing": (None, None, "full", "every=2", "ratio=0.5", "selective-op", "parts"),
    "checkpoint-early-stop": (None, None, "no"),
    "offload": (None, None, "activations", "optimizer", "params"),
    "backward-prefetch": (None, "pre", "post", "none"),
    "forward-prefetch": (None, None, "yes", "2"),
    "limit-all-gathers": (None, "0", "1"),
    "use-orig-params": (None, "yes"),
    "accumulate-sync": (None, "every"),
    "zero-grad": (None, "keep"),
    "bucket-view": (None, "yes"),
    "bucket-mb": (None, "0.05"),
    "kernels": (None, None, "fused"),
    "optimizer-kernel": (None, "loop", "fused"),
    "param-dtype": (None, None, None, "bf16"),
    "reduce-dtype": (None, "fp32"),
    "autocast": (None, "bf16", "fp16"),
    "loss-scale": (None, None, "dynamic"),
    "allocator": (None, None, "expandable"),
    "init": (None, "unit", "whole"),
    "step-sync": (None, "no"),
    "host-reads": (None, "loss", "norm", "both"),
    "optimizer-count": (None, None, "device"),
    "deterministic": (None, "yes", "unfilled"),
}

# Stages that share the layers: how many, of how many ranks, and what is planned beside them.
STAGED, STAGES = 0.1, ((2, 1), (2, 2), (2, 3), (3, 1), (3, 2))
SEVERAL = "--pipeline-schedule interleaved-1f1b --pipeline-stages 2 --pipeline-split even".split()  # a rank
IN_STAGES = ("kernels", "reshard-after-forward", "checkpointing", "checkpoint-early-stop", "backward-prefetch", "forward-prefetch",
             "optimizer-kernel", "param-dtype", "reduce-dtype", "allocator", "init", "step-sync", "optimizer-count")
OF_STAGES = {"sharding": (None, "grad-op"), "pipeline-schedule": (None, "gpipe"), "pipeline-split": (None, "even"),
             **{key: CHOICES[key] for key in IN_STAGES}}


def foreshard(*words, forks=False):
    """forks: where no mpirun is found, the program forks its ranks."""
    env = {**os.environ, "PATH": "/"} if forks else None
    return subprocess.run([program, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def option(key, value):
    return [] if value is None else f"--{key} {value}".split()


def draw_choices(rng, choices):
    """Words of some keys; ThreadSanitizer, under which ranks are rehearsed, leaves expandable segments too few
    addresses."""
    keys = [key for key in choices if key != "allocator" or mode == "run"]
    return [word for key in keys for word in option(key, rng.choice(choices[key]) if rng.random() < 0.4 else None)]


def draw_numbers(rng):
    return [w for key, values in NUMBERS.items() for w in option(key, rng.choice(values))]


def draw_stages(rng):
    stages, ranks_of_stage = rng.choice(STAGES)
    accumulate = rng.choice([n for n in (2, 3, 4, 6) if 12 % (n * ranks_of_stage) == 0])
    words = ["-n", str(stages * ranks_of_stage), "--micro-batch", str(12 // ranks_of_stage // accumulate),
             "--accumulate", str(accumulate), "--pipeline", str(stages)]
    several = SEVERAL if rng.random() < 0.3 else []
    choices = {key: values for key, values in OF_STAGES.items() if f"--{key}" not in several}
    return "llama-toy", draw_numbers(rng) + ["--network-key", "layers=6"], words + several + draw_choices(rng, choices)


def draw(rng, ranks_of):
    """A network, words that change numbers, words that do not."""
    if rng.random() < STAGED:
        return draw_stages(rng)
    ranks, accumulate = rng.choice(ranks_of), rng.choice((1, 1, 2, 3))
    tensor = 2 if ranks == 4 and rng.random() < 0.3 else 1
    micro_batch = 12 * tensor // (ranks * accumulate)
    if ranks * accumulate * micro_batch != 12 * tensor and mode == "run":
        return draw(rng, ranks_of)
    numbers = draw_numbers(rng)
    words = ["-n", str(ranks), "--micro-batch", str(max(1, micro_batch)), "--accumulate", str(accumulate)]
    words += option("tensor", tensor if tensor > 1 else None)
    words += option("sharding", rng.choice(SHARDING)) + draw_choices(rng, CHOICES)
    network = rng.choice(NETWORKS) if tensor == 1 else "llama-toy"
    numbers += TIED if tensor > 1 and rng.random() < 0.5 else []
    numbers += FROZEN if tensor > 1 and rng.random() < 0.3 else []
    if network == "gpt-toy-dropout" and "fused" in words:  # whose attention drops nothing on the host
        return draw(rng, ranks_of)
    return network, numbers, words


def draw_sound(rng, folder, ranks_of):
    """The first that is not refused, how many were, and what is wrong with it: a refusal says why."""
    for refused in range(10000):
        network, numbers, words = draw(rng, ranks_of)
        planned = foreshard("plan", network, *numbers, *words, "-o", f"{folder}/x.plan")
        if planned.returncode == 0:
            return network, numbers, words, refused, []
        if planned.returncode != 2 or not planned.stderr.startswith("foreshard plan: "):
            return network, numbers, words, refused, [planned.stderr.strip()]
    raise AssertionError("every strategy is refused: " + planned.stderr)


def train(folder, forks, *words):
    """(losses, saved weights) and complaints."""
    run = foreshard("run", *words, "--steps", str(STEPS), "--save", f"{folder}/weights", "--json", forks=forks)
    if run.returncode:
        return None, [run.stderr.strip()]
    return (json.loads(run.stdout)["losses"], read_weights(f"{folder}/weights")), []


def read_weights(path):
    with open(path, "rb") as file:
        header, = struct.unpack("<Q", file.read(8))
        file.seek(header, os.SEEK_CUR)
        return array.array("f", file.read())


def rounded_alike(numbers, words):
    """Fused kernels have a norm of their own, which rounds as PyTorch's kernel does and not as its ops do."""
    return " ".join(numbers).replace("--rms-norm ops", "").split() if "fused" in after("--kernels", words) else numbers


def after(key, words):
    return words[words.index(key) + 1:][:1] if key in words else []


def on_one_rank(words):
    """The same numbers without other ranks. Of offloaded parameters FSDP1 learns from the last pass alone where
    each is reduced, as PyTorch warns: so does this rank then."""
    given = dict(zip(words[::2], words[1::2]))
    last_alone = {"--flavour": "fsdp1", "--offload": "params", "--accumulate-sync": "every"}
    if any(given.get(key) != value for key, value in last_alone.items()):
        return ["-n", "1", "--sharding", "none", "--micro-batch", "12"]
    passes = given["--accumulate"]
    kept = [word for pair in last_alone.items() for word in pair]
    return ["-n", "1", "--sharding", "none", "--micro-batch", str(12 // int(passes)), "--accumulate", passes, *kept]


def wrong_losses(losses, expected, words):
    bound = 2.0**-6 if "bf16" in words else 2.0**-9 if "fp16" in words else 1e-5
    worst = max(abs(a / b - 1) for a, b in zip(losses, expected))
    return [] if worst <= bound else [f"losses differ by {worst:.2g} relative: {losses}, one rank: {expected}"]


def wrong_weights(weights, expected, numbers, words):
    """Adam moves a weight as far for a gradient that is but rounding as for any."""
    exact = numbers[1] in ("sgd", "momentum") and "bf16" not in words and "fp16" not in words
    bound = 1e-5 if exact else 2 * STEPS * ADAM_LR
    worst = max(abs(a - b) for a, b in zip(weights, expected, strict=True))
    return [] if worst <= bound else [f"saved weights differ from one rank's by {worst:.2g}"]


def wrong_memory(folder, words):
    """Predicted, then replayed with the measured answers."""
    predicted = foreshard("predict", f"{folder}/x.plan", "--cluster", "this-machine", "--steps", str(STEPS), "--trace",
                          f"{folder}/p.trace")
    if predicted.returncode:
        return [predicted.stderr.strip()]
    compared = foreshard("compare", f"{folder}/p.trace", f"{folder}/m.trace").stdout
    verdict = " ".join(compared.split())  # its sentences are broken to fit
    with open(f"{folder}/x.plan") as plan:
        marked = any(line.startswith("mark ") for line in plan)
    held = [f"{kind} equal at all" in verdict for kind in ("allocated", "active", "reserved")]
    return [] if all(held[:1] if marked else held) else ["not as predicted: " + verdict]


def wrong_replay(folder):
    replay = foreshard("replay", f"{folder}/x.plan", f"{folder}/m.trace")
    return (replay.stdout + replay.stderr).splitlines() if replay.returncode else []


def run_one(rng, folder, forks, references):
    network, numbers, words, refused, complaints = draw_sound(rng, folder, (1, 2, 2, 3, 4))
    if complaints:
        return (network, *numbers, *words), refused, complaints
    known = (network, *rounded_alike(numbers, words), *on_one_rank(words))
    if known not in references:
        references[known], complaints = train(folder, True, *known)
        if complaints:
            return known, refused, complaints
    trained, complaints = train(folder, forks, f"{folder}/x.plan", "--trace", f"{folder}/m.trace")
    if not complaints:
        (losses, weights), (expected_losses, expected_weights) = trained, references[known]
        complaints = (wrong_losses(losses, expected_losses, words) + wrong_memory(folder, words) + wrong_replay(folder)
                      + wrong_weights(weights, expected_weights, numbers, words))
    return (network, *numbers, *words), refused, complaints


def rehearse_one(rng, folder):
    network, numbers, words, refused, complaints = draw_sound(rng, folder, (2, 3, 4, 8))
    if complaints:
        return (network, *numbers, *words), refused, complaints
    rank = rng.randrange(int(words[1]))
    rehearsal = foreshard("rehearse", f"{folder}/x.plan", "--rank", str(rank), "--cluster", "this-machine", "--steps",
                          str(STEPS), "--trace", f"{folder}/m.trace")
    complaints = [rehearsal.stderr.strip()] if rehearsal.returncode or rehearsal.stderr else wrong_replay(folder)
    return (network, *numbers, *words, "--rank", str(rank)), refused, complaints


def main():
    count = int(os.environ.get("FORESHARD_RANDOM_STRATEGIES", sys.argv[3]))
    rng, references, refused = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1), {}, 0
    tap, complaints, staged = Tap(), [], 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            forks = number % 4 != 0
            words, n, wrong = run_one(rng, folder, forks, references) if mode == "run" else rehearse_one(rng, folder)
            refused += n
            complaints += [" ".join(words) + ": " + line for line in wrong]
            staged += "--pipeline" in words
    print(f"# {count} strategies played, {staged} of them in stages; {refused} drawn and refused with a reason")
    tap.case(f"/exec/random/{mode} holds", complaints)
    return tap.finish()


mode, program = sys.argv[1:3]
sys.exit(main())
