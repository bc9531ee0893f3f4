"""Holds ../fills.c against PyTorch: which operations fill their results under deterministic algorithms.

Usage: python fills.py  (seconds; no GPU).  Each operation runs for real on the CPU under torch.profiler, which
sees the fill_ that empty, empty_strided and resize_ make inside of it.  That speaks for CUDA where both devices
ask for their results in the same code: structured kernels (at::detail::empty_cpu and empty_cuda, which fill
nothing) and functions written once for all devices.  The operations in CUDA_ONLY have kernels of their own; of
those the source was read (ATen/native/cuda, PyTorch 2.13): they call at::empty, empty_like or zeros."""

import os
import re
import sys

import torch
from torch.profiler import ProfilerActivity, profile

# ATen/native/cuda: layer_norm_kernel.cu, Dropout.cu, ForeachUnaryOp.cu, ForeachBinaryOpScalar.cu,
# ForeachReduceOp.cu; ATen/native/TensorFactories.cpp: scalar_tensor, which has a way of its own for CPUs;
# ATen/native/transformers/cuda: attention.cu, attention_backward.cu; of the last two
# torch/distributed: _functional_collectives (clones) and fsdp/_fully_shard/_fsdp_collectives.py (torch.empty).
CUDA_ONLY = ("native_layer_norm_backward", "_fused_rms_norm", "_fused_rms_norm_backward", "native_dropout",
             "native_dropout_backward", "_scaled_dot_product_flash_attention",
             "_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention",
             "_scaled_dot_product_efficient_attention_backward", "scalar_tensor", "_foreach_sqrt", "_foreach_add", "_foreach_norm",
             "all_reduce", "all_gather_copy_in")

aten = torch.ops.aten
x = torch.rand(8, 16)
half = x.bfloat16()
rows = torch.randint(0, 8, (5,))
log_p = torch.log_softmax(x, -1)
targets = torch.zeros(8, dtype=torch.int64)
mask = torch.zeros(8, 16, dtype=torch.bool)

FILLING = {
    "empty": lambda: torch.empty(3), "empty_like": lambda: torch.empty_like(x), "new_empty": lambda: x.new_empty(3),
    "zeros": lambda: torch.zeros(3), "zeros_like": lambda: torch.zeros_like(x), "new_zeros": lambda: x.new_zeros(3),
    "ones": lambda: torch.ones(3), "ones_like": lambda: torch.ones_like(x), "new_ones": lambda: x.new_ones(3), "full": lambda: torch.full((3,), 2.0), "arange": lambda: torch.arange(3),
    "_to_copy": lambda: aten._to_copy(x, dtype=torch.bfloat16), "clone": lambda: x.clone(),
    "constant_pad_nd": lambda: aten.constant_pad_nd(x, [0, 4]),
    "slice_backward": lambda: aten.slice_backward(x, [8, 32], 1, 0, 16, 1),
    "masked_fill": lambda: x.masked_fill(mask, 1.0), "abs": lambda: rows.abs(),
    "where": lambda: torch.where(mask, 0.0, torch.scalar_tensor(1.0)),
    "embedding": lambda: aten.embedding(x, rows),
    "embedding_dense_backward": lambda: aten.embedding_dense_backward(torch.rand(5, 16), rows, 8, -1, False),
    "native_layer_norm": lambda: aten.native_layer_norm(x, [16], None, None, 1e-5),
}
NOT_FILLING = {
    "mm": lambda: x @ x.t(), "addmm": lambda: torch.addmm(x[:, 0], x, x.t()),
    "bmm": lambda: torch.bmm(x[None], x.t()[None]), "add": lambda: x + x, "mul": lambda: x * x,
    "sub": lambda: x - x, "div": lambda: x / x, "neg": lambda: -x, "pow": lambda: x.pow(2), "rsqrt": lambda: x.rsqrt(),
    "sqrt": lambda: x.sqrt(), "reciprocal": lambda: x.reciprocal(), "sigmoid": lambda: x.sigmoid(),
    "silu": lambda: aten.silu(x), "silu_backward": lambda: aten.silu_backward(x, x), "gelu": lambda: aten.gelu(x),
    "gelu_backward": lambda: aten.gelu_backward(x, x), "relu": lambda: aten.relu(x),
    "threshold_backward": lambda: aten.threshold_backward(x, x, 0), "cat": lambda: torch.cat([x, x]),
    "stack": lambda: torch.stack([x, x]), "_softmax": lambda: aten._softmax(x, -1, False),
    "_softmax_backward_data": lambda: aten._softmax_backward_data(x, x, -1, torch.float32),
    "_log_softmax": lambda: aten._log_softmax(x, -1, False),
    "_log_softmax_backward_data": lambda: aten._log_softmax_backward_data(x, x, -1, torch.float32),
    "nll_loss_forward": lambda: aten.nll_loss_forward(log_p, targets, None, 1, -100),
    "sum of fp32": lambda: x.sum(1), "mean of fp32": lambda: x.mean(1), "triu": lambda: mask.triu(1),
    "clamp": lambda: x.clamp(max=1.0), "gt": lambda: x > 2, "le": lambda: x <= 2, "bitwise_and": lambda: mask & mask, "linalg_vector_norm": lambda: torch.linalg.vector_norm(x),
    "a storage's resize_": lambda: empty.untyped_storage().resize_(64),
}
empty = torch.empty(0)


def fills(function):
    """Whether an empty, empty_strided or resize_ inside of it filled something that has a dimension: numbers that
    take part in arithmetic become tensors without one, on the host."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
        function()
    from_empty = ("aten::empty", "aten::empty_strided", "aten::resize_")
    return any(e.name == "aten::fill_" and e.input_shapes[0] and e.cpu_parent is not None and
               (e.cpu_parent.name in from_empty or resizes(e)) for e in seen.events())


def resizes(event):
    """Outputs that are resized in C++ are filled as the bytes that have come."""
    return event.cpu_parent.name in ("aten::index_select", "aten::arange", "aten::abs")


def main():
    torch.use_deterministic_algorithms(True)
    source = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fills.c")).read()
    table = source[source.index("filling[] = {"):source.index("};")]
    listed = {name for _, name in re.findall(r'"(aten|_c10d_functional|fsdp)\.([a-z_]+)\."', table)}
    failures = [f"{name} does not fill" for name, run in FILLING.items() if not fills(run)]
    failures += [f"{name} fills" for name, run in NOT_FILLING.items() if fills(run)]
    failures += [f"{name} is in one list alone" for name in listed ^ (set(FILLING) | set(CUDA_ONLY))]
    for failure in failures:
        print("FAIL", failure)
    print(f"{len(FILLING)} fill, {len(NOT_FILLING)} do not, {len(CUDA_ONLY)} by their source: {len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
