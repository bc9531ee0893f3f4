#!/usr/bin/env python3
"""Predicted against measured step times on this machine, after calibrate: how far off, and ranked right?

    python3 bench/step-times.py build/cli/foreshard [--steps 6] [--keep FOLDER] [--toys]

Calibrates for one and for two ranks, then predicts and runs twelve strategies on networks like GPT-2 124M
(fewer layers) and a small Llama, each step 0.2 to 5 s long; two of them paced as on a cluster with a slow
network. Prints each pair and the median error, and how many of the pairs that differ by more than 10 % are
ranked right. Ten minutes on two idle cores; on a busy machine the figures mean nothing.

--toys: the same of ten strategies on gpt-toy and llama-toy, steps of 6 to 40 ms, most of them paced. Three minutes."""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import tempfile

GPT = """[network]
family = gpt
layers = 4
width = 768
heads = 12
vocab = 50257
seq = 256
tied = yes
"""
LLAMA = """[network]
family = llama
layers = 6
width = 576
heads = 9
kv_heads = 3
ffn = 1536
vocab = 16384
seq = 256
"""
# network, ranks, strategy, paced
RUNS = (
    ("gpt", 1, "--sharding none --micro-batch 2", False),
    ("gpt", 1, "--sharding none --micro-batch 2 --checkpointing full", False),
    ("gpt", 1, "--flavour fsdp2 --micro-batch 1 --accumulate 2", False),
    ("llama", 1, "--sharding none --micro-batch 4", False),
    ("llama", 1, "--sharding none --micro-batch 4 --optimizer sgd", False),
    ("gpt", 2, "--micro-batch 2", False),
    ("gpt", 2, "--sharding none --micro-batch 2", False),
    ("gpt", 2, "--flavour fsdp1 --micro-batch 2", False),
    ("llama", 2, "--micro-batch 2", False),
    ("llama", 2, "--micro-batch 4 --checkpointing full", False),
    ("gpt", 2, "--micro-batch 2", True),
    ("llama", 2, "--sharding none --micro-batch 2", True),
)
# Steps of a toy take 10 ms, so what wakes whom, and when, decides.
TOYS = (
    ("gpt-toy", 1, "--micro-batch 16", False),
    ("gpt-toy", 2, "--micro-batch 16", False),
    ("llama-toy", 2, "--micro-batch 16", False),
    ("gpt-toy", 2, "--micro-batch 16", True),
    ("gpt-toy", 2, "--micro-batch 64", True),
    ("gpt-toy", 2, "--micro-batch 16 --backward-prefetch none", True),
    ("gpt-toy", 2, "--micro-batch 16 --sharding none", True),
    ("gpt-toy", 2, "--micro-batch 16 --flavour fsdp1", True),
    ("gpt-toy", 2, "--micro-batch 16 --wrap whole", True),
    ("llama-toy", 2, "--micro-batch 16", True),
)
GIGABIT = 0.118  # GB/s


def read_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("foreshard")
    p.add_argument("--steps", type=int, help="of each run (default 6, of toys 40)")
    p.add_argument("--toys", action="store_true")
    p.add_argument("--keep", help="leave the cluster files in this folder")
    options = p.parse_args()
    options.steps = options.steps or (40 if options.toys else 6)
    return options


def output_of(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def slowed(text, gb_per_s):
    """The same machine with so little between its ranks."""
    lines = []
    for line in text.splitlines():
        key = line.split(" = ")[0]
        lines.append(f"{key} = {gb_per_s}" if key in ("bus_gb_per_s", "reduce_bus_gb_per_s") else line)
    return "\n".join(lines) + "\n"


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def make_clusters(options, folder):
    clusters = {}
    for ranks in (1, 2):
        clusters[ranks, False] = os.path.join(folder, f"ranks-{ranks}.ini")
        print(f"calibrating with {ranks} rank(s)", flush=True)
        output_of(options.foreshard, "calibrate", "-n", str(ranks), "-o", clusters[ranks, False])
    with open(clusters[2, False]) as file:
        slow = slowed(file.read(), GIGABIT if options.toys else 1)
    clusters[2, True] = write(os.path.join(folder, "slow.ini"), slow)
    return clusters


def step_ms(options, words, cluster, paced):
    predicted = json.loads(output_of(options.foreshard, "predict", *words, "--cluster", cluster, "--json"))
    pace = ("--pace", cluster) if paced else ()
    measured = json.loads(output_of(options.foreshard, "run", *words, *pace, "--steps", str(options.steps), "--json"))
    return predicted["step_ms"], measured["step_ms"]


def ranked_right(pairs):
    """Of all pairs of runs whose measured times differ by more than 10 %."""
    right = total = 0
    for (p, m), (q, n) in itertools.combinations(pairs, 2):
        if max(m, n) > 1.1 * min(m, n):
            total += 1
            right += (p < q) == (m < n)
    return right, total


def bench(options, folder):
    networks = {"gpt-toy": "gpt-toy", "llama-toy": "llama-toy", "gpt": write(os.path.join(folder, "gpt.ini"), GPT),
                "llama": write(os.path.join(folder, "llama.ini"), LLAMA)}
    clusters = make_clusters(options, folder)
    pairs, digits = [], 2 if options.toys else 0
    for network, ranks, strategy, paced in TOYS if options.toys else RUNS:
        words = [networks[network], "-n", str(ranks), *strategy.split()]
        predicted, measured = step_ms(options, words, clusters[ranks, paced], paced)
        pairs.append((predicted, measured))
        name = f"{network} -n {ranks} {strategy}" + (", paced" if paced else "")
        print(f"{name:64} predicted {predicted:7.{digits}f} ms, measured {measured:7.{digits}f} ms, "
              f"{100 * (predicted / measured - 1):+6.1f} %", flush=True)
    right, total = ranked_right(pairs)
    print(f"median error {100 * statistics.median(abs(p / m - 1) for p, m in pairs):.1f} %; "
          f"{right} of {total} pairs that differ by more than 10 % ranked right")


def main():
    options = read_options()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
        bench(options, options.keep)
    else:
        with tempfile.TemporaryDirectory() as folder:
            bench(options, folder)


main()
