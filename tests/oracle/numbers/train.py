"""Train a network with PyTorch on given weights and tokens; print the losses as JSON, keep the gradients.

Alone, one process trains on the whole batch. Under torchrun, FSDP2 (fully_shard) over gloo does, each
rank on its share of the batch: torchrun --nproc-per-node 2 train.py ..."""

import argparse
import configparser
import json
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "recorder"))
import float8  # noqa: E402
import muon  # noqa: E402
import networks  # noqa: E402
import weight_files  # noqa: E402
import variants  # noqa: E402
from building_blocks import Shape  # noqa: E402

NUMBERS = ("layers", "width", "heads", "kv_heads", "head_dim", "ffn", "vocab", "seq", "target_seq",
           "experts", "experts_per_token", "expert_ffn", "shared_ffn", "dense_layers", "expert_groups",
           "groups_per_token", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
           "global_every", "window")


def read_options():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("network", help="a network file or a config.json of transformers' own modules, as foreshard takes it")
    p.add_argument("--weights", required=True, help="safetensors file to begin with; made first with --seed")
    p.add_argument("--data", required=True, help="file whose bytes are the tokens")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--batch", type=int, default=12, help="sequences a step, of all ranks together")
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, help="make the weights anew")
    p.add_argument("--bf16", action="store_true", help="FSDP2's mixed precision: computes in bf16, reduces in fp32")
    p.add_argument("--float8", choices=["tensorwise", "rowwise", "mxfp8"],
                   help="torchao's recipe for the linear layers of blocks")
    p.add_argument("--float8-gather", choices=["yes", "precomputed"], help="of tensorwise: what FSDP2 gathers")
    p.add_argument("--muon-lr", type=float, help="Muon at this rate for the blocks' matrices, beside AdamW")
    p.add_argument("--eight-bit", action="store_true", help="torchao's AdamW8bit, as it is before it is compiled")
    p.add_argument("--gradients", help="write the first step's gradients to this safetensors file")
    return p.parse_args()


def read_shape(path):
    ini = configparser.ConfigParser(comment_prefixes="#")
    ini.read(path)
    entries = dict(ini["network"])
    family = entries.pop("family")
    if family == "mlp" or family not in networks.KINDS:
        raise SystemExit(f"{path}: there is no {family} in recorder/networks.py to train on tokens")
    fields = {"kind": family, **({"gelu": "none"} if family == "neox" else {})}
    for key, value in entries.items():
        if key in NUMBERS:
            fields[key] = int(value)
        elif key == "no_rope_every":
            fields["unturned_every"] = int(value)  # as the recorder calls it
        elif key in ("bias", "positions", "code"):
            pass  # variants.py, made_by_transformers
        elif key in ("tied", "gated", "qkv_bias", "route_norm", "route_bias"):
            fields[key] = value == "yes"
        elif key == "gelu":
            fields[key] = {"tanh": "tanh", "erf": "none", "ops": "ops"}[value]
        elif key == "attention":
            fields[key] = {"math": "math-eager", "math-fp32": "math-eager", "kernel": "flash"}[value]
        elif key in ("qk_norm", "norm_at", "block", "qkv", "rope", "gate_up", "gate", "norm_weight", "score"):
            fields[key] = value
        elif key in ("rope_base", "local_rope_base", "rotary_share", "dropout") or key.endswith("_scale"):
            fields[key] = float(value)
        elif key == "loss" and value == "chunked":
            fields[key] = value
        elif key == "loss":
            pass  # other kernels, the same numbers
        else:
            raise SystemExit(f"{path}: '{key}' is not known here")
    return Shape(**fields), entries


def made_by_transformers(shape):
    """A family llama of `code = transformers`: their own modules, called as a network of the recorder's is."""
    from transformers import AutoConfig, AutoModelForCausalLM

    normed = shape.qk_norm == "head"
    kind, own = "llama", {"intermediate_size": shape.ffn}
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    if shape.norm_weight == "from-one":
        gelu = {"gelu-tanh": "gelu_pytorch_tanh", "gelu-erf": "gelu"}[shape.gate]
        kind, own = "gemma", {**own, "pad_token_id": None, "head_dim": shape.head_dim or shape.width // shape.heads, "hidden_act": gelu}
        if normed:
            kind, own = "gemma3_text", {**own, "hidden_activation": gelu, "sliding_window": shape.window or shape.seq + 1,
                                        "sliding_window_pattern": shape.global_every,
                                        "query_pre_attn_scalar": round(shape.attention_scale ** -2)}
            rope = {"full_attention": rope, "sliding_attention": {**rope, "rope_theta": shape.local_rope_base}}
    elif shape.norm_at == "after":
        kind, own = "exaone4", {**own, "sliding_window": None, "layer_types": ["full_attention"] * shape.layers}
    elif shape.window:
        kind, own = "mistral", {**own, "sliding_window": shape.window}
    if shape.experts and normed:
        kind, own = "qwen3_moe", {"num_experts": shape.experts, "moe_intermediate_size": shape.expert_ffn,
                                  "norm_topk_prob": shape.route_norm, "head_dim": shape.width // shape.heads}
    elif shape.experts:
        kind, own = "mixtral", {"num_local_experts": shape.experts, "intermediate_size": shape.expert_ffn}
    elif shape.unturned_every:
        kind, own = "smollm3", {**own, "no_rope_layer_interval": shape.unturned_every, "pad_token_id": None}
    elif shape.gate_up == "joined":
        kind, own = "phi3", {**own, "pad_token_id": None}
    elif shape.residual_scale:
        kind, own = "granite", {**own, "embedding_multiplier": shape.embed_scale, "logits_scaling": 1 / shape.logits_scale,
                                "attention_multiplier": shape.attention_scale,
                                "residual_multiplier": shape.residual_scale}
    if shape.experts:
        own["num_experts_per_tok"] = shape.experts_per_token
    config = AutoConfig.for_model(kind, hidden_size=shape.width, num_hidden_layers=shape.layers,
                                  num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads,
                                  vocab_size=shape.vocab, max_position_embeddings=shape.seq, rms_norm_eps=1e-5,
                                  rope_parameters=rope,
                                  use_cache=False, tie_word_embeddings=shape.tied, **own)
    network = AutoModelForCausalLM.from_config(config)
    network.block_classes = (type(network.model.layers[0]),)
    return network


def read_config(path):
    """Of a config.json: what it is trained on, and transformers' own modules of it. The embedding's row of pad_token_id, which
    gets no gradient there, is like the others."""
    from transformers import AutoConfig, AutoModelForCausalLM

    with open(path) as file:
        fields = json.load(file)
    config = AutoConfig.for_model(**{**fields, "use_cache": False, "pad_token_id": None})
    network = AutoModelForCausalLM.from_config(config)
    network.block_classes = (type(network.model.layers[0]),)
    shape = Shape(kind="transformers", layers=config.num_hidden_layers, width=config.hidden_size, vocab=config.vocab_size,
                  seq=config.max_position_embeddings)
    return shape, {"code": "transformers"}, network


def read_network(path):
    if path.endswith(".json"):
        return read_config(path)
    shape, entries = read_shape(path)
    if entries.get("code") == "transformers":
        return shape, entries, made_by_transformers(shape)
    return shape, entries, variants.apply(entries, networks.make_network(shape))


def loss_of(network, tokens, targets, entries):
    if entries.get("code") == "transformers":
        return network(input_ids=tokens, labels=tokens).loss  # it shifts them itself
    return network(tokens, targets)


def make_weights(network, seed, path):
    """PyTorch's own start, with norms and biases moved off their ones and zeros."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    weight_files.write(path, dict(network.named_parameters()))


def load_weights(network, path):
    tensors = weight_files.read(path)
    parameters = dict(network.named_parameters())
    if tensors.keys() != parameters.keys():
        raise SystemExit(f"{path} is not of this network: {sorted(tensors.keys() ^ parameters.keys())}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(tensors[name])


def shard(network, world, bf16):
    mesh = init_device_mesh("cpu", (world,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if bf16 \
        else MixedPrecisionPolicy()
    for module in network.modules():
        if isinstance(module, network.block_classes):
            fully_shard(module, mesh=mesh, mp_policy=policy)
    fully_shard(network, mesh=mesh, mp_policy=policy)
    for module in network.modules():
        if isinstance(module, FSDPModule):
            module.set_force_sum_reduction_for_comms(True)  # gloo has no averaging


def sample(tokens, shape, number):
    targets = shape.target_seq or shape.seq
    longest = max(shape.seq, targets)
    first = number % ((len(tokens) - 1) // longest) * longest
    return tokens[first:first + shape.seq], tokens[first + 1:first + targets + 1]


def batch_of(tokens, shape, first, n):
    pairs = [sample(tokens, shape, first + i) for i in range(n)]
    return torch.stack([x for x, _ in pairs]), torch.stack([y for _, y in pairs])


def gradients_of(network):
    whole = {}
    for name, parameter in network.named_parameters():
        gradient = parameter.grad
        whole[name] = gradient.full_tensor() if hasattr(gradient, "full_tensor") else gradient.clone()
    return whole


def mean_over_ranks(loss, world):
    total = loss.detach().double()
    if world > 1:
        dist.all_reduce(total)
    return float(total) / world


def main():
    options = read_options()
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    torch.set_num_threads(1)
    if world > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(options.seed or 0)
    shape, entries, network = read_network(options.network)
    if options.seed is not None:
        make_weights(network, options.seed, options.weights)
    load_weights(network, options.weights)
    float8.convert(network, options)
    if world > 1:
        shard(network, world, options.bf16)
    optimizer = torch.optim.AdamW(network.parameters(), lr=options.lr)
    if options.muon_lr is not None:
        optimizer = muon.beside_adamw(network, {"lr": options.muon_lr}, {"lr": options.lr})
    if options.eight_bit:
        from torchao.optim import AdamW8bit
        torch.compiler.set_stance("force_eager")
        optimizer = AdamW8bit(network.parameters(), lr=options.lr)
    with open(options.data, "rb") as file:
        tokens = torch.tensor(list(file.read()))
    share, losses = options.batch // world, []
    for step in range(options.steps):
        loss = loss_of(network, *batch_of(tokens, shape, step * options.batch + rank * share, share), entries)
        optimizer.zero_grad()
        loss.backward()
        if step == 0 and options.gradients:
            gradients = gradients_of(network)
            if rank == 0:
                weight_files.write(options.gradients, gradients)
        optimizer.step()
        float8.after_step(network, options)
        losses.append(mean_over_ranks(loss, world))
    if rank == 0:
        print(json.dumps(losses), flush=True)
    if world > 1:
        dist.barrier()
        os._exit(0)  # gloo's threads now and then abort where Python ends by itself


if __name__ == "__main__":
    main()
