"""What the host's Python takes for an optimizer's step, a parameter, for the scripts beside this one: of plain tensors, and of
DTensors by rows over four ranks as FSDP2 has them. CPU time of this thread, the least of 40 steps of 8 parameters;
collectives are of a process group that does nothing."""

import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore

RANKS, PARAMETERS, STEPS = 4, 8, 40


def us_a_parameter(make_optimizer, make_tensor):
    parameters = [torch.nn.Parameter(make_tensor()) for _ in range(PARAMETERS)]
    for parameter in parameters:
        parameter.grad = make_tensor()
    optimizer, least = make_optimizer(parameters), float("inf")
    for _ in range(STEPS):
        began = time.thread_time()
        optimizer.step()
        least = min(least, time.thread_time() - began)
    return 1e6 * least / PARAMETERS


def report(make_optimizer, kinds):
    """kinds: {name: (the whole shape, a rank's)}"""
    torch.set_num_threads(1)
    dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    mesh = init_device_mesh("cpu", (RANKS,))
    for name, (whole, of_rank) in kinds.items():
        plain = us_a_parameter(make_optimizer, lambda: torch.randn(whole))
        sharded = us_a_parameter(make_optimizer, lambda: DTensor.from_local(torch.randn(of_rank), mesh, [Shard(0)],
                                                                            run_check=False))
        print(f"{name}: {plain:.0f} us plain, {sharded:.0f} us of DTensors")
