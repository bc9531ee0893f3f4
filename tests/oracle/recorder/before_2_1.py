"""PyTorch 2.0 and 1.13: FSDP1 and DistributedDataParallel on real tensors in the CPU's memory.

Their FSDP asks CUDA by name, their storages tell nobody when they die, and their fake tensors cannot stand for
a device of one's own. So the rank computes for real (small networks only), with the reporting streams in the
place of CUDA's and without any other rank: what a collective would bring is left as it is. Whether a storage
has died is asked before everything that is noted, so deaths between two things noted come in no order of
their own (`frees_in_order` in the header)."""

import contextlib
import dataclasses
import functools

import torch
import torch.distributed as dist
from torch.multiprocessing.reductions import StorageWeakRef

IS_1_13 = torch.__version__.startswith("1.")
dataclass = dataclasses.dataclass


def dataclass_with_hash(cls=None, **options):
    if cls is None:
        return functools.partial(dataclass_with_hash, **options)
    return dataclass(cls, **options, unsafe_hash="__hash__" not in vars(cls))


if IS_1_13:  # has default values without a hash, which Python 3.11 refuses
    dataclasses.dataclass = dataclass_with_hash
from torch.distributed.fsdp import flat_param, fully_sharded_data_parallel  # noqa: E402

dataclasses.dataclass = dataclass
if not IS_1_13:
    from torch.distributed.fsdp import _exec_order_utils, _init_utils, _runtime_utils

import fake_gpu  # noqa: E402


def storage_of(tensor):
    return tensor.storage().untyped() if IS_1_13 else tensor.untyped_storage()


class Group(dist.ProcessGroup):
    """This rank's place among others that are not there."""

    def __init__(self, rank, size):
        super().__init__(rank, size)


def start(options):
    """DistributedDataParallel's reducer wants a group that works: one of this rank alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    dist.group.of_all = Group(options.rank, options.world)
    dist.get_world_size = lambda group=None: group.size() if group is not None else options.world
    dist.get_rank = lambda group=None: group.rank() if group is not None else options.rank


def use_reporting_streams():
    fake_gpu.add_streams(torch.cuda)
    torch.cuda.is_available = lambda: True
    torch.cuda.is_current_stream_capturing = lambda: False


def groups(options):
    """Of FSDP: the ranks that share the parameters, or a pair with those that have the same part."""
    shard = options.shard_size or options.world
    if shard == options.world:
        return Group(options.rank, options.world)
    return Group(options.rank % shard, shard), Group(options.rank // shard, options.world // shard)


def watch_hosts_tensors(recorder):
    """torch.tensor(number) is the optimizer's step count, which lies in the host's memory."""
    make = torch.tensor

    def of_host(*args, **kwargs):
        was, recorder.paused = recorder.paused, True
        result = make(*args, **kwargs)
        recorder.paused = was
        recorder.ignore(result)
        return result

    torch.tensor = of_host


# ---- FSDP1 ---------------------------------------------------------------------------------------

STEPS_2_0 = {  # function -> (step, argument that holds the flat parameters' handles)
    "_root_pre_forward": ("root_pre_forward", None), "_pre_forward": ("pre_forward", 1),
    "_post_forward": ("post_forward", 1), "_unshard": ("unshard", 1), "_reshard": ("reshard", 1),
    "_pre_backward_hook": ("pre_backward", 2), "_post_backward_hook": ("post_backward", 1),
    "_post_backward_final_callback": ("root_post_backward", None),
}
STEPS_1_13 = {
    "_fsdp_root_pre_forward": ("root_pre_forward", None), "_pre_forward": ("pre_forward", 1),
    "_post_forward": ("post_forward", 1), "_unshard": ("unshard", 1), "_reshard": ("reshard", 1),
    "_post_backward_hook": ("post_backward", 1), "_wait_for_post_backward": ("root_post_backward", None),
}


def mark_fsdp1(recorder):
    owner = fully_sharded_data_parallel.FullyShardedDataParallel
    modules = [owner] if IS_1_13 else [_runtime_utils, fully_sharded_data_parallel]
    for name, (step, position) in (STEPS_1_13 if IS_1_13 else STEPS_2_0).items():
        marked = _marked(recorder, getattr(modules[0], name), step, position)
        for module in modules:
            if hasattr(module, name):
                setattr(module, name, marked)

    def record_stream(tensor, stream):
        block = recorder.block_of(tensor)
        recorder.log("record_stream", block=block.number if block else None, stream=stream)

    torch.Tensor.record_stream = record_stream
    torch.Tensor.cuda = lambda tensor: tensor
    torch.autograd.profiler.record_function = contextlib.nullcontext  # 1.13: names in tensors
    orders = fully_sharded_data_parallel._ExecOrderData if IS_1_13 else _exec_order_utils._ExecOrderData
    orders._check_order = _unseen(recorder, orders._check_order)
    cpu = torch.device("cpu")
    if IS_1_13:
        owner._get_compute_device = lambda *_: cpu
        prepare = owner._init_param_attributes
        owner._init_param_attributes = lambda fsdp, handle: _labelled(recorder, handle, prepare, fsdp, handle)
        fully_sharded_data_parallel._to_kwargs = _as_they_are
    else:
        _init_utils._get_compute_device = lambda *_: cpu
        _runtime_utils._no_dispatch_record_stream = flat_param._no_dispatch_record_stream = record_stream
        prepare = flat_param.FlatParamHandle.init_flat_param_attributes
        flat_param.FlatParamHandle.init_flat_param_attributes = (
            lambda handle: _labelled(recorder, handle, prepare, handle))
        _runtime_utils._to_kwargs = _as_they_are


def _unseen(recorder, function):
    """Of the first forward: the ranks tell each other once, in a few bytes, what they are about to gather."""
    def unseen(*args):
        recorder.paused = True
        function(*args)
        recorder.paused = False
    return unseen


def _as_they_are(args, kwargs, *_):
    return (args,), (kwargs,)


def _labelled(recorder, handle, prepare, *args):
    prepare(*args)
    sharded, flat = handle.uses_sharded_strategy, handle.flat_param
    for attribute, category in (("_local_shard", "param_sharded" if sharded else "param_unsharded"),
                                ("_mp_shard", "all_gather_input" if sharded else "param_unsharded"),
                                ("_full_param_padded", "param_unsharded"),
                                ("_full_prec_full_param_padded", "param_unsharded")):
        if hasattr(flat, attribute):
            recorder.label_storage(getattr(flat, attribute), category)


def _marked(recorder, function, step, position):
    @functools.wraps(function)
    def marked(*args, **kwargs):
        given = args[position] if position is not None and len(args) > position else kwargs.get("handles")
        handles = given if isinstance(given, (list, tuple)) else [given] if given is not None else []
        for name, stream in args[0]._streams.items():
            if stream.name.startswith("stream"):
                stream.name = {"all_gather": "unshard", "pre_all_gather": "pre_unshard"}.get(name, name)
        unit = _unit_of(recorder, args[0], handles)
        with recorder.inside(step, unit) if unit is not None else contextlib.nullcontext():
            if step == "post_backward":
                recorder.label(handles[0].flat_param.grad, "grad_unsharded")
            result = function(*args, **kwargs)
            if step == "post_backward":
                flat = handles[0].flat_param
                recorder.label(flat.grad, "grad_unsharded")
                if hasattr(flat, "_saved_grad_shard"):
                    recorder.becomes(flat._saved_grad_shard, "grad_sharded")
        return result
    return marked


def _unit_of(recorder, state, handles):
    if not handles:
        return "root"
    module = handles[0].flat_param._param_infos[0].module if IS_1_13 else handles[0]._fully_sharded_module
    if not IS_1_13:
        return recorder.module_names.get(id(module), "")
    for wrapper in [state, *fully_sharded_data_parallel.FullyShardedDataParallel.fsdp_modules(state)]:
        if handles[0] in wrapper._handles:
            return recorder.module_names.get(id(wrapper.module), "")
    return ""


class Deaths:
    """Which storages have died since the last time."""

    def __init__(self):
        self.references = {}

    def watch(self, storage):
        self.references[storage._cdata] = StorageWeakRef(storage)

    def take(self):
        dead = [address for address, reference in self.references.items() if reference.expired()]
        for address in dead:
            del self.references[address]
        return dead
