"""A head that makes the loss by PyTorch's linear_cross_entropy, in chunks of rows: since 2.13.

PyTorch registers the loop over the chunks (torch/nn/modules/linear_cross_entropy.py) as one operator, of which
tensors without memory see the results alone. `prepare` has the same loop run in Python, as on a GPU, so that the
recorder sees what it holds; it writes all of it as one kernel's (`Recorder.one_kernel`)."""

import torch
from torch import nn
from torch.nn.modules import linear_cross_entropy as chunked

import versions


def loss_of(x, weight, targets):
    wide = torch.float32 if x.dtype in (torch.bfloat16, torch.float16) else None  # "auto", had it a GPU to ask
    options = nn.LinearCrossEntropyOptions(acc_dtype=wide)
    return nn.functional.linear_cross_entropy(x.flatten(0, -2), weight, targets.flatten(), options=options)


class HeadWithLoss(nn.Linear):
    def forward(self, x, targets):
        return loss_of(x, self.weight, targets)


def prepare(recorder):
    class Chunked(torch.autograd.Function):
        """What PyTorch makes of the operator: its forward, and the two functions it is registered with."""

        @staticmethod
        def forward(*inputs):
            allow_retain_graph = inputs[11]
            assert not allow_retain_graph
            with recorder.one_kernel():
                return chunked._linear_cross_entropy_batch_chunked_accumulator(*inputs[:11], *inputs[12:])

        setup_context = staticmethod(chunked._linear_cross_entropy_batch_chunked_setup_context)
        backward = staticmethod(chunked._linear_cross_entropy_batch_chunked_backward)

    build = chunked._ChunkContext.build.__func__  # asks whether the device is "cuda"
    constants = (versions.DEVICE_TYPE if c == "cuda" else c for c in build.__code__.co_consts)
    build.__code__ = build.__code__.replace(co_consts=tuple(constants))
    chunked._linear_cross_entropy_batch_chunked = Chunked.apply
