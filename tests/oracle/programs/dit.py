"""A small diffusion transformer: blocks whose norms are shifted, scaled and gated by what is made of the time."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def modulate(x, shift, scale):
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class DitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1 = nn.LayerNorm(width, elementwise_affine=False)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm_2 = nn.LayerNorm(width, elementwise_affine=False)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def attend(self, x):
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=2))
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    def forward(self, x, condition):
        shift_1, scale_1, gate_1, shift_2, scale_2, gate_2 = self.modulation(condition).chunk(6, dim=1)
        x = x + gate_1.unsqueeze(1) * self.attend(modulate(self.norm_1(x), shift_1, scale_1))
        return x + gate_2.unsqueeze(1) * self.mlp(modulate(self.norm_2(x), shift_2, scale_2))


class Dit(nn.Module):
    def __init__(self, width=64, heads=4, layers=2, patch=2, side=8, channels=4, classes=10):
        super().__init__()
        self.width, self.patch, self.side, self.channels = width, patch, side, channels
        self.embed = nn.Conv2d(channels, width, patch, patch)
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.label = nn.Embedding(classes, width)
        self.register_buffer("positions", torch.randn(1, (side // patch) ** 2, width))
        self.layers = nn.ModuleList(DitBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 2 * width))
        self.out = nn.Linear(width, patch * patch * channels)

    def embed_time(self, times):
        half = self.width // 2
        frequencies = torch.exp(-math.log(10000.0) * torch.arange(half, device=times.device) / half)
        angles = times[:, None].float() * frequencies[None]
        waves = torch.cat((angles.cos(), angles.sin()), dim=-1)
        return self.time(waves.to(self.label.weight.dtype))

    def forward(self, images, times, labels):
        x = self.embed(images).flatten(2).transpose(1, 2) + self.positions.to(images.dtype)
        condition = self.embed_time(times) + self.label(labels)
        for layer in self.layers:
            x = layer(x, condition)
        shift, scale = self.modulation(condition).chunk(2, dim=1)
        x = self.out(modulate(self.norm(x), shift, scale))
        grid = self.side // self.patch
        x = x.view(-1, grid, grid, self.patch, self.patch, self.channels)
        return x.permute(0, 5, 1, 3, 2, 4).reshape(-1, self.channels, self.side, self.side)


def model():
    return Dit()


def batch(n):
    noise = torch.randn(n, 4, 8, 8)
    return torch.randn(n, 4, 8, 8), torch.randint(1000, (n,)), torch.randint(10, (n,)), noise


def loss(model, images, times, labels, noise):
    return F.mse_loss(model(images, times, labels).float(), noise)
