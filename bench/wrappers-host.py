#!/usr/bin/env python3
"""What PyTorch's host thread pays for Python around plain modules: layers that ranks share (DTensor), checkpoints, adapters
(PEFT), transformers' own blocks, autocast, a Trainer's step.

    python3 tests/oracle/pretend-cuda/run bench/wrappers-host.py --device cuda [PART...]
    OMP_NUM_THREADS=1 python3 bench/wrappers-host.py [PART...]

By hand, with torch 2.13, and for the later parts transformers and peft; no GPU. Each line is a thing with and without what is
around it, run by turns on tensors of a few KB: the host's own time of forward and of backward, the least of many, beside the
kernels that were launched meanwhile (on the pretended GPU; ../tests/oracle/pretend-cuda). Ranks that share layers are 8 of a
fake process group."""

import argparse
import contextlib
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.checkpoint import checkpoint

from pretended_launches import launch_counter

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "oracle", "recorder"))
import networks  # noqa: E402
import tensor_parallel  # noqa: E402
from building_blocks import Shape  # noqa: E402

WIDTH, TOKENS = 64, 16


class Measured:
    """Least times of forward and backward of what makes a tensor of a tensor, and their launches."""

    def __init__(self, function):
        self.function, self.us, self.launches = function, [float("inf")] * 2, [0] * 2

    def once(self, settings, count):
        x = torch.zeros(1, TOKENS, WIDTH, device=settings.device, requires_grad=True)
        marks = [(time.process_time(), settings.launches())]
        y = self.function(x)
        marks.append((time.process_time(), settings.launches()))
        total = (y.to_local() if hasattr(y, "to_local") else y).sum()
        marks.append((time.process_time(), settings.launches()))
        total.backward()
        marks.append((time.process_time(), settings.launches()))
        if count:
            for i, at in enumerate((0, 2)):
                self.us[i] = min(self.us[i], 1e6 * (marks[at + 1][0] - marks[at][0]))
                self.launches[i] = marks[at + 1][1] - marks[at][1]


def by_turns(functions, settings):
    measured = {name: Measured(function) for name, function in functions.items()}
    for i in range(settings.repeats + 4):  # the first set up
        for one in measured.values():
            one.once(settings, False)  # caches are warm, as where such blocks follow each other
            one.once(settings, i >= 4)
    return measured


def say(what, one, other=None):
    """What one takes; beyond the other, if there is one."""
    zero = other or Measured(None)
    us = [a - (b if other else 0) for a, b in zip(one.us, zero.us)]
    launches = [a - b for a, b in zip(one.launches, zero.launches)]
    print("%-46s forward %7.1f us %4d launches, backward %7.1f us %4d launches"
          % (what, us[0], launches[0], us[1], launches[1]), flush=True)
    return us


PLAIN_CHECKPOINT = {"use_reentrant": False, "preserve_rng_state": False}


def say_checkpoint(what, one, once):
    """Beyond forward, once more, and backward."""
    print("%-66s forward %7.1f us, backward %7.1f us, around %d launches" % (
        what, one.us[0] - once.us[0], one.us[1] - once.us[1] - once.us[0], once.launches[0]), flush=True)


def own_block(kind, settings, mesh=None, rms_norm="kernel"):
    """A block of the recorder's network; with a mesh, shared as torchtitan shares it."""
    tokens = TOKENS * (mesh.size() if mesh else 1)
    network = networks.make_network(Shape(kind=kind, layers=1, width=WIDTH, heads=8, ffn=2 * WIDTH, vocab=96, seq=tokens,
                                          rms_norm=rms_norm)).to(settings.device)
    block, given = network.layers[0], []
    hook = block.register_forward_pre_hook(lambda module, inputs: given.extend(inputs[1:]))
    rows = torch.zeros(1, tokens, dtype=torch.long, device=settings.device)
    network(rows, rows)  # which makes rotary tables
    hook.remove()
    if mesh:
        tensor_parallel.share_layers(network, mesh, argparse.Namespace(
            sequence_parallel=None, tensor_plan="torchtitan", loss_parallel=True, float8=None))
    return lambda x: block(x, *given)


# ---- layers that ranks share ---------------------------------------------------------------------

class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return nn.functional.rms_norm(x, (WIDTH,), self.weight, 1e-6)


class Layers(nn.Module):
    """Some layers side by side, and one of their sum."""

    def __init__(self, n):
        super().__init__()
        self.beside = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(n))
        self.down = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        y = self.beside[0](x)
        for layer in self.beside[1:]:
            y = y + layer(x)
        return self.down(y)


def share(layers, mesh):
    """As torchtitan shares attention and hidden layers."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, PrepareModuleInput, RowwiseParallel, parallelize_module
    parallelize_module(layers, mesh, {"beside.*": ColwiseParallel(), "down": RowwiseParallel(output_layouts=Shard(1))})
    return parallelize_module(layers, mesh, PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)))


def shared(settings):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import SequenceParallel, parallelize_module
    from torch.testing._internal.distributed.fake_pg import FakeStore
    dist.init_process_group("fake", rank=0, world_size=8, store=FakeStore())
    mesh = init_device_mesh(settings.device, (8,))
    with torch.device(settings.device):
        functions = {("plain", n): Layers(n) for n in (1, 4)} | {("shared", n): share(Layers(n), mesh) for n in (1, 4)}
        functions |= {"norm": Norm(), "shared norm": parallelize_module(Norm(), mesh, SequenceParallel())}
    block, shared_block = own_block("llama", settings), own_block("llama", settings, mesh)
    functions |= {"block": block, "shared block": shared_block, "checkpoint": lambda x: checkpoint(shared_block, x, **PLAIN_CHECKPOINT)}
    measured = by_turns(functions, settings)
    few, many = (say("shared: %d layers, 2 collectives each way" % (n + 1), measured["shared", n], measured["plain", n])
                 for n in (1, 4))
    layer = [(b - a) / 3 for a, b in zip(few, many)]
    print("%-46s forward %7.1f us, backward %7.1f us" % ("shared: a layer", *layer))
    print("%-46s forward %7.1f us, backward %7.1f us" % ("shared: a collective", *((a - 2 * b) / 2 for a, b in zip(few, layer))))
    say("shared: a norm", measured["shared norm"], measured["norm"])
    say("shared: a block of Llama", measured["shared block"], measured["block"])
    say_checkpoint("shared: a checkpoint of that block", measured["checkpoint"], measured["shared block"])


# ---- checkpoints -------------------------------------------------------------------------------

def checkpoints(settings):
    from building_blocks import selective_policy
    ways = {"not reentrant": PLAIN_CHECKPOINT, "not reentrant, random state kept": {"use_reentrant": False},
            "reentrant, random state kept": {"use_reentrant": True},
            "selective": {**PLAIN_CHECKPOINT, "context_fn": lambda: selective_policy(False, None)}}
    blocks = {"GPT": own_block("gpt", settings), "Llama": own_block("llama", settings),
              "Llama, its norms of ops": own_block("llama", settings, rms_norm="ops")}
    for n in (2, 12):
        layers = nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(n)))
        blocks["%d linear layers" % n] = layers.to(settings.device)
    for of, block in blocks.items():
        functions = {name: lambda x, options=options: checkpoint(block, x, **options) for name, options in ways.items()}
        measured = by_turns({"": block, **functions}, settings)
        once = measured.pop("")
        for name, one in measured.items():
            say_checkpoint("checkpoint, %s: %s" % (name, of), one, once)


# ---- adapters, transformers, autocast --------------------------------------------------------------

def adapters(settings):
    import peft
    functions = {}
    for name, dropout in (("plain", None), ("adapter", 0.0), ("adapter with dropout", 0.05)):
        layer = nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False)).to(settings.device)
        if dropout is not None:
            layer = peft.inject_adapter_in_model(peft.LoraConfig(r=8, lora_dropout=dropout, target_modules=["0"]), layer)
        functions[name] = layer.requires_grad_(False) if dropout is None else layer.train()
    measured = by_turns(functions, settings)
    for name in list(functions)[1:]:
        say("PEFT: " + name, measured[name], measured["plain"])


def transformers(settings):
    from transformers import AutoConfig, AutoModelForCausalLM
    config = AutoConfig.for_model("llama", hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=1, vocab_size=96,
                                  num_attention_heads=8, num_key_value_heads=8, head_dim=WIDTH // 8)
    network = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").to(settings.device).train()
    positions = torch.arange(TOKENS, device=settings.device)[None]
    block = network.model.layers[0]

    def theirs(x):
        return block(x, position_embeddings=tables, position_ids=positions, attention_mask=None)

    def under_autocast(function):
        def run(x):
            with torch.autocast(settings.device, torch.bfloat16):
                return function(x)
        return run

    tables = network.model.rotary_emb(torch.zeros(1, TOKENS, WIDTH, device=settings.device), positions)
    own = own_block("llama", settings, rms_norm="ops")
    measured = by_turns({"own": own, "transformers": theirs, "autocast": under_autocast(own)}, settings)
    say("a block of Llama, plain", measured["own"])
    say("transformers' beyond it", measured["transformers"], measured["own"])
    say("autocast beyond it", measured["autocast"], measured["own"])


# ---- a Trainer's step --------------------------------------------------------------------------

def trainer(settings):
    """A step of Trainer (fused AdamW, clipping) on the CPU, less forward, backward, clipping and the optimizer's step by hand."""
    from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainerCallback, TrainingArguments
    config = AutoConfig.for_model("llama", hidden_size=WIDTH, intermediate_size=WIDTH, num_hidden_layers=1, vocab_size=96,
                                  num_attention_heads=4, num_key_value_heads=4, head_dim=16, use_cache=False)
    network = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").train()
    tokens = torch.zeros(TOKENS, dtype=torch.long)
    rows = [{"input_ids": tokens, "labels": tokens}] * 1024

    class Clock(TrainerCallback):
        at, least = None, float("inf")

        def on_step_begin(self, *_, **__):
            now = time.process_time()
            self.least = min(self.least, now - self.at) if self.at else self.least
            self.at = now

    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, max_steps=settings.repeats, per_device_train_batch_size=1, report_to=[], use_cpu=True,
                                      logging_steps=1, save_strategy="no", disable_tqdm=True, optim="adamw_torch_fused")
        with contextlib.redirect_stdout(None):
            Trainer(network, arguments, train_dataset=rows, callbacks=[clock]).train()
    optimizer, bare = torch.optim.AdamW(network.parameters(), fused=True), float("inf")
    for _ in range(settings.repeats):
        began = time.process_time()
        network(input_ids=tokens[None], labels=tokens[None])["loss"].backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        bare = min(bare, time.process_time() - began)
    print("a step of Trainer that logs, beyond its work %8.1f us" % (1e6 * (clock.least - bare)), flush=True)


PARTS = {part.__name__: part for part in (shared, checkpoints, adapters, transformers, trainer)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("parts", nargs="*", metavar="PART", default=list(PARTS), help=", ".join(PARTS) + "; all by default")
    p.add_argument("--repeats", type=int, default=400, help="of which the quickest counts")
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cuda: as tests/oracle/pretend-cuda pretends it")
    settings = p.parse_args()
    settings.launches = launch_counter(settings.device)
    torch.set_num_threads(1)
    torch.autograd.set_multithreading_enabled(False)  # backward's time is this thread's
    print("host alone, torch %s" % torch.__version__)
    for part in settings.parts:
        PARTS[part](settings)


main()
