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


def _tracers_copies():
    sys.path.append(str(Path(__file__).resolve().parents[3] / "models" / "pytorch"))
    import copies
    return copies


def make_network(options):
    program = program_of(options)
    nn.init._no_grad_trunc_normal_ = lambda tensor, *_, **__: tensor  # it draws until all are within bounds: none is drawn
    network = program["model"]()
    _tracers_copies().renew(network)
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
