"""What the host's Python takes for a step of torchao's AdamW8bit, a parameter: torch.compile finds the program that it has
compiled by looking whether each parameter's tensors are as they were. Of plain tensors, and of DTensors over four ranks as
FSDP2 has them. CPU time of this thread, the least of 40 steps of 8 parameters. Of 4096 numbers in 8 bits a part of it is the
CPU's arithmetic; of 64 numbers it is nothing.

    python bench/eight-bit-host.py        # with torch 2.13 and torchao 0.18
"""

import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torchao.optim import AdamW8bit

RANKS, PARAMETERS, STEPS = 4, 8, 40
KINDS = {"states in 8 bits": (64, 64), "states as they are": (8, 8)}


def tensor(shape, mesh):
    if mesh is None:
        return torch.randn(shape)
    return DTensor.from_local(torch.randn(shape), mesh, [Shard(0)], run_check=False)


def us_a_parameter(shape, mesh):
    parameters = [torch.nn.Parameter(tensor(shape, mesh)) for _ in range(PARAMETERS)]
    for parameter in parameters:
        parameter.grad = tensor(shape, mesh)
    optimizer, least = AdamW8bit(parameters), float("inf")
    for _ in range(STEPS):
        began = time.thread_time()
        optimizer.step()
        least = min(least, time.thread_time() - began)
    return 1e6 * least / PARAMETERS


def main():
    torch.set_num_threads(1)
    dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    mesh = init_device_mesh("cpu", (RANKS,))
    for name, shape in KINDS.items():
        print(f"{name}: {us_a_parameter(shape, None):.0f} us plain, {us_a_parameter(shape, mesh):.0f} us of DTensors")


main()
