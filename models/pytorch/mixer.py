import torch.nn.functional as F
from torch import nn, rand, randint


class Mlp(nn.Sequential):
    def __init__(self, width, inner):
        super().__init__(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))


class MixerBlock(nn.Module):
    def __init__(self, patches, width):
        super().__init__()
        self.norm_1, self.mix = nn.LayerNorm(width), Mlp(patches, width // 2)
        self.norm_2, self.mlp = nn.LayerNorm(width), Mlp(width, 4 * width)

    def forward(self, x):
        x = x + self.mix(self.norm_1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp(self.norm_2(x))


class Mixer(nn.Module):
    def __init__(self, width=1024, layers=24, side=224, patch=16, classes=1000):
        super().__init__()
        self.embed = nn.Conv2d(3, width, patch, patch)
        self.layers = nn.ModuleList(MixerBlock((side // patch) ** 2, width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images):
        x = self.embed(images).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


def model():
    return Mixer()


def batch(n):
    return rand(n, 3, 224, 224), randint(1000, (n,))


def loss(model, images, labels):
    return F.cross_entropy(model(images), labels)
