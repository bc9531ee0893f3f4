"""What network files know and the recorder's networks do not: no biases at all, and ALiBi for positions; and where
a network here differs from transformers' by choice (docs/pytorch/blocks.md).

ALiBi (Press et al., 2022) as MPT has it: attention adds slope * (key - query) to each scaled score, head by head."""

import math

import decoders
import networks
import torch
from torch import nn

ALIBI_MOST = 8


def drop_biases(network):
    for module in network.modules():
        if isinstance(module, (nn.Linear, nn.LayerNorm)):
            module.bias = None


def slopes(heads):
    """Powers of two, evenly spread; for other numbers of heads every second of the next power's, even ones first."""
    whole = 2 ** math.ceil(math.log2(heads))
    all_slopes = [2.0 ** (-ALIBI_MOST * (i + 1) / whole) for i in range(whole)]
    chosen = all_slopes if whole == heads else (all_slopes[1::2] + all_slopes[::2])[:heads]
    return torch.tensor(chosen).view(heads, 1, 1)


def alibi(heads, seq):
    distance = torch.arange(seq).view(1, 1, seq) - torch.arange(seq).view(1, seq, 1)
    return (slopes(heads) * distance).masked_fill(distance > 0, float("-inf"))


class NoPositions(nn.Module):
    def forward(self, positions):
        return 0.0


def use_alibi(network):
    network.wpe = NoPositions()
    plain = networks.attend

    def attend(q, k, v, shape, causal):
        return plain(q, k, v, shape, causal, bias=alibi(q.size(1), q.size(2)).to(q.dtype))
    networks.attend = attend


class WholeThirds(nn.Module):
    """The layer's rows are those of all heads' q, then k, then v; its result has each head's side by side."""

    def __init__(self, layer, head_dim):
        super().__init__()
        self.weight, self.bias, self.head_dim = layer.weight, layer.bias, head_dim

    def forward(self, x):
        thirds = nn.functional.linear(x, self.weight, self.bias).unflatten(-1, (3, -1, self.head_dim))
        return thirds.transpose(-3, -2).flatten(-3)


class FromZero(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.weight = table.weight

    def forward(self, positions):
        return nn.functional.embedding(positions - 2, self.weight)


def as_planned(network):
    for module in network.modules():
        if isinstance(module, decoders.NeoxAttention):
            module.query_key_value = WholeThirds(module.query_key_value, module.shape.head_dim)
        elif isinstance(module, decoders.Opt):
            module.embed_positions = FromZero(module.embed_positions)


def apply(entries, network):
    """entries: of the network file."""
    as_planned(network)
    if entries.get("bias") == "no":
        drop_biases(network)
    if entries.get("positions") == "alibi":
        use_alibi(network)
    return network
