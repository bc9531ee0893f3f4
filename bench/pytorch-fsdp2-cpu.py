#!/usr/bin/env python3
"""Train a GPT with PyTorch's FSDP2 on CPU ranks over gloo, one thread each; print milliseconds of each step.

    OMP_NUM_THREADS=1 python3 -m torch.distributed.run --nproc-per-node 2 bench/pytorch-fsdp2-cpu.py

One side of bench/against-pytorch.py, which starts it. The network is the recorder's (tests/oracle), whose
parameters and operations foreshard's gpt has too."""

import argparse
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "oracle", "recorder"))
import networks  # noqa: E402
from building_blocks import Shape  # noqa: E402


def read_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("layers", 12), ("width", 768), ("heads", 12), ("vocab", 50257), ("seq", 256),
                        ("batch", 4), ("steps", 6)):
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--optimizer-kernel", choices=("loop", "foreach", "fused"), default="fused")
    return p.parse_args()


def make_network(options):
    return networks.make_network(Shape(kind="gpt", layers=options.layers, width=options.width, heads=options.heads,
                                       vocab=options.vocab, seq=options.seq, tied=True))


def shard(network, world):
    mesh = init_device_mesh("cpu", (world,))
    for module in network.modules():
        if isinstance(module, network.block_classes):
            fully_shard(module, mesh=mesh)
    fully_shard(network, mesh=mesh)
    for module in network.modules():
        if isinstance(module, FSDPModule):
            module.set_force_sum_reduction_for_comms(True)  # gloo has no averaging


def main():
    options = read_options()
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    network = make_network(options)
    shard(network, world)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, foreach=options.optimizer_kernel == "foreach",
                                  fused=options.optimizer_kernel == "fused")
    torch.manual_seed(2 + rank)
    step_ms = []
    dist.barrier()
    for _ in range(options.steps):
        start = time.perf_counter()
        x, y = torch.randint(options.vocab, (2, options.batch, options.seq))
        loss = network(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        step_ms.append(1e3 * (time.perf_counter() - start))
    if rank == 0:
        print(json.dumps({"torch": torch.__version__, "step_ms": step_ms, "loss": float(loss.detach())}), flush=True)
    dist.barrier()
    os._exit(0)  # gloo's threads now and then abort where Python ends by itself


main()
