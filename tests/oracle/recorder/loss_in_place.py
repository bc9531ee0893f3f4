"""A stand-in for the kernels that take the place of cross_entropy() in transformers' loss: Liger's
(liger_kernel/ops/cross_entropy.py, 0.6.2) and Unsloth's (fms-acceleration's kernels/unsloth/cross_entropy_loss.py).

Both are an autograd function over a Triton kernel, which wants a real GPU. Here it holds what they hold: logits and
labels, and a number in fp32 a row; the gradient takes the logits' place (Liger's does so in forward already, and
multiplies in backward). Neither's bytes a row are those of the other, nor these: Liger's checks of labels make up to 21
more for a moment, Unsloth's losses 4."""

import torch


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(context, logits, targets):
        loss, total, of_rows = logits.sum(), logits.sum(), logits.sum(1, dtype=torch.float32)  # as many numbers
        context.save_for_backward(logits, targets, total, of_rows)
        return loss

    @staticmethod
    def backward(context, gradient):
        return context.saved_tensors[0], None


cross_entropy = InPlace.apply


def of_transformers(source, target, ignore_index, reduction):
    return cross_entropy(source, target)
