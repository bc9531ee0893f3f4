"""What routers and rotary embedding of published networks do: choices by numbers that no gradient comes back to, and blocks
that are given a table in fp32, which FSDP2 casts. A sample's tokens are its targets, too."""

import torch
import torch.nn.functional as F
from torch import nn

TOKENS = 12


class RoutedBlock(nn.Module):
    def __init__(self, width, ways):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.score = nn.Linear(width, ways)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(ways))

    def forward(self, x, angles):
        y = self.norm(x) * torch.cos(angles)
        scores = torch.sigmoid(self.score(y))
        weights = scores * self.chosen(scores)
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-3)
        for way, layer in enumerate(self.layers):
            x = x + layer(y) * weights[..., way:way + 1]
        return x

    def chosen(self, scores):
        wave = torch.sin(torch.exp(scores))
        return (wave > 0.9).to(scores.dtype)


class Routed(nn.Module):
    def __init__(self, vocab=96, width=32, blocks=2, ways=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList(RoutedBlock(width, ways) for _ in range(blocks))
        self.head = nn.Linear(width, vocab)
        self.register_buffer("angles", torch.arange(TOKENS * width).view(TOKENS, width) / width)

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, self.angles)
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


BLOCKS = ("RoutedBlock",)


def model():
    return Routed()


def batch(n):
    tokens = torch.randint(96, (n, TOKENS))
    return tokens, tokens
