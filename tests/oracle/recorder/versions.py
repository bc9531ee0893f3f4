"""What differs between the versions of PyTorch that the recorder runs under. The other files are written for
2.13; where an older version has something elsewhere, or lacks it, this one says so and stands in for it."""

import contextlib
import ctypes
import functools
import importlib
import inspect

import torch
import torch.distributed as dist
import torch.utils.checkpoint

import wrapping

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])

BEFORE_2_1 = VERSION < (2, 1)
BEFORE_2_4 = VERSION < (2, 4)  # which has no fully_shard

# ---- where private things live -------------------------------------------------------------------

if VERSION >= (2, 6):
    from torch.distributed.fsdp import (CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy,
                                        fully_shard)
    from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
    from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._sharding_prop import ShardingPropagator
    fully_shard_module = importlib.import_module("torch.distributed.fsdp._fully_shard._fully_shard")
    PROPAGATE = "_propagate_tensor_meta_non_cached"
    RESHARD_DEFAULT = inspect.signature(fully_shard).parameters["reshard_after_forward"].default
elif not BEFORE_2_4:
    from torch.distributed._composable.fsdp import (CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy,
                                                    OffloadPolicy, fully_shard)
    from torch.distributed._composable.fsdp._fsdp_param_group import FSDPParamGroup
    from torch.distributed._composable.fsdp._fsdp_state import FSDPState
    fully_shard_module = importlib.import_module("torch.distributed._composable.fsdp.fully_shard")
    if VERSION >= (2, 5):
        from torch.distributed.tensor import DTensor
        from torch.distributed.tensor._sharding_prop import ShardingPropagator
    else:
        from torch.distributed._tensor import DTensor
        from torch.distributed._tensor._sharding_prop import ShardingPropagator
    PROPAGATE = next(name for name in ("_propagate_tensor_meta_non_cached", "_propagate_tensor_meta")
                     if hasattr(ShardingPropagator, name))
    RESHARD_DEFAULT = True  # the root is kept whole whatever it is told
else:
    class _Nothing:
        pass
    CPUOffloadPolicy = FSDPModule = MixedPrecisionPolicy = OffloadPolicy = fully_shard = _Nothing
    FSDPParamGroup = FSDPState = DTensor = ShardingPropagator = _Nothing
    RESHARD_DEFAULT = None

if BEFORE_2_1:
    import before_2_1
    init_device_mesh = unset_fake_temporarily = ASKS_DEVICE = None
    storage_of = before_2_1.storage_of
    HEADER = {"frees_in_order": False}
else:
    from torch._subclasses.fake_tensor import unset_fake_temporarily
    from torch.distributed.device_mesh import init_device_mesh
    storage_of = torch.Tensor.untyped_storage
    ASKS_DEVICE = torch.ops.prim.device.default
    HEADER = {}

# Since 2.9 a device may be written in Python, which collectives and FSDP2's copies have kernels for.
_registration = importlib.import_module("torch.utils.backend_registration") if VERSION >= (2, 0) else None
_setup_device = getattr(_registration, "_setup_privateuseone_for_python_backend", None)

if VERSION >= (2, 5) and not _setup_device:
    _collectives = importlib.import_module(fully_shard_module.__package__ + "._fsdp_collectives")
    for _op, _function in (("all_gather_copy_in", "all_gather_copy_in_cuda"),
                           ("split_with_sizes_copy", "split_with_sizes_copy"), ("chunk_cat", "chunk_cat")):
        if not torch._C._dispatch_has_kernel_for_dispatch_key("fsdp::" + _op, "PrivateUse1"):
            _collectives.lib.impl(_op, getattr(_collectives, _function), "PrivateUse1")
        _collectives.lib.impl(_op, torch.library.fallthrough_kernel, "AutogradPrivateUse1")

# Before 2.9 rms_norm was a sum of plain kernels (its CUDA kernel is pytorch #153666).
FUSED_NORM_OPS = ("_fused_rms_norm", "_fused_rms_norm_backward") if VERSION >= (2, 9) else ()


# Inside of what torch.compile traces; it takes the answer for a constant.
is_compiling = torch.compiler.is_compiling if VERSION >= (2, 3) else lambda: False

# ---- the device ----------------------------------------------------------------------------------

# An older backward asks a slot that was given a name for hooks that only C++ can write, so it keeps its own.
DEVICE_TYPE = "fakegpu" if _setup_device else "privateuseone"


def register_device(name, module):
    """Gives the free device slot a name, a module torch.<name> and what C++ asks of a device."""
    if _setup_device:
        _setup_device(name, backend_module=module)
        return
    torch.utils.generate_methods_for_privateuse1_backend()
    torch._register_device_module(name, module)
    _guard_device_like_meta()
    torch.utils.checkpoint.DefaultDeviceType.set_device_type(name)  # whose random state it restores
    for word in ("Stream", "Event", "stream", "current_stream", "default_stream"):
        setattr(torch.cuda, word, getattr(module, word))  # FSDP2 asked CUDA by name


_GUARD = []  # C++ keeps pointing at it


def _guard_device_like_meta():
    """C++ asks a device's guard for its streams. Device "meta" has one that always answers the same stream,
    but none for the default stream: this copy of its table of functions answers that one too. Both functions
    take and return the same, and the table's first seven entries have been these since PyTorch 1.2."""
    kinds = torch._C._autograd.DeviceType
    guards = (ctypes.c_void_p * (int(kinds.PrivateUse1) + 1)).in_dll(
        ctypes.CDLL("libc10.so"), "_ZN3c104impl26device_guard_impl_registryE")
    of_meta = ctypes.c_void_p.from_address(guards[int(kinds.Meta)]).value
    table = (ctypes.c_void_p * 24)(*(ctypes.c_void_p * 24).from_address(of_meta))
    GET_STREAM, GET_DEFAULT_STREAM = 5, 6
    table[GET_DEFAULT_STREAM] = table[GET_STREAM]
    guard = ctypes.c_void_p(ctypes.addressof(table))
    _GUARD.extend((table, guard))
    guards[int(kinds.PrivateUse1)] = ctypes.addressof(guard)


# ---- collectives ---------------------------------------------------------------------------------

# Whose arrival in the recorder is noted; what is noted where it is called must not be again.
COLLECTIVE_OPS = ("c10d", "_c10d_functional") if _setup_device else ("_c10d_functional",)


WAIT_TENSOR = None if BEFORE_2_1 else torch.ops._c10d_functional.wait_tensor.default


def group_of_collective(func, args):
    if _setup_device:
        from torch.distributed._tools import fake_collectives
        return fake_collectives.CollectiveOp.get_process_group(func, args)
    return torch._C._distributed_c10d._resolve_process_group(args[-1])  # functional ones come through here


class _Done:
    def wait(self):
        return True


def note_collectives(recorder):
    """Where collectives have no kernel for tensors without memory they are noted where they are called."""
    if _setup_device:
        return

    def note(kind, function):
        signature = inspect.signature(function)

        def collective(*args, **named):
            given = signature.bind(*args, **named).arguments
            output, *source = (t for t in given.values() if isinstance(t, torch.Tensor))
            recorder.note_collective(kind, given.get("group") or getattr(dist.group, "of_all", dist.group.WORLD),
                                     [output], source or [output], bool(given.get("async_op")))
            return _Done() if given.get("async_op") else None
        return functools.wraps(function)(collective)

    names = {"_all_gather_base": "all_gather_into_tensor", "_reduce_scatter_base": "reduce_scatter_tensor"}
    for name in ("all_gather_into_tensor", "reduce_scatter_tensor", "all_reduce", "broadcast", *names):
        setattr(dist, name, note(names.get(name, name), getattr(dist, name)))


def ddp_options(options):
    """DistributedDataParallel compares parameters between ranks when it is made; tensors without memory have
    nothing to compare. Older versions cannot be told."""
    from torch.nn.parallel import DistributedDataParallel
    if "init_sync" in inspect.signature(DistributedDataParallel.__init__).parameters:
        return {"init_sync": options.real, "bucket_cap_mb": options.ddp_bucket_mb}
    if not options.real:
        from torch.nn.parallel import distributed
        distributed._verify_param_shape_across_processes = distributed._sync_module_states = lambda *_, **__: None
        torch.nn.parameter.UninitializedParameter = type("Nothing", (), {})  # fake parameters passed for these
    return {} if options.ddp_bucket_mb is None else {"bucket_cap_mb": options.ddp_bucket_mb}


def fsdp1_options(options, network, hybrid_mesh, device):
    if not BEFORE_2_1:
        return {"device_mesh": hybrid_mesh, "auto_wrap_policy": wrapping.policy_of_fsdp1(network, options),
                "device_id": device, "use_orig_params": options.use_orig_params}
    from torch.distributed.fsdp.wrap import lambda_auto_wrap_policy
    chosen = {id(group[0]) for group in wrapping.units(network, options)}
    policy = functools.partial(lambda_auto_wrap_policy, lambda_fn=lambda module: id(module) in chosen)
    more = {} if VERSION < (2, 0) else {"use_orig_params": options.use_orig_params}
    return {"process_group": before_2_1.groups(options), "auto_wrap_policy": policy, **more}


# ---- what a step asks ----------------------------------------------------------------------------

def deaths():
    return before_2_1.Deaths() if BEFORE_2_1 else None


def checkpoint_early_stop(stops):
    if BEFORE_2_1:  # every checkpoint was computed again to its end
        return contextlib.nullcontext()
    return torch.utils.checkpoint.set_checkpoint_early_stop(stops)


def default_device(device):
    return contextlib.nullcontext() if BEFORE_2_1 else device  # which is the CPU


def register_after_forward(hook):
    more = {} if BEFORE_2_1 else {"always_call": True}
    return torch.nn.modules.module.register_module_forward_hook(hook, **more)


def after_gradient(parameter, call):
    """Calls it when the parameter has its gradient."""
    if BEFORE_2_1:
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        parameter._keeps_node = node
        node.register_hook(lambda *_: call(parameter))
    else:
        parameter.register_post_accumulate_grad_hook(call)


def sequence_number():
    return 0 if BEFORE_2_1 else torch._C._autograd._get_sequence_nr()


def sequence_number_in_backward():
    node = None if BEFORE_2_1 else torch._C._current_autograd_node()
    return node._sequence_nr() if node is not None else None
