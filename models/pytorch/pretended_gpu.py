"""A GPU that is not there: device type "pretended", for tensors without memory.

Not "cuda": PyTorch's autograd engine asks CUDA's runtime for a device as soon as a gradient is on one. PyTorch has a free
device slot that may be filled from Python. Two choices that PyTorch makes in C++ by device type are made here as for a
GPU: attention's kernel, and which functions are one kernel. Python's trunc_normal_ draws until all numbers are within
bounds; here none is drawn."""

import contextlib
import math
import types

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "pretended"


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """What scaled_dot_product_attention calls on a GPU: the flash kernel for 16 bits without a mask, where q, k and v have
    heads of one width up to 256 (ATen's sdp_utils.cpp), else the memory-efficient one."""
    aten = torch.ops.aten
    one_width = query.size(-1) == key.size(-1) == value.size(-1) <= 256
    if attn_mask is None and one_width and query.dtype in (torch.bfloat16, torch.float16):
        return aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
    if enable_gqa:  # it knows no groups of heads
        key, value = (t.repeat_interleave(query.size(1) // t.size(1), 1) for t in (key, value))
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.where(attn_mask, 0.0, torch.scalar_tensor(-math.inf, dtype=query.dtype, device=attn_mask.device))
        attn_mask = attn_mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))
    keeps_sums = any(t.requires_grad for t in (query, key, value))
    return aten._scaled_dot_product_efficient_attention(query, key, value, attn_mask, keeps_sums, dropout_p, is_causal,
                                                        scale=scale)[0]


class _Stream:
    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        return lambda *_, **__: None


def _module():
    module = types.ModuleType("torch." + NAME)
    module._initialized = True
    module._is_in_bad_fork = lambda: False
    module.is_available = module.is_initialized = lambda: True
    module.current_device = lambda: 0
    module.device_count = lambda: 1
    module.set_device = module.synchronize = lambda device=None: None
    module.device = lambda device: contextlib.nullcontext()
    module.manual_seed_all = module.manual_seed = lambda seed: None
    module.get_rng_state = lambda device=None: torch.empty(16, dtype=torch.uint8, device="cpu")
    module.set_rng_state = lambda state, device=None: None
    module.get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]
    module.empty_cache = lambda: None
    module.Stream = module.Event = _Stream
    module.stream = lambda stream: contextlib.nullcontext()
    module.current_stream = module.default_stream = lambda device=None: _Stream()
    return module


def _must_not_run(*_, **__):
    raise RuntimeError("a kernel was called for a GPU that is not there")


def create():
    """The device, once a process. What is returned with it must be kept."""
    _setup_privateuseone_for_python_backend(NAME, backend_module=_module())
    torch.autograd.set_multithreading_enabled(False)  # backward in this thread, in one order
    FakeTensorMode.avoid_device_init = True
    library = torch.library.Library("aten", "IMPL")
    for op in ("_fused_rms_norm", "_fused_rms_norm_backward", "silu_backward", "mish_backward"):
        library.impl(op, _must_not_run, "PrivateUse1")
    torch.nn.functional.scaled_dot_product_attention = attention
    torch.nn.init._no_grad_trunc_normal_ = lambda tensor, *_, **__: tensor
    return torch.device(NAME, 0), library
