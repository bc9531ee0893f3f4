"""Muon over the blocks' matrices, AdamW over all else, stepped one behind the other as in torch.optim.Muon's example."""

import torch


def prepare(recorder):
    """DTensor's own exchange, of rows for columns, is C++ (torch/csrc/distributed/c10d/Functional.cpp, shard_dim_alltoall),
    and what tensors without memory get instead is as large as the whole: here are its steps."""
    import torch.distributed.tensor.placement_types as placement_types

    def exchange(x, gather_dim, shard_dim, mesh, mesh_dim):
        group = mesh.get_group(mesh_dim)
        parts = group.size()
        given = x.unflatten(shard_dim, (parts, x.size(shard_dim) // parts)).movedim(shard_dim, 0).contiguous()
        taken = torch.empty_like(given)
        recorder.note_collective("all_to_all_single", group, [taken], [given], False, is_flavours=False)
        result = taken.movedim(0, gather_dim).contiguous().flatten(gather_dim, gather_dim + 1)
        del taken
        return result

    placement_types.shard_dim_alltoall = exchange


def matrices_of(model):
    """Two-dimensional weights of blocks, but no tables: the hidden matrices that Muon is made for."""
    inner = getattr(model, "module", model)
    blocks = [m for m in inner.modules() if isinstance(m, inner.block_classes)]
    layers = [m for block in blocks for m in block.modules() if not isinstance(m, torch.nn.Embedding)]
    return {id(p) for layer in layers for p in layer.parameters(recurse=False) if p.ndim == 2}


class OneBehindTheOther:
    """Several optimizers as one."""

    def __init__(self, optimizers):
        self.optimizers = optimizers

    @property
    def state(self):
        return {parameter: state for one in self.optimizers for parameter, state in one.state.items()}

    @property
    def param_groups(self):
        return [group for one in self.optimizers for group in one.param_groups]

    def step(self):
        for one in self.optimizers:
            one.step()

    def zero_grad(self, set_to_none=True):
        for one in self.optimizers:
            one.zero_grad(set_to_none=set_to_none)


def asked_of_muon(options):
    asked = {"nesterov": options.muon_nesterov, "ns_steps": options.muon_ns_steps, "weight_decay": options.weight_decay}
    return {name: value for name, value in asked.items() if value is not None}


def beside_adamw(model, of_muon, of_adamw):
    matrices = matrices_of(model)
    parameters = list(model.parameters())
    return OneBehindTheOther([torch.optim.Muon([p for p in parameters if id(p) in matrices], **of_muon),
                              torch.optim.AdamW([p for p in parameters if id(p) not in matrices], **of_adamw)])
