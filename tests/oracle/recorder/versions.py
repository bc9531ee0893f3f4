"""What differs between the versions of PyTorch that the recorder runs under. The other files are written for
2.13; where an older version has something elsewhere, or lacks it, this one says so and stands in for it."""

import ctypes
import functools
import importlib
import inspect

import torch
import torch.distributed as dist

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])

# ---- where private things live -------------------------------------------------------------------

if VERSION >= (2, 6):
    from torch.distributed._tools import fake_collectives
    from torch.distributed.fsdp import (CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy,
                                        fully_shard)
    from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
    from torch.distributed.fsdp._fully_shard._fsdp_state import FSDPState
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._sharding_prop import ShardingPropagator
    fully_shard_module = importlib.import_module("torch.distributed.fsdp._fully_shard._fully_shard")
    PROPAGATE = "_propagate_tensor_meta_non_cached"
    RESHARD_DEFAULT = None
else:
    from torch.distributed._composable.fsdp import (CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy,
                                                    OffloadPolicy, fully_shard)
    from torch.distributed._composable.fsdp._fsdp_param_group import FSDPParamGroup
    from torch.distributed._composable.fsdp._fsdp_state import FSDPState
    from torch.distributed._tensor import DTensor
    from torch.distributed._tensor._sharding_prop import ShardingPropagator
    fully_shard_module = importlib.import_module("torch.distributed._composable.fsdp.fully_shard")
    PROPAGATE = "_propagate_tensor_meta"
    RESHARD_DEFAULT = True  # the root is kept whole whatever it is told

# Before 2.8 rms_norm was a sum of plain kernels.
FUSED_NORM_OPS = ("_fused_rms_norm", "_fused_rms_norm_backward") if VERSION >= (2, 8) else ()


# ---- the device ----------------------------------------------------------------------------------

# An older backward asks a slot that was given a name for hooks that only C++ can write, so it keeps its own.
DEVICE_TYPE = "fakegpu" if VERSION >= (2, 8) else "privateuseone"


def register_device(name, module):
    """Gives the free device slot a name, a module torch.<name> and what C++ asks of a device."""
    if VERSION >= (2, 8):
        from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
        _setup_privateuseone_for_python_backend(name, backend_module=module)
        return
    torch.utils.generate_methods_for_privateuse1_backend()
    torch._register_device_module(name, module)
    _guard_device_like_meta()
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

def group_of_collective(func, args):
    if VERSION >= (2, 6):
        return fake_collectives.CollectiveOp.get_process_group(func, args)
    return torch._C._distributed_c10d._resolve_process_group(args[-1])  # functional ones come through here


class _Done:
    def wait(self):
        return True


def note_collectives(recorder):
    """Before 2.6 collectives had no kernel for tensors without memory: they are noted where they are called."""
    if VERSION >= (2, 6):
        return

    def note(kind, function):
        signature = inspect.signature(function)

        def collective(*args, **named):
            given = signature.bind(*args, **named).arguments
            output, *source = (t for t in given.values() if isinstance(t, torch.Tensor))
            recorder.note_collective(kind, given.get("group") or dist.group.WORLD, [output], source or [output],
                                     bool(given.get("async_op")))
            return _Done() if given.get("async_op") else None
        return functools.wraps(function)(collective)

    for kind in ("all_gather_into_tensor", "reduce_scatter_tensor", "all_reduce", "broadcast"):
        setattr(dist, kind, note(kind, getattr(dist, kind)))


def ddp_options(options):
    """DistributedDataParallel compares parameters between ranks when it is made; tensors without memory have
    nothing to compare. 2.5 was the first that can be told."""
    if VERSION >= (2, 5):
        return {"init_sync": options.real, "bucket_cap_mb": options.ddp_bucket_mb}
    if not options.real:
        from torch.nn.parallel import distributed
        distributed._verify_param_shape_across_processes = distributed._sync_module_states = lambda *_, **__: None
        torch.nn.parameter.UninitializedParameter = type("Nothing", (), {})  # fake parameters passed for these
    return {} if options.ddp_bucket_mb is None else {"bucket_cap_mb": options.ddp_bucket_mb}
