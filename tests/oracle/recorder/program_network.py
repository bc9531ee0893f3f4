"""Networks of a Python file's own, as models/pytorch/trace.py takes them: model(), batch(n) and loss(model, *batch), and
BLOCKS, the names of classes that are units.

A traced network is held against what is recorded of it: the header says which file in ../traced."""

import functools
import runpy
import sys
from pathlib import Path

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from building_blocks import Shape
from transformers_network import suppose_whole_sequences

_PROGRAMS = {}


def program_of(options):
    path = Path(options.program).resolve()
    if path not in _PROGRAMS:
        sys.path.insert(0, str(path.parent))
        _PROGRAMS[path] = runpy.run_path(str(path))
    return _PROGRAMS[path]


def make_shape(options):
    return Shape(kind="program", layers=0, width=0, checkpointing=options.checkpointing)


def _blocks(network, named):
    if named:
        return [m for m in network.modules() if type(m).__name__ in named]
    return [child for m in network.modules() if isinstance(m, nn.ModuleList) for child in m if any(True for _ in child.parameters())]


def _renew_copies(network):
    """A copy (copy.deepcopy) of a tensor without memory gives each view of it a storage: it is made anew."""
    renewed = {}
    for module in network.modules():
        for registry in (module._parameters, module._buffers):
            for name, old in registry.items():
                if old is None or old.view_as(old).untyped_storage()._cdata == old.untyped_storage()._cdata:
                    continue
                if id(old) not in renewed:
                    new = torch.empty_strided(old.size(), old.stride(), dtype=old.dtype, device=old.device)
                    renewed[id(old)] = nn.Parameter(new, old.requires_grad) if isinstance(old, nn.Parameter) else new, old
                registry[name] = renewed[id(old)][0]


def make_network(options):
    program = program_of(options)
    nn.init._no_grad_trunc_normal_ = lambda tensor, *_, **__: tensor  # it draws until all are within bounds: none is drawn
    network = program["model"]()
    _renew_copies(network)
    suppose_whole_sequences()
    blocks = _blocks(network, program.get("BLOCKS", ()))
    network.block_classes = tuple({type(b) for b in blocks})
    if options.checkpointing == "outside":
        raise SystemExit("a program's blocks are checkpointed inside of their hooks; give --checkpointing inside")
    for block in blocks if options.checkpointing == "inside" else ():
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
    return network


def make_batch(options, device):
    with device:
        batch = program_of(options)["batch"](options.batch)
    return tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)


def loss_of(options, model, batch):
    loss = program_of(options).get("loss", lambda network, *given: network(*given))
    return loss(model, *batch)


def header(options):
    dtype = options.param_dtype or options.model_dtype
    return {"network": Path(options.program).stem + ("" if dtype == "fp32" else "-" + dtype) + ".network"}


def kernels():
    """Of PyTorch's GPU, which the recorder's own networks are recorded without: their backward is one kernel."""
    library = torch.library.Library("aten", "IMPL")

    def must_not_run(*_, **__):
        raise RuntimeError("a kernel was called outside FakeTensorMode")
    for op in ("silu_backward", "mish_backward"):
        library.impl(op, must_not_run, "PrivateUse1")
    return library
