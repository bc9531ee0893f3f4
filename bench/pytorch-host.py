#!/usr/bin/env python3
"""What PyTorch's host thread pays for a launch, and for a unit and a parameter under FSDP1 and FSDP2.

    python3 tests/oracle/pretend-cuda/run bench/pytorch-host.py --device cuda
    OMP_NUM_THREADS=1 python3 bench/pytorch-host.py

By hand, with torch 2.13 and no GPU. Networks of a few KB are trained by one rank of a fake process group of 8, so what is
timed is the host: its own time of each phase of a step, the least of many (other work on the machine only adds). The
difference of two depths is what a block costs, without embedding, head and loss; blocks of few and of many parameters,
each of them a product's, tell a parameter's cost from a unit's. Less the plain network's it is FSDP's own.

The first runs PyTorch's own way to a GPU, dispatcher, allocator and lists of kernels, to a CUDA runtime that does nothing and
counts what is launched: all that a host pays but the driver. The second computes on the CPU."""

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

from pretended_launches import launch_counter

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


def read_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--repeats", type=int, default=60, help="steps, of which the quickest counts")
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cuda: as tests/oracle/pretend-cuda pretends it")
    return p.parse_args()


def training_options(mode, kernel):
    p = argparse.ArgumentParser()
    add_training_options(p)
    options = p.parse_args(["--mode", mode, "--world", "8", "--optimizer-kernel", kernel])
    options.real = False
    return options


def step_costs(mode, network, batch, kernel, settings):
    """Of each phase of a step microseconds and launches."""
    options, launches = training_options(mode, kernel), launch_counter(settings.device)
    if mode != "none" and not dist.is_initialized():
        parallel.start_process_group(options)
    mesh = parallel.make_mesh(options, settings.device) if mode != "none" else None
    model = parallel.wrap(network, options, mesh, torch.device(settings.device))
    optimizer = parallel.make_optimizer(model, options)
    least = {phase: [float("inf"), 0] for phase in PHASES}
    for i in range(settings.repeats + 3):
        marks = [(time.process_time(), launches())]
        loss = model(*batch)
        marks.append((time.process_time(), launches()))
        loss.backward()
        marks.append((time.process_time(), launches()))
        parallel.clip([model], 1.0)
        marks.append((time.process_time(), launches()))
        optimizer.step()
        marks.append((time.process_time(), launches()))
        optimizer.zero_grad()
        if i >= 3:  # the first make state
            for phase, began, end in zip(PHASES, marks, marks[1:]):
                least[phase] = [min(least[phase][0], (end[0] - began[0]) * 1e6), end[1] - began[1]]
    return least


def many(parameters, layers, device):
    shape = Shape(kind="many", layers=layers, width=16, heads=parameters, seq=4)
    with torch.device(device):
        return Many(shape), (torch.randn(4, 16),)


def transformer(kind, layers, rms_norm, device):
    shape = Shape(kind=kind, layers=layers, width=64, heads=4, vocab=96, seq=16, rms_norm=rms_norm)
    with torch.device(device):
        return networks.make_network(shape), networks.make_batch(shape, 1, device)


def block_costs(mode, make, kernel, settings):
    shallow, deep = (step_costs(mode, *make(layers), kernel, settings) for layers in DEPTHS)
    return {phase: [(b - a) / (DEPTHS[1] - DEPTHS[0]) for a, b in zip(shallow[phase], deep[phase])] for phase in PHASES}


def say(what, costs):
    print("%-34s %s" % (what, "  ".join("%s %6.1f us %5.1f launches" % (phase, *costs[phase]) for phase in costs)), flush=True)


def main():
    settings = read_options()
    torch.set_num_threads(1)
    if settings.device == "cpu":
        fake_gpu.use_streams_on_cpu()
    print("host alone, torch %s" % torch.__version__)
    for kind, rms_norm in (("gpt", "kernel"), ("llama", "ops")):
        for kernel in ("fused", "foreach"):
            make = lambda n: transformer(kind, n, rms_norm, settings.device)  # noqa: E731
            say("plain block of %s, %s" % (kind, kernel), block_costs("none", make, kernel, settings))
    for mode in ("none", "ddp", "fsdp1", "fsdp2"):
        few, lots = (block_costs(mode, lambda n: many(parameters, n, settings.device), "fused", settings)
                     for parameters in (FEW, MANY))
        each = {phase: [(b - a) / (MANY - FEW) for a, b in zip(few[phase], lots[phase])] for phase in PHASES}
        say("%s: a parameter" % mode, each)
        say("%s: a unit beside them" % mode, {phase: [a - FEW * b for a, b in zip(few[phase], each[phase])]
                                              for phase in PHASES})


main()
