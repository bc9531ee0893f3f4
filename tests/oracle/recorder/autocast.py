"""torch.autocast on the pretended device: PyTorch's own lists and cache, compiled for it (autocast_lists.cpp)."""

import contextlib
import os

import torch
from torch.utils import cpp_extension

import fake_gpu

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def prepare():
    """Compiles the lists, a minute the first time, and lets attention cast what it is given before its kernel is
    chosen. Call once, after the device is made."""
    here = os.path.dirname(os.path.abspath(__file__))
    cpp_extension.load("autocast_lists", [os.path.join(here, "autocast_lists.cpp")], is_python_module=False,
                       extra_cflags=["-O0"])
    choose = torch.nn.functional.scaled_dot_product_attention

    def attention(query, key, value, attn_mask=None, **more):
        # As the wrapper in C++ does, whose arguments a compiler works out from the last to the first.
        mask = attn_mask if attn_mask is None else torch.ops.recorder.lower(attn_mask)
        value, key, query = (torch.ops.recorder.lower(x) for x in (value, key, query))
        return choose(query, key, value, attn_mask=mask, **more)

    torch.nn.functional.scaled_dot_product_attention = attention


def order_what_its_cache_drops(recorder):
    """The cache is a table by address, which means nothing: what goes when it is cleared goes here in the order in
    which it was made."""
    clear = torch.clear_autocast_cache

    def cleared():
        first = len(recorder.entries)
        clear()
        recorder.entries[first:] = sorted(recorder.entries[first:], key=lambda entry: entry[1].number)

    torch.clear_autocast_cache = cleared


def region(options):
    """What a training loop's forward and loss run in."""
    if not options.autocast:
        return contextlib.nullcontext()
    return torch.autocast(fake_gpu.DEVICE_TYPE, DTYPES[options.autocast])
