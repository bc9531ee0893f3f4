"""An encoder as BERT is made: padding is hidden from attention, tokens are numbered without it, one layer has biases of
its own for each pair of places, and what is asked for stands at the last token that is no padding."""

import torch
import torch.nn.functional as F
from torch import nn

LENGTH, WIDTH, HEADS = 20, 32, 4
BLOCKS = ("Layer",)


class Layer(nn.Module):
    def __init__(self, has_bias):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.bias = nn.Parameter(torch.zeros(HEADS, LENGTH + 1, LENGTH + 1)) if has_bias else None

    def forward(self, x, seen):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        mask = seen[:, None, None]
        if self.bias is not None:
            mask = torch.where(mask, 0.0, -torch.inf).to(x.dtype) + self.bias
        else:
            mask = mask.expand(-1, 1, x.shape[1], -1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return x + self.out(y.transpose(1, 2).flatten(2))


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(50, WIDTH)
        self.place = nn.Embedding(LENGTH + 1, WIDTH)
        self.prompt = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.layers = nn.ModuleList(Layer(has_bias) for has_bias in (False, True))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, tokens):
        tokens = tokens.index_select(1, torch.arange(LENGTH - 1, -1, -1, device=tokens.device))
        seen = tokens != 0
        places = seen.long().cumsum(1) * seen
        x = torch.cat([self.prompt.repeat(len(tokens), 1, 1), self.token(tokens) + self.place(places)], 1)
        seen = F.pad(seen, (1, 0), value=True)
        for layer in self.layers:
            x = layer(x, seen)
        last = seen.long().sum(1) - 1
        return self.head(x.gather(1, last[:, None, None].expand(-1, 1, WIDTH)).squeeze(1))


def model():
    return Masked()


def batch(n):
    return torch.randint(50, (n, LENGTH)), torch.randint(10, (n,))


def loss(model, tokens, labels):
    return F.cross_entropy(model(tokens), labels)
