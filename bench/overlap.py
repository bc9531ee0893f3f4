#!/usr/bin/env python3
"""What prefetch and wrapping are worth, predicted and measured on two ranks over pretended slow links.

    python3 bench/overlap.py build/cli/foreshard [--rounds 4] [--steps 10] [--links 0.02] [--cluster FILE]

Calibrates this machine (or takes FILE, from an earlier `foreshard calibrate -n 2`), slows its links down to
--links GB/s (1e9 bytes a second), so that a unit is gathered for about as long as it computes, and plays
pairs of strategies that differ in one setting: predicted on that machine, and trained for real, each
collective lasting as long as there (`run --pace`). A pair's two runs alternate, so that a busy machine slows
both alike, and steady steps are compared by their median and by the quickest tenth of them, for whatever else
runs can only make a step longer. The claim: measured, the same side wins, by about the predicted milliseconds.

Products are long (2 to 10 ms) on purpose. The host may be ahead of a lane by 8 ops only (EXEC_LANE_DEPTH), so
that with ops of half a millisecond it must wake up in time to have the next unit gathered: on a machine with
ten more processes it did not, and nothing hid. Three minutes on two idle cores."""

import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile

NETWORK = """[network]
family = gpt
layers = 4
width = 256
heads = 4
vocab = 1024
seq = 128
tied = yes
"""
COMMON = "-n 2 --micro-batch 16 --reshard-after-forward yes".split()
PAIRS = (
    ("backward prefetch", "--backward-prefetch", "pre", "none"),
    ("wrapping", "--wrap", "block", "whole"),
)


def read_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("foreshard")
    p.add_argument("--rounds", type=int, default=4, help="runs of each side")
    p.add_argument("--steps", type=int, default=10, help="steps of a run, the first two of which make state")
    p.add_argument("--links", type=float, default=0.02, help="GB/s between the ranks")
    p.add_argument("--cluster", help="from `foreshard calibrate -n 2`; without it this is done first")
    return p.parse_args()


def output_of(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def slow_links(options, folder):
    """The path of the machine's file with slower links."""
    own = options.cluster or os.path.join(folder, "own.ini")
    if not options.cluster:
        print("calibrating this machine with 2 ranks", flush=True)
        output_of(options.foreshard, "calibrate", "-n", "2", "-o", own)
    path = os.path.join(folder, "slow.ini")
    with open(own) as source, open(path, "w") as file:
        for line in source:
            key = line.split(" = ")[0]
            slow = key in ("bus_gb_per_s", "reduce_bus_gb_per_s")
            file.write(f"{key} = {options.links}\n" if slow else line)
    return path


def predicted_ms(options, words, cluster):
    return json.loads(output_of(options.foreshard, "predict", *words, "--cluster", cluster, "--json"))["step_ms"]


def measured_ms(options, words, cluster):
    """Of each steady step."""
    said = output_of(options.foreshard, "run", *words, "--pace", cluster, "--steps", str(options.steps))
    return [float(ms) for ms in re.findall(r"^step \d+ .* ([0-9.]+) ms$", said, re.M)][2:]


def play_pair(options, network, cluster, name, option, good, bad):
    words = {side: [network, *COMMON, option, side] for side in (good, bad)}
    predicted = {side: predicted_ms(options, words[side], cluster) for side in words}
    measured = {side: [] for side in words}
    for turn in range(options.rounds):
        for side in (good, bad) if turn % 2 == 0 else (bad, good):
            measured[side] += measured_ms(options, words[side], cluster)
    times = {"predicted": predicted,
             "measured, median": {side: statistics.median(measured[side]) for side in words},
             "measured, quickest tenth": {side: statistics.quantiles(measured[side], n=10)[0] for side in words}}
    print(f"{name}: ms a step, of {len(measured[good])} measured steps each")
    print(f"  {'':26}{good:>10}{bad:>10}{'saved':>10}")
    for how, ms in times.items():
        print(f"  {how:26}{ms[good]:10.2f}{ms[bad]:10.2f}{ms[bad] - ms[good]:10.2f} "
              f"({100 - 100 * ms[good] / ms[bad]:.1f} %)", flush=True)


def main():
    options = read_options()
    print(f"load of this machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        network = os.path.join(folder, "overlap.ini")
        with open(network, "w") as file:
            file.write(NETWORK)
        cluster = slow_links(options, folder)
        for pair in PAIRS:
            play_pair(options, network, cluster, *pair)


main()
