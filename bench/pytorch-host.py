#!/usr/bin/env python3
"""What PyTorch's host thread pays for a launch, and for a unit and a parameter under FSDP1 and FSDP2.

    OMP_NUM_THREADS=1 python3 bench/pytorch-host.py

By hand, with torch 2.13 and no GPU. Networks of a few KB are trained on the CPU by one rank of a fake process group of
8, so what is timed is the host: its own time of each phase of a step, the least of many (other work on the machine only adds). The
difference of two depths is what a block costs, without embedding, head and loss; blocks of few and of many parameters,
each of them a product's, tell a parameter's cost from a unit's. Less the plain network's it is FSDP's own."""

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "oracle", "recorder"))
import fake_gpu  # noqa: E402
import networks  # noqa: E402
import parallel  # noqa: E402
from building_blocks import Block, Network, Shape  # noqa: E402
from options import add_training_options  # noqa: E402

PHASES = ("forward", "backward", "clip", "step")
DEPTHS = (2, 8)
FEW, MANY = 4, 12  # parameters of a block


class ManyBlock(Block):
    """A product for each of so many parameters."""

    def __init__(self, shape):
        super().__init__(shape)
        self.linears = nn.ModuleList(nn.Linear(shape.width, shape.width, bias=False) for _ in range(shape.heads))

    def compute(self, x):
        for linear in self.linears:
            x = linear(x)
        return x


class Many(Network):
    block_classes = (ManyBlock,)

    def __init__(self, shape):
        super().__init__(shape)
        self.layers = nn.ModuleList(ManyBlock(shape) for _ in range(shape.layers))

    def forward(self, x):
        for layer in self.layers:
            x = self.run(layer, x)
        return x.mean()


def read_repeats():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--repeats", type=int, default=60, help="steps, of which the quickest counts")
    return p.parse_args().repeats


def training_options(mode):
    p = argparse.ArgumentParser()
    add_training_options(p)
    options = p.parse_args(["--mode", mode, "--world", "8", "--optimizer-kernel", "fused"])
    options.real = False
    return options


def step_us(mode, network, batch, repeats):
    """Microseconds of each phase of a step."""
    options = training_options(mode)
    if mode != "none" and not dist.is_initialized():
        parallel.start_process_group(options)
    mesh = parallel.make_mesh(options, "cpu") if mode != "none" else None
    model = parallel.wrap(network, options, mesh, torch.device("cpu"))
    optimizer = parallel.make_optimizer(model, options)
    least = dict.fromkeys(PHASES, float("inf"))
    for i in range(repeats + 3):
        marks = [time.process_time()]
        loss = model(*batch)
        marks.append(time.process_time())
        loss.backward()
        marks.append(time.process_time())
        parallel.clip(model, 1.0)
        marks.append(time.process_time())
        optimizer.step()
        marks.append(time.process_time())
        optimizer.zero_grad()
        if i >= 3:  # the first make state
            for phase, began, end in zip(PHASES, marks, marks[1:]):
                least[phase] = min(least[phase], (end - began) * 1e6)
    return least


def many(parameters, layers):
    shape = Shape(kind="many", layers=layers, width=16, heads=parameters, seq=4)
    return Many(shape), (torch.randn(4, 16),)


def transformer(kind, layers, rms_norm):
    shape = Shape(kind=kind, layers=layers, width=64, heads=4, vocab=96, seq=16, rms_norm=rms_norm)
    return networks.make_network(shape), networks.make_batch(shape, 1, "cpu")


def block_us(mode, make, repeats):
    shallow, deep = (step_us(mode, *make(layers), repeats) for layers in DEPTHS)
    return {phase: (deep[phase] - shallow[phase]) / (DEPTHS[1] - DEPTHS[0]) for phase in PHASES}


def say(what, us):
    print("%-34s %s" % (what, "  ".join("%s %6.1f" % item for item in us.items())), flush=True)


def main():
    repeats = read_repeats()
    torch.set_num_threads(1)
    fake_gpu.use_streams_on_cpu()
    print("us, host alone, torch %s" % torch.__version__)
    for kind, rms_norm in (("gpt", "kernel"), ("llama", "ops")):
        say("plain block of %s" % kind, block_us("none", lambda n: transformer(kind, n, rms_norm), repeats))
    for mode in ("none", "fsdp1", "fsdp2"):
        few, lots = (block_us(mode, lambda n: many(parameters, n), repeats) for parameters in (FEW, MANY))
        each = {phase: (lots[phase] - few[phase]) / (MANY - FEW) for phase in PHASES}
        say("%s: a parameter" % mode, each)
        say("%s: a unit beside them" % mode, {phase: few[phase] - FEW * each[phase] for phase in PHASES})


main()
