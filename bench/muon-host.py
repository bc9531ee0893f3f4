"""What the host's Python takes for a step of torch.optim.Muon, a matrix: of plain tensors, and of DTensors by rows over
four ranks as FSDP2 has them. CPU time of this thread, the least of 40 steps of 8 matrices; collectives are of a process
group that does nothing. Matrices are so small that arithmetic is nothing.

    python bench/muon-host.py        # with torch 2.13
"""

import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS, MATRICES, STEPS = 4, 8, 40
SHAPES = {"more rows than columns, 11 collectives": (16, 8), "as many, 16 collectives": (8, 8),
          "fewer, 16 collectives": (8, 16)}


def matrix(shape, mesh):
    if mesh is None:
        return torch.randn(shape)
    return DTensor.from_local(torch.randn(shape[0] // RANKS, shape[1]), mesh, [Shard(0)], run_check=False)


def us_a_matrix(shape, mesh):
    parameters = [torch.nn.Parameter(matrix(shape, mesh)) for _ in range(MATRICES)]
    for parameter in parameters:
        parameter.grad = matrix(shape, mesh)
    optimizer, least = torch.optim.Muon(parameters), float("inf")
    for _ in range(STEPS):
        began = time.thread_time()
        optimizer.step()
        least = min(least, time.thread_time() - began)
    return 1e6 * least / MATRICES


def main():
    torch.set_num_threads(1)
    dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    mesh = init_device_mesh("cpu", (RANKS,))
    for name, shape in SHAPES.items():
        print(f"{name}: {us_a_matrix(shape, None):.0f} us plain, {us_a_matrix(shape, mesh):.0f} us of DTensors")


main()
