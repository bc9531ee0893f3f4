"""Networks and strategies drawn at random, trained by PyTorch and by foreshard, and compared.

    python drawn.py --foreshard build/cli/foreshard [--count 40] [--seed 1]

PyTorch trains each network on one process, and every third one with FSDP2 over gloo on two, in fp32 and in bf16;
foreshard trains it with two strategies that do not change its numbers. A line a run says how far the losses (5 steps
of AdamW, a global batch of 12) and the first step's gradients are from PyTorch's on one process, relative; in bf16, how
far the losses are from those of PyTorch's FSDP2 in bf16. Exits 1 where one is off by more than 1e-4, or 2^-6 in bf16.
Every refusal met on the way is printed at the end. Half an hour for 40 networks on two busy cores."""

import argparse
import os
import random
import subprocess
import sys
import tempfile

import compare
import weight_files

compare.STEPS = 5
STRATEGIES = 2  # of foreshard, each network
BOUND, BF16_BOUND = 1e-4, 2.0 ** -6
NEAR_ZERO = 1e-5  # of the whole gradient's norm: a tensor below it is zero but for rounding
BF16 = "-n 2 --param-dtype bf16 --reduce-dtype fp32"
FAMILIES = ("gpt", "mpt", "llama", "llama", "t5")
CHOICES = {
    "flavour": (None, None, "fsdp1"),
    "sharding": ("none", "optimizer-only", "grad-op", "full", "full", "hybrid --replicate 2"),
    "wrap": (None, None, "whole", "linear", "every=2", "size=2000"),
    "checkpointing": (None, None, "full", "every=2", "selective-op"),
    "kernels": (None, None, "fused"),
    "reshard-after-forward": (None, None, None, "no", "2"),
    "use-orig-params": (None, None, "yes"),
    "rms-norm": (None, None, "ops"),
    "offload": (None, None, None, "activations", "params"),
    "optimizer-kernel": (None, "loop"),
    "backward-prefetch": (None, None, "none"),
}


def read_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--foreshard", required=True)
    p.add_argument("--count", type=int, default=40)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--data", default=os.path.join(compare.HERE, "golden", "tokens.bin"))
    return p.parse_args()


# ---- what is drawn -------------------------------------------------------------------------------

def draw_decoder(rng, shape):
    """gpt and mpt."""
    shape["width"] = shape["heads"] * rng.randint(4, 20)
    shape["ffn"] = rng.choice((4 * shape["width"], rng.randint(3, 140)))
    shape["bias"] = rng.choice(("yes", "yes", "no"))
    shape.update(rng.choice(({"attention": "math"}, {"attention": "kernel"}, {"positions": "alibi"})))
    if shape["family"] == "gpt":
        shape.update(gelu=rng.choice(("tanh", "erf")), tied=rng.choice(("yes", "no")))


def draw_llama(rng, shape):
    divisors = [n for n in range(1, shape["heads"] + 1) if shape["heads"] % n == 0]
    shape.update(width=rng.randint(4, 100), ffn=rng.randint(3, 140), head_dim=2 * rng.randint(1, 16),
                 kv_heads=rng.choice(divisors), rope_base=rng.choice((100, 10000, 500000)),
                 attention=rng.choice(("math", "kernel", "math-fp32")))
    shape.update({key: rng.choice(("yes", "no")) for key in ("tied", "qkv_bias")})
    known = ("none", "head", "width") if shape["attention"] == "kernel" else ("none", "width")
    shape.update(qk_norm=rng.choice(known), norm_at=rng.choice(("before", "after")))
    if shape["qk_norm"] == "none":
        turned = ("real", "partial") if shape["attention"] == "kernel" else ("real",)
        shape.update(qkv=rng.choice(("apart", "joined", "sliced")), rope=rng.choice(turned))


def draw_t5(rng, shape):
    shape.update(width=rng.randint(4, 100), ffn=rng.randint(3, 140), head_dim=rng.randint(2, 32))
    shape.update({key: rng.choice(("yes", "no")) for key in ("tied", "gated")})
    shape.update({"target_seq": rng.randint(1, 70)} if rng.random() < 0.3 else {})


def draw_network(rng):
    shape = {"family": rng.choice(FAMILIES), "layers": rng.randint(1, 3), "heads": rng.randint(1, 6),
             "vocab": rng.randint(32, 150), "seq": rng.randint(2, 70),
             "loss": rng.choice(("model", "ops", "fp32", "metered", "kernel"))}
    {"gpt": draw_decoder, "mpt": draw_decoder, "llama": draw_llama, "t5": draw_t5}[shape["family"]](rng, shape)
    return shape


def draw_strategy(rng):
    ranks, passes = rng.choice(((1, 1), (1, 3), (2, 1), (2, 1), (2, 3), (3, 1), (3, 2), (4, 1)))  # divide the batch
    words = f"-n {ranks} --accumulate {passes}"
    for key, values in CHOICES.items():
        value = rng.choice(values)
        words += f" --{key} {value}" if value and rng.random() < 0.6 else ""
    return words


def draw_sound(rng, options, network, refusals):
    """The first that is not refused."""
    while True:
        strategy = draw_strategy(rng)
        words = [options.foreshard, "plan", network, *strategy.split(), "-o", os.devnull]
        plan = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if plan.returncode == 0:
            return strategy
        refusals.add(f"{plan.returncode}: {plan.stderr.strip().replace(network, 'NETWORK')}")


# ---- what is compared ----------------------------------------------------------------------------

def worst_gradient(a, b):
    whole = sum(float(tensor.norm()) ** 2 for tensor in b.values()) ** 0.5
    return max(float((a[name] - tensor).norm() / tensor.norm()) for name, tensor in b.items()
               if float(tensor.norm()) > NEAR_ZERO * whole)


def by_torch(options, network, folder, ranks, *more):
    path = f"{folder}/gradients-{ranks}.safetensors"
    losses = compare.torch_losses(ranks, network, folder, options.data, "--gradients", path, *more)
    return losses, weight_files.read(path)


def by_foreshard(options, network, folder, strategy):
    return (compare.run_foreshard(options, network, folder, strategy, "--steps", str(compare.STEPS)),
            compare.foreshard_gradients(options, network, folder, strategy))


def differences(options, network, folder, strategies, with_fsdp2):
    """(who, its bound, losses, gradients) each."""
    losses, gradients = by_torch(options, network, folder, 1, "--seed", "1")
    runs = [("foreshard " + strategy, by_foreshard(options, network, folder, strategy)) for strategy in strategies]
    if with_fsdp2:
        runs.append(("PyTorch, FSDP2 over gloo", by_torch(options, network, folder, 2)))
    for who, (own_losses, own_gradients) in runs:
        yield who, BOUND, compare.worst_loss(own_losses, losses), worst_gradient(own_gradients, gradients)
    if with_fsdp2:
        own = compare.run_foreshard(options, network, folder, BF16, "--steps", str(compare.STEPS))
        bf16 = compare.torch_losses(2, network, folder, options.data, "--bf16")
        yield "foreshard in bf16", BF16_BOUND, compare.worst_loss(own, bf16), 0


def main():
    options = read_options()
    rng, refusals, wrong = random.Random(options.seed), set(), 0
    worst = {BOUND: (0, 0), BF16_BOUND: (0, 0)}
    for number in range(options.count):
        shape = draw_network(rng)
        print(number, " ".join(f"{key}={value}" for key, value in shape.items()), flush=True)
        with tempfile.TemporaryDirectory() as folder:
            network = f"{folder}/drawn.ini"
            with open(network, "w") as file:
                file.write("[network]\n" + "".join(f"{key} = {value}\n" for key, value in shape.items()))
            strategies = [draw_sound(rng, options, network, refusals) for _ in range(STRATEGIES)]
            for who, bound, loss, gradient in differences(options, network, folder, strategies, number % 3 == 0):
                is_wrong = not max(loss, gradient) <= bound
                wrong += is_wrong
                worst[bound] = max(worst[bound][0], loss), max(worst[bound][1], gradient)
                print(f"  {loss:8.1e} {gradient:8.1e}  {who}{'  WRONG' if is_wrong else ''}", flush=True)
    print(*sorted(refusals), sep="\n")
    print("fp32: losses within %.1e, gradients within %.1e; bf16: losses within %.1e; %d wrong"
          % (*worst[BOUND], worst[BF16_BOUND][0], wrong))
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
