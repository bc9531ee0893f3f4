"""A llama's layers shared by the ranks of a mesh's dimension, as torchtitan's plan has it (models/llama3/infra/
parallelize.py, apply_tp): embedding by rows, norms on parts of the sequence, q, k, v, gate, up and the head by
columns, o and down by rows.  Between layers each rank has its part of every sequence."""

import contextlib
import functools

import torch

import versions


def prepare(recorder):
    """DTensors set elements to a number by a mask. Python makes that number on the host for CUDA, and on the
    device itself for others (torch/csrc/autograd/python_variable_indexing.cpp)."""
    recorder.made_on_host = (torch.ops.aten.scalar_tensor.default,)
    _join_meshes_outside_fake_mode(recorder)


def _join_meshes_outside_fake_mode(recorder):
    """FSDP joins its mesh with the tensors' for each parameter; the rank numbers of meshes must be real."""
    from torch.distributed.device_mesh import DeviceMesh
    join = DeviceMesh._concatenate

    @functools.wraps(join)
    def with_real_tensors(*args):
        recorder.paused = True
        with versions.unset_fake_temporarily():
            result = join(*args)
        recorder.paused = False
        return result

    DeviceMesh._concatenate = staticmethod(with_real_tensors)


def share_layers(network, mesh, options):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel,
                                                   SequenceParallel, parallelize_module)
    if network.shape.kind != "llama":
        raise SystemExit("--tensor is of llama alone")
    whole_loss = not options.loss_parallel
    parallelize_module(network, mesh, {
        "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate() if whole_loss else Shard(-1),
                                use_local_output=whole_loss)})
    for block in network.layers:
        parallelize_module(block, mesh, {
            "norm_1": SequenceParallel(),
            "attn": PrepareModuleInput(input_layouts=(Shard(1), None, None),
                                       desired_input_layouts=(Replicate(), None, None)),
            "attn.q": ColwiseParallel(), "attn.k": ColwiseParallel(), "attn.v": ColwiseParallel(),
            "attn.o": RowwiseParallel(output_layouts=Shard(1)),
            "norm_2": SequenceParallel(),
            "mlp": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
            "mlp.gate": ColwiseParallel(), "mlp.up": ColwiseParallel(),
            "mlp.down": RowwiseParallel(output_layouts=Shard(1))})


def loss_region(options):
    """Where the loss of logits that stay apart is made, and its backward."""
    if options.tensor == 1 or not options.loss_parallel:
        return contextlib.nullcontext()
    from torch.distributed.tensor.parallel import loss_parallel
    return loss_parallel()
