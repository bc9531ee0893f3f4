#!/usr/bin/env python3
"""Predicted against measured peak of reserved memory under FSDP1, for networks beyond toys.

    python3 bench/reserved.py build/cli/foreshard [--runs 3] [--steps 5]

With marks, what the allocator can serve is a matter of time: of when another lane was seen to be through with a
block. So each plan is predicted once, on this machine as `foreshard calibrate` finds it, and run several times; the
runs differ themselves. Prints each row in MB (1e6 bytes) with the error against the median of its runs, and the
median and largest of all. Beside it, what predictions give whose two ranks are not alike (every rank by itself, one of
them slower, or every kernel's time scattered): from the least to the most, and how many runs lie there, 1 % given.
Three minutes on two idle cores."""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

NETWORKS = {
    "gpt-27m": "family = gpt\nlayers = 8\nwidth = 512\nheads = 8\nvocab = 4096\nseq = 256\n",
    "gpt-55m": "family = gpt\nlayers = 12\nwidth = 512\nheads = 8\nvocab = 16384\nseq = 256\n",
    "gpt-wide": "family = gpt\nlayers = 4\nwidth = 768\nheads = 12\nvocab = 8192\nseq = 512\n",
    "llama-26m": "family = llama\nlayers = 6\nwidth = 512\nheads = 8\nkv_heads = 4\nffn = 1376\nvocab = 8192\n"
                 "seq = 256\n",
}
# network, strategy beside two ranks of FSDP1
RUNS = (
    ("gpt-27m", ""),
    ("gpt-27m", "--backward-prefetch post"),
    ("gpt-27m", "--sharding grad-op"),
    ("gpt-27m", "--sharding grad-op --micro-batch 2"),
    ("gpt-27m", "--limit-all-gathers 0"),
    ("gpt-27m", "--param-dtype bf16"),
    ("gpt-55m", "--checkpointing full"),
    ("gpt-wide", ""),
    ("llama-26m", ""),
    ("llama-26m", "--checkpointing full --micro-batch 2"),
)
# Ranks that are not alike, as on a machine that does other things too: assumed, to see what lateness can do.
UNEVEN = (
    "--slow rank=1:1.3",
    "--slow rank=0:1.3",
    "--jitter 100 --seed 1",
    "--jitter 100 --degrade rank=0:0.1 --seed 2",
    "--jitter 100 --degrade rank=0:0.1 --seed 3",
)
NEAR = 0.01  # of a bound, and a run counts as within


def read_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("foreshard")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--steps", type=int, default=5)
    return p.parse_args()


def foreshard(options, *words):
    return subprocess.run([options.foreshard, *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def peak_mb(options, command, plan, *words):
    text = foreshard(options, command, *plan, *words, "--steps", str(options.steps), "--json")
    return json.loads(text)["peak_reserved_bytes"] / 1e6


def main():
    options = read_options()
    errors, within, n_runs = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text in NETWORKS.items():
            with open(os.path.join(folder, name + ".ini"), "w") as out:
                out.write("[network]\n" + text)
        cluster = os.path.join(folder, "here.ini")
        foreshard(options, "calibrate", "-n", "2", "-o", cluster)
        print("%-10s %-42s %10s %8s  %-16s %s" % ("network", "FSDP1, 2 ranks", "predicted", "error", "uneven ranks",
                                                  "measured (MB)"))
        for name, strategy in RUNS:
            plan = [os.path.join(folder, name + ".ini"), "-n", "2", "--flavour", "fsdp1", *strategy.split()]
            runs = [peak_mb(options, "run", plan) for _ in range(options.runs)]
            guess = peak_mb(options, "predict", plan, "--cluster", cluster)
            uneven = [peak_mb(options, "predict", plan, "--cluster", cluster, "--every-rank", *words.split())
                      for words in UNEVEN]
            least, most = min(guess, *uneven), max(guess, *uneven)
            within += sum(least * (1 - NEAR) <= run <= most * (1 + NEAR) for run in runs)
            n_runs += len(runs)
            errors.append(100 * (guess / statistics.median(runs) - 1))
            print("%-10s %-42s %10.1f %+7.1f %%  %-16s %s" % (name, strategy, guess, errors[-1], "%.1f to %.1f" % (
                least, most), " ".join("%.1f" % run for run in runs)), flush=True)
    sizes = [abs(error) for error in errors]
    print("%d plans: median error %.1f %%, at most %.1f %%; of %d runs %d lie within what uneven ranks give"
          % (len(sizes), statistics.median(sizes), max(sizes), n_runs, within))


if __name__ == "__main__":
    main()
