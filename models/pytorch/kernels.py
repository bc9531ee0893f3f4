"""What an operation asks of the GPU: products, attention, or bytes that are read and written."""

import math

import torch
from torch.utils._pytree import tree_flatten

aten = torch.ops.aten


def tensors_in(tree):
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]


def bytes_of(tensor):
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


def _product(m, n, k, batch, moved):
    return ("matmul", m, n, k, batch, moved)


def _mm(a, b, moved):
    batch = a.size(0) if a.dim() == 3 else 1
    return [_product(a.size(-2), b.size(-1), a.size(-1), batch, moved)]


def _convolution(given, weight, made, transposed, groups, moved):
    """As a product: for each place of the result, and each channel of a group, a sum over the other side's."""
    places = (given if transposed else made).size(0) * math.prod((given if transposed else made).shape[2:])
    return _product(places, weight.size(0) // groups, math.prod(weight.shape[1:]), groups, moved)


def _attention(query, key, causal, backward, moved):
    return [("attention", query.size(0), query.size(1), key.size(1), query.size(2), query.size(3), key.size(2), int(causal),
             int(backward), moved)]


def kernels_of(func, args, kwargs, result):
    """[(class, sizes...)] in the order of the file's words."""
    given, made = tensors_in((args, kwargs)), tensors_in(result)
    moved = sum(map(bytes_of, given)) + sum(map(bytes_of, made))
    if func in (aten.mm.default, aten.bmm.default):
        return _mm(args[0], args[1], moved)
    if func in (aten.addmm.default, aten.baddbmm.default):
        return _mm(args[1], args[2], moved)
    if func is aten.convolution.default:
        return [_convolution(args[0], args[1], result, args[6], args[8], moved)]
    if func is aten.convolution_backward.default:
        gradient, x, weight, transposed, groups, wanted = args[0], args[1], args[2], args[7], args[9], args[10]
        once = _convolution(x, weight, gradient, transposed, groups, moved)
        return [once] * (bool(wanted[0]) + bool(wanted[1])) or [("memory", moved)]
    named = dict(zip((a.name for a in func._schema.arguments), args)) | kwargs
    if func in (aten._scaled_dot_product_flash_attention.default, aten._scaled_dot_product_efficient_attention.default):
        return _attention(args[0], args[1], named.get("is_causal", False), False, moved)
    if func in (aten._scaled_dot_product_flash_attention_backward.default,
                aten._scaled_dot_product_efficient_attention_backward.default):
        return _attention(args[1], args[2], named.get("is_causal", False), True, moved)
    return [("memory", moved)]
