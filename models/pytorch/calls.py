"""What a kernel computes: the call that PyTorch made, its tensors' shapes and strides and its other arguments, as words.

A call is a list of words. A word is a text, or pieces that stand without a blank: texts, Counts, Stores (whose name is the
file's to say) and Shapes. README.md has the form."""

import torch

NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.int64: "int64", torch.uint8: "uint8",
         torch.int32: "int32", torch.float64: "fp64", torch.bool: "bool"}
# What the result tells, or no number hangs on.
LEFT_OUT = ("dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking", "generator", "out_dtype",
            "input_dtype")


class Count(int):
    """A number that may grow with the samples."""


class Shape:
    """Where a tensor's elements lie in its storage."""

    def __init__(self, tensor):
        self.sizes, self.strides, self.offset = tuple(tensor.size()), tuple(tensor.stride()), tensor.storage_offset()

    def is_dense(self):
        """Row-major, from the storage's first element on."""
        step = 1
        for size, stride in zip(reversed(self.sizes), reversed(self.strides)):
            if size != 1 and stride != step:
                return False
            step *= size
        return self.offset == 0


class Unknown(Exception):
    """An argument that a file cannot say."""


def words_of(func, args, kwargs, result, name_of):
    """The call's words; name_of(tensor) is a piece. What cannot be said is a call of one word, ?NAME."""
    name = func._schema.name.split("::")[1] + ("." + func._schema.overload_name if func._schema.overload_name else "")
    try:
        words = [name]
        for i, argument in enumerate(func._schema.arguments):
            if argument.name not in LEFT_OUT:
                value = args[i] if i < len(args) else kwargs.get(argument.name, argument.default_value)
                words.append(_word(value, name_of))
        made = result if isinstance(result, (tuple, list)) else (result,)
        return [*words, ">", *(_word(r, name_of) for r in made)]
    except Unknown:
        return ["?" + name]


def _word(value, name_of):
    if value is None:
        return "-"
    if isinstance(value, torch.Tensor):
        dtype = NAMES.get(value.dtype, str(value.dtype).removeprefix("torch."))
        return (name_of(value), f"/{dtype}/", Shape(value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return (Count(value),)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str) and value and not any(c in value for c in " ;[]/"):
        return value
    if isinstance(value, (tuple, list)):
        pieces = ["["]
        for i, item in enumerate(value):
            word = _word(item, name_of)
            pieces += ([";"] if i else []) + (list(word) if isinstance(word, tuple) else [word])
        return (*pieces, "]")
    raise Unknown


# ---- passes together -------------------------------------------------------------------------------

def formula(values):
    """{samples: number} as text, or None where it is no line."""
    items = sorted(values.items())
    if len(items) == 1 or all(v == items[0][1] for _, v in items):
        return str(items[0][1])
    (n0, v0), (n1, v1) = items[:2]
    slope, rest = divmod(v1 - v0, n1 - n0)
    fixed = v0 - slope * n0
    if rest or any(fixed + slope * n != v for n, v in items):
        return None
    return f"{slope}n" + (f"{fixed:+d}" if fixed else "")


def _merged_stride(shapes, side):
    """Of a side of one element any stride will do."""
    meant = {n: shape.strides[side] for n, shape in shapes.items() if shape.sizes[side] != 1}
    return formula(meant) if meant else "0"


def _merged_shape(shapes):
    dims = {len(shape.sizes) for shape in shapes.values()}
    if len(dims) > 1:
        return None
    sides = range(dims.pop())
    sizes = [formula({n: shape.sizes[i] for n, shape in shapes.items()}) for i in sides]
    parts = [",".join(sizes) or "-"] if None not in sizes else [None]
    if not all(shape.is_dense() for shape in shapes.values()):
        strides = [_merged_stride(shapes, i) for i in sides]
        parts += [",".join(strides) or "-" if None not in strides else None,
                  formula({n: shape.offset for n, shape in shapes.items()})]
    return None if None in parts else "/".join(parts)


def _merged_piece(pieces):
    first = next(iter(pieces.values()))
    if isinstance(first, Count):
        return formula(pieces)
    if isinstance(first, Shape):
        return _merged_shape(pieces)
    return first if all(type(p) is type(first) and p == first for p in pieces.values()) else None


def merged(calls):
    """{samples: words} as text; what no line says of all of them is ?NAME."""
    first = next(iter(calls.values()))
    words = []
    if len({len(call) for call in calls.values()}) == 1:
        for together in zip(*calls.values()):
            pieces = [word if isinstance(word, tuple) else (word,) for word in together]
            if len({len(p) for p in pieces}) > 1:
                break
            text = [_merged_piece(dict(zip(calls, p))) for p in zip(*pieces)]
            if None in text:
                break
            words.append("".join(text))
        else:
            return " ".join(words)
    return "?" + first[0].lstrip("?")
