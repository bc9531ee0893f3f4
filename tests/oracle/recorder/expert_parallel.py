"""Experts that ranks share (expert parallel), as torchtitan has it: each rank of the mesh's dimension `expert` has some
experts, whole but for FSDP2, and all ranks' rows that go to them.

The operations, their order and the names that hold their results are those of torchtitan's ExpertParallel
(torchtitan/distributed/expert_parallel.py and torchtitan/models/common/moe/utils.py, both at 03a13843, 2026): hooks around the
experts' module, which lie inside of FSDP2's.  Rows by expert are sent to the ranks that have the experts, the host reads how
many rows it will send and take, the rows follow, and are put in order of experts; behind the experts all of it the
other way round.  What comes last is not waited for there: a device's tensor that was not is waited for where it is first used.

FSDP2 wraps them as torchtitan/models/llama4/parallelize.py does (apply_fsdp, at 01db32e9, 2026): the experts of a block are a
unit of their own, over the ranks that have the same ones, with a divisor of gradients that counts all ranks, and
what is gathered ahead is listed.

Tensors without memory have no numbers to read: routing is taken to be balanced, and each rank is sent as many rows; or this
rank is sent more, by --expert-overload, which is all that its tensors' sizes depend on.  Of its own:
forward is replaced where torchtitan hooks, and the order of rows goes when it has been used, where torchtitan's object
has it until its next forward (8 bytes a row)."""

import functools

import torch
from torch import nn

import context_parallel
import tensor_parallel


overload = 1  # how many times its even share of rows this rank gets
mesh = None  # of those who share experts and those who have the same ones


def prepare(recorder, options, device_type):
    global mesh, overload
    overload = options.expert_overload or 1
    mesh = make_mesh(options, device_type)
    recorder.host_waits = lambda op, more: (op is torch.ops.aten._to_copy.default and str(more.get("device")) == "cpu"
                                            and not more.get("non_blocking"))
    tensor_parallel.prepare(recorder)
    if options.selective:
        keep_fsdp_out_of_selective_checkpoints()
    recorder.joins_flat_gradients = False
    context_parallel.hold_until_waited_for(recorder)


def make_mesh(options, device_type):
    """Of FSDP2's ranks those next to each other share experts, whatever else they share."""
    from versions import init_device_mesh
    ranks = options.world // options.pipeline
    shard = min(options.shard_size or ranks, ranks)
    named = {"pipeline": options.pipeline, "replicate": ranks // shard, "rest": shard // options.expert, "expert": options.expert}
    named = {name: size for name, size in named.items() if size > 1 or name in ("rest", "expert")}
    made = init_device_mesh(device_type, tuple(named.values()), mesh_dim_names=tuple(named))
    made["rest", "expert"]._flatten("shard")  # so that a norm is joined over both at once
    return made


def keep_fsdp_out_of_selective_checkpoints():
    """PyTorch 2.13 counts what FSDP's own hooks do among what a block does, and stops where a block that is computed again gathers
    its experts (torchtitan #3427, May 2026). Earlier versions run what was not kept, later ones leave FSDP out (pytorch #196862),
    which comes to the same."""
    from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState
    from torch.utils.checkpoint import _CachedTorchDispatchMode, _CachingTorchDispatchMode
    in_hooks = []

    def apart(hook):
        @torch._dynamo.disable  # as the hook itself is: whoever compiles a block would trace this
        @functools.wraps(hook)
        def wrapped(*args, **more):
            in_hooks.append(True)
            try:
                return hook(*args, **more)
            finally:
                in_hooks.pop()
        return wrapped

    def passing(dispatch):
        def wrapped(self, op, types, args=(), more=None):
            if in_hooks or op.namespace == "profiler":
                return op(*args, **(more or {}))
            return dispatch(self, op, types, args, more)
        return wrapped

    for mode in (_CachedTorchDispatchMode, _CachingTorchDispatchMode):
        mode.__torch_dispatch__ = passing(mode.__torch_dispatch__)
    FSDPState._pre_forward, FSDPState._post_forward = apart(FSDPState._pre_forward), apart(FSDPState._post_forward)


def share_experts(network):
    """Each rank has its part of every block's experts, as DTensors. Returns what FSDP2 is given of the mesh for them."""
    from torch.distributed.tensor import DTensor, Shard
    part = mesh["expert"]
    for module in network.modules():
        if not hasattr(module, "is_shared"):
            continue
        module.is_shared = True
        for name, whole in list(module.named_parameters()):
            own = whole.detach().chunk(part.size(), dim=0)[part.get_local_rank()].clone()
            parameter = nn.Parameter(DTensor.from_local(own, part, [Shard(0)], run_check=False))
            module.register_parameter(name, parameter)
        module.forward = Exchange(part, module.forward)
    return mesh["replicate", "rest"] if "replicate" in mesh.mesh_dim_names else mesh["rest"]


def of_copies(mesh):
    return mesh["replicate"].size() if "replicate" in mesh.mesh_dim_names else 1


def wrap_experts(block, options, mesh, more):
    """More ranks than experts cut each expert by its rows. A block without experts is left as it is."""
    if not has_experts(block):
        return
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Shard
    cuts_rows = mesh.size() // of_copies(mesh) * options.expert > block.mlp.shape.experts
    fully_shard(block.mlp.experts, **{**more, "mesh": mesh},
                shard_placement_fn=(lambda parameter: Shard(1)) if cuts_rows else None)
    block.mlp.experts.set_gradient_divide_factor(options.world // options.pipeline // options.tensor)


def has_experts(block):
    return hasattr(block.mlp, "experts")


def with_experts(block):
    return [block, block.mlp.experts] if has_experts(block) else [block]


def prefetch_experts(blocks):
    """The host's reading would hold back what FSDP2 gathers ahead by itself."""
    for block, after in zip(blocks, blocks[1:]):
        block.set_modules_to_forward_prefetch(with_experts(after))
        after.set_modules_to_backward_prefetch(with_experts(block))


def noted(x):
    """The recorder sees in which module a node was made that Python makes."""
    x.detach()
    return x


def clip(models, limit, stages=None, axis="expert"):
    """As torchtitan's _clip_grad_norm_with_ep (torchtitan/distributed/utils.py): a norm of the experts' and one of the rest, and of
    stages the square of both added up over them. So of any parameters whose mesh has an axis more than that of the rest."""
    ours, others = [], []
    for parameter in (p for model in models for p in model.parameters() if p.grad is not None):
        mesh = getattr(parameter, "device_mesh", None)
        (ours if mesh and axis in mesh.mesh_dim_names else others).append(parameter)
    norm_ours = nn.utils.get_total_norm([p.grad for p in ours])
    if isinstance(norm_ours, torch.distributed.tensor.DTensor):
        norm_ours = norm_ours.full_tensor()
    norm_others = nn.utils.get_total_norm([p.grad for p in others])
    if isinstance(norm_others, torch.distributed.tensor.DTensor):
        norm_others = norm_others.full_tensor()
    total = norm_ours ** 2.0 + norm_others ** 2.0
    total **= 1.0 / 2.0
    if stages:
        total **= 2.0
        torch.distributed.all_reduce(total, group=stages)
        total **= 1.0 / 2.0
    nn.utils.clip_grads_with_norm_(ours, limit, total)
    nn.utils.clip_grads_with_norm_(others, limit, total)
    return total


def exchanged(x, taken, given, group):
    """Not as all_to_all_single of functional collectives, which waits at once for a tensor without memory."""
    return noted(torch.ops._c10d_functional.all_to_all_single(x, taken, given, group))


def await_(x):
    """Where a tensor is first used that a device has not waited for."""
    with torch.no_grad():
        torch.ops._c10d_functional.wait_tensor(x.detach())


class PutRows(torch.autograd.Function):
    """What C++ does to real tensors when a new tensor's rows are assigned to."""

    @staticmethod
    def forward(ctx, rows, index, shape):
        ctx.save_for_backward(index)
        made = rows.new_empty(shape)
        made[index] = rows
        return made

    @staticmethod
    def backward(ctx, grad):
        index, = ctx.saved_tensors
        return grad[index], None, None


def splits(counts, rows, ranks, waits):
    """How many rows each rank is sent, or sends: on the host, which waits for the second copy alone. rows: in all, where
    numbers have no memory."""
    sums = counts.view(ranks, -1).sum(dim=1)
    sums = sums.to(torch.device("cpu"), non_blocking=not waits)
    if isinstance(sums, torch._subclasses.FakeTensor):
        return [rows // ranks + (i < rows % ranks) for i in range(ranks)]
    return [int(n) for n in sums.tolist()]


def order_by_expert(counts_group, ranks, rows):
    """From the order of ranks, and of experts within each, to that of experts."""
    starts = counts_group.cumsum(0) - counts_group
    matrix = counts_group.view(ranks, -1)
    counts = matrix.sum(0)
    lengths = matrix.t().reshape(-1)
    starts = starts.view(ranks, -1).t().reshape(-1)
    made = lengths.cumsum(0) - lengths
    ends = made + lengths
    bias = starts - made
    place = torch.arange(rows, device=counts_group.device)
    segment = torch.searchsorted(ends, place, right=True)
    order = place + bias[segment]
    return order, counts


def permuted(x, counts, ranks):
    from experts import RowsOf
    with torch.no_grad():
        order, counts = order_by_expert(counts, ranks, x.shape[0])
    shape = x.shape
    await_(x)
    x = RowsOf.apply(x, order)
    return shape, x, order, counts


class Exchange:
    """What torchtitan hooks to a module's call, around its forward."""

    def __init__(self, mesh, forward):
        self.ranks, self.group, self.forward = mesh.size(), mesh.get_group().group_name, forward

    def __call__(self, routed, counts):
        routed, counts, sent = self.dispatch(routed, counts)
        made = self.forward(routed, counts)
        return self.combine(made, *sent)

    def dispatch(self, routed, counts):
        with torch.no_grad():
            each = [counts.size(0) // self.ranks] * self.ranks
            counts_group = exchanged(counts, each, each, self.group)
            counts_group = torch.ops._c10d_functional.wait_tensor(counts_group)
            given = splits(counts, routed.size(0), self.ranks, False)
            taken = splits(counts_group, int(overload * routed.size(0) + 0.5), self.ranks, True)
        routed = exchanged(routed, taken, given, self.group)
        shape, routed, order, counts_group = permuted(routed, counts_group, self.ranks)
        return routed, counts_group, (shape, order, given, taken)

    def combine(self, made, shape, order, given, taken):
        made = noted(PutRows.apply(made, order, shape))
        return exchanged(made, given, taken, self.group)
