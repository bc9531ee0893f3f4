"""An encoder and a decoder that looks at what the encoder made, which the network hands on beside its logits. The encoder's
blocks stand in lists within lists, are copies of one, and each hands back the tilt that it is given; the decoder hides from
attention what comes later, by a mask."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, WORDS = 32, 4, 50


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.both = nn.Linear(WIDTH, 2 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, states, mask=None):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in (self.query(x), *self.both(states).chunk(2, -1)))
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = Attention()

    def forward(self, x, tilt):
        y = self.norm(x)
        return x + self.attention(y, y) * tilt, tilt


class Stage(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(2))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, tilt):
        for layer in self.layers:
            x, tilt = layer(x, tilt)
        return x + self.out(F.gelu(x)), tilt


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.looking = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.across = Attention(), Attention()

    def forward(self, x, states, mask):
        y = self.norm(x)
        x = x + self.attention(y, y, mask)
        return x + self.across(self.looking(x), states)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        stage = Stage()
        self.token = nn.Embedding(WORDS, WIDTH)
        self.tilt = nn.Parameter(torch.ones(WIDTH))
        self.stages = nn.ModuleList(copy.deepcopy(stage) for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, asked, answered):
        states, tilt = self.token(asked), self.tilt.exp()
        for stage in self.stages:
            states, tilt = stage(states, tilt)
        states = self.norm(states)
        x, length = self.token(answered), answered.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        for layer in self.layers:
            x = layer(x, states, mask)
        return self.head(x), states


def model():
    return Pair()


def batch(n):
    return torch.randint(WORDS, (n, 24)), torch.randint(WORDS, (n, 8))


def loss(model, asked, answered):
    logits, _ = model(asked, answered)
    return F.cross_entropy(logits.flatten(0, 1), answered.flatten())
