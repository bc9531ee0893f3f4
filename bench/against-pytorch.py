#!/usr/bin/env python3
"""Tokens a second of foreshard and of PyTorch's FSDP2 on the same CPU ranks, in alternating pairs.

    FORESHARD_TORCH_PYTHON=PYTHON python3 bench/against-pytorch.py build/cli/foreshard [--pairs 5]

GPT-2 124M, a batch of 4 x 256 tokens a rank, 2 ranks, everything sharded, fp32, one thread a rank; gloo on
PyTorch's side, MPI on foreshard's. PYTHON (or --python) is one with torch 2.13; `tests/oracle/record FOLDER`
makes one. The two take turns, so that a busy machine slows both; the ratio is the median over pairs of their
median steps (the first two are left out). Two minutes a pair on two idle cores."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

RANKS, BATCH, SEQ = 2, 4, 256
NETWORK = f"""[network]
family = gpt
layers = 12
width = 768
heads = 12
vocab = 50257
seq = {SEQ}
tied = yes
"""


def read_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("foreshard")
    p.add_argument("--python", default=os.environ.get("FORESHARD_TORCH_PYTHON", sys.executable))
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--kernels", choices=("eager", "fused"), default="eager",
                   help="foreshard's: PyTorch's program op by op (default), or what a tuned stack fuses")
    p.add_argument("--optimizer-kernel", choices=("loop", "foreach", "fused"), default="fused")
    return p.parse_args()


def output_of(words):
    environment = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def pytorch_ms(options):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytorch-fsdp2-cpu.py")
    lines = output_of([options.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS),
                       script, "--seq", str(SEQ), "--batch", str(BATCH), "--steps", str(options.steps),
                       "--optimizer-kernel", options.optimizer_kernel])
    return statistics.median(json.loads(lines.splitlines()[-1])["step_ms"][2:])


def foreshard_ms(options, network):
    return json.loads(output_of([options.foreshard, "run", network, "-n", str(RANKS), "--micro-batch", str(BATCH),
                                 "--kernels", options.kernels, "--optimizer-kernel", options.optimizer_kernel,
                                 "--steps", str(options.steps), "--json"]))["step_ms"]


def main():
    options = read_options()
    ratios, tokens = [], 1e3 * RANKS * BATCH * SEQ
    with tempfile.TemporaryDirectory() as folder:
        network = os.path.join(folder, "gpt2.ini")
        with open(network, "w") as file:
            file.write(NETWORK)
        for _ in range(options.pairs):
            theirs, ours = pytorch_ms(options), foreshard_ms(options, network)
            ratios.append(theirs / ours)
            print(f"PyTorch {theirs:8.0f} ms a step, {tokens / theirs:6.1f} tokens/s; "
                  f"foreshard {ours:8.0f} ms, {tokens / ours:6.1f} tokens/s; {ratios[-1]:.2f} times", flush=True)
    print(f"foreshard trains {statistics.median(ratios):.2f} times as fast as PyTorch's FSDP2 "
          f"(median of {options.pairs} pairs, {min(ratios):.2f} to {max(ratios):.2f})")


main()
