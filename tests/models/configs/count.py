"""How many parameters transformers makes of each config.json here, on tensors without memory.

    python count.py > parameters      # transformers 5.23 or 5.24, torch 2.13

The files are the published ones' fields that a network is made of."""

import glob
import json
import os

import torch
from transformers import AutoConfig, AutoModelForCausalLM

CODE_OF = {"kimi_k2": "deepseek_v3"}  # whose published code is this class's

HERE = os.path.dirname(os.path.abspath(__file__))
for path in sorted(glob.glob(os.path.join(HERE, "*.json"))):
    with open(path) as file:
        fields = json.load(file)
    model_type = fields.pop("model_type")
    config = AutoConfig.for_model(CODE_OF.get(model_type, model_type), **fields)
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(config)
    count = sum(parameter.numel() for parameter in network.parameters())
    print(count, os.path.basename(path).removesuffix(".json"), flush=True)
