"""Which modules become units, where it is not each block: --wrap and --wrap-ends, in the words of a plan's keys.

FSDP1 is told by PyTorch's own policies.  fully_shard() is called for one module after the other, inner ones first."""

import functools
import re

from torch import nn


def is_usual(options):
    return options.wrap == "block" and options.wrap_ends == "root"


def may_split_blocks(options):
    return options.wrap.partition("=")[0] in ("linear", "size", "module")


def policy_of_fsdp1(network, options):
    from torch.distributed.fsdp.wrap import CustomPolicy, ModuleWrapPolicy, size_based_auto_wrap_policy

    how, _, what = options.wrap.partition("=")
    if options.wrap_ends == "root" and how == "block":
        return ModuleWrapPolicy(set(network.block_classes))
    if options.wrap_ends == "root" and how == "linear":
        return ModuleWrapPolicy({nn.Linear})
    if options.wrap_ends == "root" and how == "size":
        return functools.partial(size_based_auto_wrap_policy, min_num_params=int(what))
    groups = units(network, options)
    if any(len(group) > 1 for group in groups):
        raise SystemExit("FSDP1 wraps one module at a time")
    chosen = {id(group[0]) for group in groups}
    return CustomPolicy(lambda module: id(module) in chosen) if chosen else None


def units(network, options):
    """Lists of modules, inner ones before those around them; without the root."""
    how, _, what = options.wrap.partition("=")
    blocks = [m for m in network.modules() if isinstance(m, network.block_classes)]
    inside = {id(m) for block in blocks for m in block.modules()}
    ordered = [m for m in _inner_first(network) if m is not network]
    if how == "every":
        groups = _rows_of_blocks(network, int(what))
    else:
        groups = [[m] for m in _chosen(network, ordered, blocks, how, what)]
    if options.wrap_ends == "root":
        return groups
    ends = [m for m in ordered if id(m) not in inside and any(p.dim() > 1 for p in m.parameters(recurse=False))]
    groups += [[m] for m in ends if not any(m in group for group in groups)]
    place = {id(m): n for n, m in enumerate(ordered)}
    return sorted(groups, key=lambda group: place[id(group[-1])])


def _inner_first(module):
    for child in module.children():
        yield from _inner_first(child)
    yield module


def _chosen(network, ordered, blocks, how, what):
    if how == "block":
        return blocks
    if how == "whole":
        return []
    if how == "linear":
        return [m for m in ordered if isinstance(m, nn.Linear)]
    if how == "size":
        return _of_size(ordered, int(what))
    names = {id(m): name for name, m in network.named_modules()}
    return [m for m in ordered if re.fullmatch(what, names[id(m)]) or re.fullmatch(what, type(m).__name__)]


def _of_size(ordered, least):
    """As size_based_auto_wrap_policy: what is in no unit yet counts; lists of modules are none."""
    chosen, taken = [], set()
    for module in ordered:
        loose = {id(p): p for p in module.parameters() if id(p) not in taken}
        if sum(p.numel() for p in loose.values()) >= least and not isinstance(module, (nn.ModuleList, nn.ModuleDict)):
            chosen.append(module)
            taken.update(loose)
    return chosen


def _rows_of_blocks(network, k):
    groups = []
    for parent in network.modules():
        row = [m for m in parent.children() if isinstance(m, network.block_classes)]
        groups += [row[i:i + k] for i in range(0, len(row), k)]
    return groups
