"""A network's layers shared by the ranks of a mesh's dimension.  A llama's as torchtitan's plan has it (models/llama3/infra/
parallelize.py, apply_tp): embedding by rows, norms on parts of the sequence, q, k, v, gate, up and the head by
columns, o and down by rows.  Between layers each rank has its part of every sequence.

A gpt's likewise, its positions as its tokens: so PyTorch's own tests share a network with learned positions, LayerNorms and
biases (torch/testing/_internal/distributed/_tensor/common_dtensor.py, Transformer.parallelize).  Its one layer for q, k and v
is cut by rows, of which a rank takes the first third for its heads' queries, and so on: its weight must be laid out so."""

import contextlib
import functools

from dataclasses import dataclass

import torch

import frozen
import versions


@dataclass
class Layers:
    """What the layers of a kind of network are called."""
    tables: tuple
    norm: str
    norms: tuple  # of a block
    attention: tuple  # by columns
    attention_ends: str  # by rows
    hidden: tuple
    hidden_ends: str
    more: int  # what attention is given beside the tokens


LAYERS = {
    "llama": Layers(("embed",), "norm", ("norm_1", "norm_2"), ("attn.q", "attn.k", "attn.v"), "attn.o", ("mlp.gate", "mlp.up"),
                    "mlp.down", 2),
    "gpt": Layers(("wte", "wpe"), "ln_f", ("ln_1", "ln_2"), ("attn.qkv",), "attn.proj", ("mlp.up",), "mlp.down", 0)}


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
    """parallelize_module gives each module a parameter of its own: tied ones are tied again, as DTensors. And
    SequenceParallel makes parameters that are trained, whatever they were."""
    _share(network, mesh, options)
    frozen.freeze(network, options)
    if network.shape.tied:
        if options.tensor_plan != "torchtitan":
            raise SystemExit("--tied beside --tensor: in other plans embedding and head have not the same part of the table")
        network.head.weight = getattr(network, LAYERS[network.shape.kind].tables[0]).weight


def _share(network, mesh, options):
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel,
                                                   SequenceParallel, parallelize_module)
    if network.shape.kind not in LAYERS:
        raise SystemExit("--tensor is of llama and gpt alone")
    layers = LAYERS[network.shape.kind]
    if options.sequence_parallel is False:
        return _share_without_sequences(network, mesh, options)
    if options.tensor_plan == "ends-whole":
        return _share_blocks_alone(network, mesh)
    if options.tensor_plan == "logits-whole":
        raise SystemExit("--tensor-plan logits-whole is recorded with --no-sequence-parallel")
    whole_loss = not options.loss_parallel
    ends = dict.fromkeys(layers.tables, RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))) | {
        layers.norm: SequenceParallel(),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate() if whole_loss else Shard(-1),
                                use_local_output=whole_loss)}
    has = dict(network.named_children())  # a stage has not all of them
    parallelize_module(network, mesh, {name: style for name, style in ends.items() if name in has})
    columns, rows, gather = ColwiseParallel, RowwiseParallel, PrepareModuleInput
    if options.float8 == "tensorwise":  # which torchtitan gathers in float8; by rows it keeps to PyTorch's own
        from torchao.float8.float8_tensor_parallel import (Float8ColwiseParallel, Float8RowwiseParallel,
                                                           PrepareFloat8ModuleInput)
        columns, rows, gather = Float8ColwiseParallel, Float8RowwiseParallel, PrepareFloat8ModuleInput
    for block in network.layers.children():
        if network.shape.qk_norm == "head":
            _share_head_norms(block.attn, mesh)
        others = (None,) * layers.more
        parallelize_module(block, mesh, {
            **dict.fromkeys(layers.norms, SequenceParallel()),
            "attn": gather(input_layouts=(Shard(1), *others), desired_input_layouts=(Replicate(), *others)),
            **dict.fromkeys(layers.attention, columns()),
            layers.attention_ends: rows(output_layouts=Shard(1)),
            "mlp": gather(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
            **dict.fromkeys(layers.hidden, columns()),
            layers.hidden_ends: rows(output_layouts=Shard(1))})


def _share_without_sequences(network, mesh, options):
    """ColwiseParallel and RowwiseParallel as they are by default: what a layer is given is whole on each rank, and so is what the
    ranks' results add up to. The ends: as PyTorch's tutorial has them; whole, as in KempnerForge's stages (kempnerforge/distributed/
    tensor_parallel.py); or the head alone, whose logits all get, as transformers' plan for a Llama (colwise_gather_output)."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    if network.shape.qk_norm != "none":
        raise SystemExit("--no-sequence-parallel: nobody adds up the gradients of q's and k's norms")
    ends, layers = {}, LAYERS[network.shape.kind]
    if options.tensor_plan == "torchtitan":
        ends = dict.fromkeys(layers.tables, RowwiseParallel(input_layouts=Replicate()))
        ends["head"] = ColwiseParallel(output_layouts=Shard(-1) if options.loss_parallel else Replicate(),
                                       use_local_output=not options.loss_parallel)
    elif options.tensor_plan == "logits-whole":
        ends["head"] = ColwiseParallel(output_layouts=Replicate())
    has = dict(network.named_children())  # a stage has not all of them
    parallelize_module(network, mesh, {name: style for name, style in ends.items() if name in has})
    columns = dict.fromkeys(layers.attention + layers.hidden, ColwiseParallel())
    rows = dict.fromkeys((layers.attention_ends, layers.hidden_ends), RowwiseParallel())
    for block in network.layers.children():
        parallelize_module(block, mesh, columns | rows)


def _share_head_norms(attention, mesh):
    """As torchtitan's for Qwen 3 (models/qwen3/infra/parallelize.py): each rank normalizes its heads. There all of attention takes
    DTensors, here nothing behind the norms, which changes no memory."""
    from torch.distributed.tensor.parallel import SequenceParallel, parallelize_module
    parallelize_module(attention, mesh, {name: SequenceParallel(sequence_dim=2, use_local_output=True) for name in ("q_norm", "k_norm")})


def _share_blocks_alone(network, mesh):
    """As KempnerForge (kempnerforge/distributed/tensor_parallel.py): every rank has the whole embedding and takes its part of
    each sequence, each layer gathers for itself, and every rank gets all logits."""
    from torch.distributed.tensor import DTensor, Replicate, Shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel, SequenceParallel,
                                                   parallelize_module)
    if network.shape.kind != "llama":
        raise SystemExit("--tensor-plan ends-whole with sequence parallel is of llama alone")

    def as_placed(placement):
        def hook(module, given, made):
            return made if isinstance(made, DTensor) else DTensor.from_local(made, mesh, [placement])
        return hook

    by_rows = {"input_layouts": Shard(1)}
    network.embed.register_forward_hook(as_placed(Replicate()))
    for block in network.layers:
        parallelize_module(block, mesh, {
            "norm_1": SequenceParallel(), "norm_2": SequenceParallel(),
            "attn.q": ColwiseParallel(**by_rows), "attn.k": ColwiseParallel(**by_rows), "attn.v": ColwiseParallel(**by_rows),
            "attn.o": RowwiseParallel(output_layouts=Shard(1)),
            "mlp.gate": ColwiseParallel(**by_rows), "mlp.up": ColwiseParallel(**by_rows),
            "mlp.down": RowwiseParallel(output_layouts=Shard(1))})
        block.attn.register_forward_hook(as_placed(Shard(1)))
        block.mlp.register_forward_hook(as_placed(Shard(1)))
    parallelize_module(network, mesh, {
        "norm": SequenceParallel(), "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())})


def loss_region(options):
    """Where the loss of logits that stay apart is made, and its backward."""
    if options.tensor == 1 or not options.loss_parallel or options.tensor_plan != "torchtitan":
        return contextlib.nullcontext()
    from torch.distributed.tensor.parallel import loss_parallel
    return loss_parallel()
