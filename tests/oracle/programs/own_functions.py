"""Functions of autograd written in Python: one that keeps what it is given, one its result, one nothing."""

import torch
import torch.nn.functional as F
from torch import nn


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


class Exponential(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return y * gradient


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(24, 24) for _ in range(3))

    def forward(self, x):
        for block, function in zip(self.blocks, (Square, Exponential, Double)):
            x = function.apply(block(x))
        return x


def model():
    return Network()


def batch(n):
    return torch.rand(n, 24), torch.rand(n, 24)


def loss(network, x, wanted):
    return F.mse_loss(network(x), wanted)
