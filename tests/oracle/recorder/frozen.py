"""Fine-tuning: modules that are not trained, and LoRA adapters beside linear layers.

The adapter's forward is PEFT's, op by op (peft/tuners/lora/layer.py, Linear.forward): the layer's own
product, the input in the adapter's dtype, dropout, both products, the factor, the sum, and its rounding
back to the layer's dtype. Its weights start as there: A at random, B zero."""

import math
import re

import torch
from torch import nn


class LoraLinear(nn.Module):
    def __init__(self, layer, rank, alpha, dropout, dtype, device):
        super().__init__()
        self.base_layer = layer
        self.lora_dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        make = dict(bias=False, dtype=dtype, device=device)
        self.lora_A = nn.Linear(layer.in_features, rank, **make)
        self.lora_B = nn.Linear(rank, layer.out_features, **make)
        self.scaling = alpha / rank
        nn.init.kaiming_uniform_(self.lora_A.weight, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B.weight)

    def in_dtype_of_adapter(self, x):
        dtype = self.lora_A.weight.dtype
        return x if x.dtype == dtype else x.to(dtype)

    def forward(self, x):
        result = self.base_layer(x)
        dtype = result.dtype
        x = self.in_dtype_of_adapter(x)
        result = result + self.lora_B(self.lora_A(self.lora_dropout(x))) * self.scaling
        result = result.to(dtype)
        return result


class LoraLinear4bit(LoraLinear):
    """peft/tuners/lora/bnb.py, Linear4bit.forward: what the layer gives is copied, and the adapter's result is cast, not the sum."""

    def forward(self, x):
        result = self.base_layer(x)
        result = result.clone()
        requires_conversion = not torch.is_autocast_enabled(x.device.type)
        if requires_conversion:
            expected_dtype = result.dtype
            x = self.in_dtype_of_adapter(x)
        output = self.lora_B(self.lora_A(self.lora_dropout(x))) * self.scaling
        if requires_conversion:
            output = output.to(expected_dtype)
        result = result + output
        return result


def add_adapters(network, options, device):
    """Beside the linear layers of blocks whose whole names match; nothing else is trained then."""
    if not options.lora_rank:
        return
    network.requires_grad_(False)
    dtype = torch.float32 if options.lora_fp32 else None
    blocks = [m for m in network.modules() if isinstance(m, network.block_classes)]
    inside = {id(m) for block in blocks for m in block.modules()}
    chosen = [(name, m) for name, m in network.named_modules()
              if isinstance(m, nn.Linear) and id(m) in inside and re.fullmatch(options.lora_on, name)]
    for name, layer in chosen:
        parent, _, own = name.rpartition(".")
        of_class = LoraLinear4bit if options.lora_base else LoraLinear
        setattr(network.get_submodule(parent), own,
                of_class(layer, options.lora_rank, options.lora_alpha, options.lora_dropout, dtype, device))


def freeze(network, options):
    """Modules whose whole name or class matches, and all that is in them."""
    if not options.freeze:
        return
    for name, module in network.named_modules():
        if re.fullmatch(options.freeze, name) or re.fullmatch(options.freeze, type(module).__name__):
            module.requires_grad_(False)
