"""Numbers for a traced network that is run: the safetensors files of `foreshard run`'s --load and --data.

The file is eight bytes of a length, that much JSON, and the tensors, one behind the other."""

import json
import os
import struct

import torch
from torch.utils._python_dispatch import TorchDispatchMode

DTYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.float64: "F64", torch.int64: "I64",
          torch.int32: "I32", torch.uint8: "U8", torch.bool: "BOOL"}


def write_whole(path, parts):
    """So that a file is there whole, or as it was: written beside, under a name that no other process takes, and renamed."""
    aside = f"{path}.tmp-{os.getpid()}"
    try:
        with open(aside, "wb") as file:
            for part in parts:
                file.write(part)
        os.replace(aside, path)
    except OSError as why:
        why.filename = path
        raise
    finally:
        if os.path.exists(aside):
            os.unlink(aside)


def write(path, tensors):
    header, parts, at = {}, [], 0
    for name, tensor in tensors.items():
        flat = tensor.detach().contiguous().reshape(-1)
        part = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(part)]}
        parts.append(part)
        at += len(part)
    text = json.dumps(header, separators=(",", ":"))
    text += " " * (-len(text) % 8)
    write_whole(path, [struct.pack("<Q", len(text)) + text.encode(), *parts])


def of_network(network):
    """Parameters and all buffers, also those that no state dict has."""
    return {**dict(network.named_parameters()), **dict(network.named_buffers())}


class _Made(TorchDispatchMode):
    """What is made, in order; held, so that no storage comes twice."""

    def __init__(self):
        super().__init__()
        self.tensors = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.tensors += [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]
        return result


def of_batch(make, samples):
    """The batch, and its tensors named by the order in which they were made, as the tracer counts them."""
    with _Made() as made:
        batch = make(samples)
    batch = batch if isinstance(batch, (tuple, list)) else (batch,)
    order = {}
    for tensor in made.tensors:
        order.setdefault(tensor.untyped_storage()._cdata, len(order))
    tensors = {order[t.untyped_storage()._cdata]: t
               for t in torch.utils._pytree.tree_leaves(batch) if isinstance(t, torch.Tensor)}
    return batch, {str(i): tensors[number] for i, number in enumerate(sorted(tensors))}
