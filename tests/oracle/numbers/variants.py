"""What network files know and the recorder's networks do not: no biases at all, and ALiBi for positions.

ALiBi (Press et al., 2022) as MPT has it: attention adds slope * (key - query) to each scaled score, head by head."""

import math

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


def apply(entries, network):
    """entries: of the network file."""
    if entries.get("bias") == "no":
        drop_biases(network)
    if entries.get("positions") == "alibi":
        use_alibi(network)
    return network
