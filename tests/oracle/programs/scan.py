"""A selective state space model (Mamba's kind) made of plain ops: a scan over time in Python."""

import torch
import torch.nn.functional as F
from torch import nn

TOKENS = 12


class ScanBlock(nn.Module):
    def __init__(self, width, inner, states):
        super().__init__()
        self.states = states
        self.norm = nn.RMSNorm(width)
        self.into = nn.Linear(width, 2 * inner, bias=False)
        self.mix = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
        self.parts = nn.Linear(inner, 1 + 2 * states, bias=False)
        self.step = nn.Linear(1, inner)
        self.log_decay = nn.Parameter(torch.zeros(inner, states))
        self.through = nn.Parameter(torch.ones(inner))
        self.back = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        length = x.size(1)
        y, gate = self.into(self.norm(x)).chunk(2, dim=-1)
        y = F.silu(self.mix(y.transpose(1, 2))[..., :length].transpose(1, 2))
        time, to_state, from_state = self.parts(y).split((1, self.states, self.states), dim=-1)
        time = F.softplus(self.step(time))
        decay = torch.exp(time.unsqueeze(-1) * -torch.exp(self.log_decay))
        given = (time * y).unsqueeze(-1) * to_state.unsqueeze(2)
        state = torch.zeros_like(given[:, 0])
        made = []
        for t in range(length):
            state = decay[:, t] * state + given[:, t]
            made.append((state * from_state[:, t].unsqueeze(1)).sum(-1))
        y = torch.stack(made, dim=1) + self.through * y
        return x + self.back(y * F.silu(gate))


class Scan(nn.Module):
    def __init__(self, vocab=96, width=32, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(ScanBlock(width, 2 * width, 4) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def model():
    return Scan()


def batch(n):
    return torch.randint(96, (n, TOKENS)), torch.randint(96, (n, TOKENS))
