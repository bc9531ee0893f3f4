"""What Transformer Engine's Linear does under fp8_autocast (DelayedScaling, HYBRID, 16 passes, the largest), emulated.

    python delayed.py golden/delayed

Transformer Engine runs on GPUs alone; this follows its source (0.10: pytorch/module/linear.py and base.py, fp8.py) with
PyTorch's own casts to float8 on a CPU. Two ranks of FSDP1 in bf16, gradients reduced in fp32 after each of three passes,
are played one after the other: a step of 12 sequences. Writes the first weights, losses of 20 steps of AdamW, and the
first step's gradients, in bf16 (gradients) and with the layers of blocks in float8 (delayed), for check.c."""

import copy
import json
import sys

import torch
from torch import nn

import train
import weight_files

RANKS, PASSES, SEQUENCES, STEPS, HISTORY = 2, 3, 2, 20, 16
LARGEST = {torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0}


class Delay:
    """Of one tensor: its largest numbers in the last passes, and the scale that these give the next."""

    def __init__(self, dtype):
        self.dtype, self.scale, self.history, self.found = dtype, 1.0, [0.0] * HISTORY, 0.0

    def begin_pass(self):
        self.history = self.history[1:] + [self.found]
        self.found = 0.0
        largest = torch.tensor(max(self.history))
        if largest > 0:
            exponent = torch.floor(torch.log2(LARGEST[self.dtype] / largest))
            self.scale = float(torch.pow(2.0, exponent))

    def cast(self, x):
        """As the products take it, each number times the scale's inverse."""
        self.found = max(self.found, float(x.detach().abs().max()))
        most = LARGEST[self.dtype]
        return (x.float() * self.scale).clamp(-most, most).to(self.dtype).float() / self.scale


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, layer):
        shape = x.shape
        x8, w8 = layer.x.cast(x.reshape(-1, shape[-1])), layer.w.cast(weight)
        ctx.save_for_backward(x8, w8)
        ctx.layer, ctx.shape = layer, shape
        return (x8 @ w8.t() + bias.float()).to(torch.bfloat16).reshape(*shape[:-1], -1)

    @staticmethod
    def backward(ctx, dy):
        x8, w8 = ctx.saved_tensors
        dy = dy.reshape(-1, dy.shape[-1])
        dy8 = ctx.layer.dy.cast(dy)
        dx, dw = (dy8 @ w8).to(torch.bfloat16), (dy8.t() @ x8).to(torch.bfloat16)
        return dx.reshape(ctx.shape), dw, dy.float().sum(0).to(torch.bfloat16), None


class Delays:
    def __init__(self):
        self.x, self.w = Delay(torch.float8_e4m3fn), Delay(torch.float8_e4m3fn)
        self.dy = Delay(torch.float8_e5m2)


class Linear(nn.Module):
    def __init__(self, linear, delays):
        super().__init__()
        self.weight, self.bias, self.delays = linear.weight, linear.bias, delays

    def forward(self, x):
        return Product.apply(x, self.weight, self.bias, self.delays)


def layers_of(network):
    return [(parent, name, module) for block in network.modules() if isinstance(block, network.block_classes)
            for parent in block.modules() for name, module in parent.named_children() if isinstance(module, nn.Linear)]


def gradients_of(network, delays, batches):
    """Of each parameter over all ranks and passes, in fp32; and the loss."""
    sums = {name: torch.zeros_like(p) for name, p in network.named_parameters()}
    total = 0.0
    for of_ranks in batches:
        for delay in delays:
            for one in (delay.x, delay.w, delay.dy):
                one.begin_pass()
        for tokens, targets in of_ranks:
            low = copy.deepcopy(network).to(torch.bfloat16)
            for (parent, name, module), delay in zip(layers_of(low), delays):
                setattr(parent, name, Linear(module, delay))
            loss = low(tokens, targets)
            (loss / PASSES).backward()
            total += float(loss.detach()) / RANKS / PASSES
            for name, p in low.named_parameters():
                sums[name] += p.grad.float() / RANKS
    return sums, total


def batches_of(tokens, shape, step):
    """By pass, of each rank."""
    first = step * RANKS * PASSES * SEQUENCES
    return [[train.batch_of(tokens, shape, first + (i * RANKS + rank) * SEQUENCES, SEQUENCES) for rank in range(RANKS)]
            for i in range(PASSES)]


def run(folder, network, shape, tokens, in_float8, to):
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    delays = [Delays() for _ in layers_of(network)] if in_float8 else []
    losses = []
    for step in range(STEPS):
        gradients, loss = gradients_of(network, delays, batches_of(tokens, shape, step))
        for name, p in network.named_parameters():
            p.grad = gradients[name]
        if step == 0:
            weight_files.write(f"{folder}/{to}.safetensors", gradients)
        optimizer.step()
        losses.append(loss)
    return losses


def main():
    folder = sys.argv[1]
    torch.set_num_threads(1)
    shape, entries = train.read_shape(f"{folder}/network.ini")
    torch.manual_seed(1)
    network = train.variants.apply(entries, train.networks.make_network(shape))
    with torch.no_grad():
        layers_of(network)[-3][2].weight.mul_(2 ** -12)  # too small for e4m3, unless it is scaled
    train.make_weights(network, 1, f"{folder}/weights.safetensors")
    with open(f"{folder}/../tokens.bin", "rb") as file:
        tokens = torch.tensor(list(file.read()))
    losses = {name: run(folder, copy.deepcopy(network), shape, tokens, name == "delayed", to)
              for name, to in (("bf16", "gradients"), ("delayed", "delayed"))}
    with open(f"{folder}/losses.json", "w") as file:
        json.dump(losses, file, indent=1)
        file.write("\n")


main()
