"""The command line of the recorders: the same words for the pretended GPU here and a real one (../gpu)."""

import argparse

import networks
import parallel
import program_network
import training_loop
import transformers_network
from building_blocks import Shape


def add_training_options(p):
    """Everything about the run that is trained; how it is recorded is each recorder's own."""
    net = p.add_argument_group("network")
    net.add_argument("--transformers", metavar="CONFIG.JSON", help="transformers' own modules, instead of a preset")
    net.add_argument("--program", metavar="FILE.PY", help="a network of its own, instead of a preset: program_network.py")
    net.add_argument("--preset", choices=networks.PRESETS, default="gpt-toy")
    for name in ("layers", "width", "heads", "kv-heads", "head-dim", "ffn", "vocab", "seq", "experts", "experts-per-token",
                 "expert-ffn", "shared-ffn", "dense-layers", "expert-groups", "groups-per-token", "q-lora-rank", "kv-lora-rank",
                 "qk-nope-head-dim", "qk-rope-head-dim", "v-head-dim", "unturned-every", "global-every", "window", "document",
                 "target-seq"):
        net.add_argument("--" + name, type=int, help="replaces the preset's value")
    net.add_argument("--local-rope-base", type=float, help="llama: of blocks that are not each --global-every-th")
    net.add_argument("--norm-weight", choices=("plain", "from-one"), help="llama: RMSNorm's, as it is or from one on (Gemma)")
    net.add_argument("--gate", choices=("silu", "gelu-tanh", "gelu-erf"), help="llama: what opens the hidden layer")
    for name in ("embed-scale", "attention-scale", "residual-scale", "logits-scale"):
        net.add_argument("--" + name, type=float, help="llama: Granite's multipliers")
    net.add_argument("--gate-up", choices=("apart", "joined"), help="llama: the hidden layer's two by a layer each or by one")
    net.add_argument("--tied", action=argparse.BooleanOptionalAction, help="head shares the embedding's weight")
    net.add_argument("--attention", choices=("flash", "math-eager"))
    net.add_argument("--gelu", choices=("tanh", "none", "ops"), help="gpt: ops is tanh's, written out in Python")
    net.add_argument("--bias", action=argparse.BooleanOptionalAction, help="gpt: linear layers and norms have one")
    net.add_argument("--rms-norm", choices=("kernel", "ops"), help="llama, t5: one kernel, or written out in Python")
    net.add_argument("--rope", choices=("real", "complex", "partial"),
                     help="llama: complex turns pairs of fp32 as complex numbers; partial joins with what is not turned")
    net.add_argument("--loss", choices=("ops", "fp32-logits", "fp32", "kernel", "chunked"),
                     help="of logits.float(), made at the end of the network or for the loss, or compiled with it, by itself; "
                          "or with the head, in chunks of rows")
    net.add_argument("--loss-at", choices=("model", "loop"), help="made by the network's forward, or by the training loop")
    net.add_argument("--loss-in-place", action="store_true", default=None,
                     help="by a stand-in for Liger's and Unsloth's kernels, which write the gradient over what they are given")
    net.add_argument("--logits-shifted", action="store_true", default=None,
                     help="the loss is of a copy of the logits without each sequence's last token, as in transformers before 4.49")
    net.add_argument("--use-cache", action="store_true", default=None,
                     help="llama, --transformers: keys and values are returned, too")
    net.add_argument("--cache-copied", action="store_true", default=None,
                     help="with --use-cache, of --transformers: DynamicCache copies them, as it does since 4.56")
    net.add_argument("--logits-held", choices=training_loop.HELD,
                     help="by a variable of the loop, until backward or the next forward is through")
    net.add_argument("--qkv-bias", action="store_true", default=None, help="llama: q, k and v have one, as Qwen 2's")
    net.add_argument("--qkv", choices=("apart", "joined", "sliced"), help="llama: q, k and v by a layer each or by one")
    net.add_argument("--kv", choices=("grouped", "repeated"), help="llama: groups of heads for attention, or copies")
    net.add_argument("--qk-norm", choices=("none", "head", "width"), help="llama: RMSNorm of q and k")
    net.add_argument("--norm-at", choices=("before", "after", "both"), help="llama: the norms of attention and hidden layer")
    net.add_argument("--route-norm", action=argparse.BooleanOptionalAction, help="llama with experts: scores are divided by their sum")
    net.add_argument("--score", choices=("softmax", "sigmoid"), help="llama with experts: what makes scores")
    net.add_argument("--route-scale", type=float, help="llama with experts: what a token's scores are multiplied by")
    net.add_argument("--route-bias", action=argparse.BooleanOptionalAction, help="llama with experts: a balancing bias")
    net.add_argument("--routing", choices=("scores", "in-turn"), help="llama with experts: tokens go to experts by turns")
    net.add_argument("--rotary-share", type=float, help="neox, phi: of each head's numbers, those that are turned")
    net.add_argument("--block", choices=("parallel", "sequential"), help="neox: the hidden layer beside attention or behind it")
    net.add_argument("--gated", action="store_true", default=None, help="t5: gated GELU instead of ReLU")
    net.add_argument("--batch", type=int, default=1, help="sequences per rank and pass")
    net.add_argument("--model-dtype", choices=parallel.DTYPES, default="fp32", help="dtype the network is made in")
    net.add_argument("--dropout", type=float, help="gpt, t5: in every place where they have it")
    net.add_argument("--checkpointing", choices=("none", "inside", "outside", "parts"), default="none",
                     help="full activation checkpointing per block; inside: FSDP(checkpoint(block)); parts: of what is in a block, one by one")
    net.add_argument("--parts", metavar="NAME", help="of --checkpointing parts: only what has this name in each block (mlp)")
    net.add_argument("--reentrant", action="store_true", default=None, help="checkpoints with use_reentrant=True")
    net.add_argument("--selective", action="store_true", default=None,
                     help="checkpointing keeps attention's outputs and every other matrix product's")
    net.add_argument("--selective-scattered", action="store_true", default=None,
                     help="with --selective, and --tensor or --expert: what is scattered or sent is kept, too, and each largest number")
    net.add_argument("--selective-sends-again", action="store_true", default=None,
                     help="with --selective-scattered and --expert: what is sent is not kept, as in torchtitan's list for Qwen 3")
    net.add_argument("--early-stop", action=argparse.BooleanOptionalAction, default=True,
                     help="recomputation stops when all that was needed is there")
    net.add_argument("--autocast", choices=("bf16", "fp16"), help="forward and loss run under torch.autocast")
    net.add_argument("--float8", choices=("tensorwise", "rowwise", "mxfp8"), help="blocks' linear layers by torchao")
    net.add_argument("--float8-gather", choices=("yes", "precomputed"),
                     help="fsdp2, tensorwise: weights are gathered in float8; scales precomputed behind the step")
    tune = p.add_argument_group("fine-tuning")
    tune.add_argument("--freeze", metavar="REGEX", help="modules, by whole name or class, whose parameters are not trained")
    tune.add_argument("--lora-rank", type=int, default=0, help="LoRA adapters of this rank alone are trained")
    tune.add_argument("--lora-alpha", type=float, default=16.0)
    tune.add_argument("--lora-dropout", type=float, help="of A's input")
    tune.add_argument("--lora-on", metavar="REGEX", default=".*", help="beside these linear layers of blocks")
    tune.add_argument("--lora-fp32", action="store_true", help="adapters in fp32, whatever the network is made in")
    tune.add_argument("--lora-base", choices=("nf4", "fp4"), help="blocks' linear layers by bitsandbytes, in 4 bits")
    tune.add_argument("--lora-base-double", action="store_true", default=None, help="their scales in 8 bits")
    tune.add_argument("--lora-base-storage", choices=("uint8", *parallel.DTYPES), default="uint8", help="dtype that 4-bit numbers lie in")
    p.add_argument("--compile", action="store_true", help="each block by torch.compile")
    p.add_argument("--compile-network", action="store_true", help="all of the network by torch.compile")
    p.add_argument("--deterministic", action="store_true", default=None,
                   help="torch.use_deterministic_algorithms(True); which allocations it fills: fills.py")
    p.add_argument("--programs", metavar="FOLDER", help="with --compile: keep what Inductor writes there")
    par = p.add_argument_group("parallelism")
    par.add_argument("--mode", choices=("none", "ddp", "fsdp1", "fsdp2"), default="fsdp2")
    par.add_argument("--accelerate", action="store_true", default=None,
                     help="fsdp2, of --transformers: wrapped as accelerate does")
    par.add_argument("--wrap", default="block", metavar="HOW",
                     help="fsdp1, fsdp2, what is a unit: block, whole, linear, every=K (fsdp2), size=N or module=REGEX")
    par.add_argument("--wrap-ends", choices=("root", "own"), default="root", help="tables and head: units of their own?")
    par.add_argument("--world", type=int, default=8)
    par.add_argument("--rank", type=int, default=0)
    par.add_argument("--shard-size", type=int, help="ranks per shard group (hybrid sharding)")
    par.add_argument("--tensor", type=int, default=1, help="fsdp2, llama, gpt: ranks that share a layer, side by side in the world")
    par.add_argument("--tensor-plan", choices=("torchtitan", "ends-whole", "logits-whole"), default="torchtitan",
                     help="with --tensor: the embedding and the logits too; as KempnerForge has it; or, without --sequence-parallel, "
                          "the logits, which all get, but not the embedding, as transformers has it")
    par.add_argument("--sequence-parallel", action=argparse.BooleanOptionalAction, default=None,
                     help="with --tensor: between layers each rank has its part of each sequence (the default), or all of it")
    par.add_argument("--loss-parallel", action=argparse.BooleanOptionalAction, default=True,
                     help="with --tensor: logits stay apart, and so does the loss")
    par.add_argument("--async-tensor", action="store_true", default=None,
                     help="with --tensor and --compile: torch._inductor.config._micro_pipeline_tp")
    par.add_argument("--context", type=int, default=1, help="fsdp2: ranks that share a sequence, side by side in the world")
    par.add_argument("--rotate", choices=("allgather", "alltoall"), default="allgather",
                     help="with --context: how keys and values come to the others")
    par.add_argument("--expert", type=int, default=1,
                     help="fsdp2, llama with experts: ranks that share the experts, side by side in the world (expert parallel)")
    par.add_argument("--expert-overload", type=float,
                     help="with --expert: how many times its even share of rows this rank gets, in every block")
    par.add_argument("--pipeline", type=int, default=1, help="fsdp2, llama and gpt: stages that share the layers; --accumulate is microbatches")
    par.add_argument("--pipeline-schedule", choices=("gpipe", "1f1b", "interleaved-1f1b", "looped-bfs"), default="1f1b")
    par.add_argument("--pipeline-stages", type=int, default=1, help="of each rank, by turns of all ranks: with interleaved-1f1b")
    par.add_argument("--pipeline-split", choices=("torchtitan", "even"), default="torchtitan", help="how many blocks a stage has")
    par.add_argument("--param-dtype", choices=parallel.DTYPES, help="mixed precision: compute and gather dtype")
    par.add_argument("--reduce-dtype", choices=parallel.DTYPES, help="mixed precision: reduce dtype")
    par.add_argument("--strategy", default="FULL_SHARD", choices=(
        "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"), help="fsdp1")
    par.add_argument("--use-orig-params", action=argparse.BooleanOptionalAction, default=True, help="fsdp1")
    par.add_argument("--backward-prefetch", choices=("pre", "post", "none"), default="pre", help="fsdp1")
    par.add_argument("--forward-prefetch", action="store_true", help="fsdp1")
    par.add_argument("--limit-all-gathers", action=argparse.BooleanOptionalAction, default=True, help="fsdp1")
    par.add_argument("--reshard-after-forward", default="default", help="fsdp2: true, false, default or a number")
    par.add_argument("--fsdp2-backward-prefetch", action=argparse.BooleanOptionalAction, default=True)
    par.add_argument("--reshard-after-backward", choices=("always", "last"), default="always",
                     help="fsdp2: in each pass of a step, or in the last one only")
    par.add_argument("--last-backward", choices=("always", "last"), default="always",
                     help="fsdp2: which passes are told to be a step's last (set_is_last_backward)")
    par.add_argument("--output-dtype", choices=parallel.DTYPES, help="fsdp2: what each unit gives is cast to")
    par.add_argument("--cast-forward-inputs", action=argparse.BooleanOptionalAction, default=True, help="fsdp2")
    par.add_argument("--sync-module-states", action="store_true", help="fsdp1")
    par.add_argument("--reshard-last", action=argparse.BooleanOptionalAction, default=True,
                     help="fsdp2: the last block too is resharded after forward")
    par.add_argument("--fsdp2-forward-prefetch", type=int, default=0, help="explicitly, this many blocks ahead")
    par.add_argument("--cpu-offload", action="store_true",
                     help="fsdp1, fsdp2: shards, their gradients and the optimizer stay in the host's pinned memory")
    par.add_argument("--keep-low-precision-grads", action="store_true", help="fsdp1")
    par.add_argument("--ignored", metavar="REGEX",
                     help="modules, by whole name or class, whose parameters the wrapper leaves alone (fsdp1's ignored_states, "
                          "fsdp2's ignored_params, ddp's _set_params_and_buffers_to_ignore_for_model)")
    par.add_argument("--ddp-bucket-mb", type=float, help="default: PyTorch's own (25)")
    par.add_argument("--ddp-bucket-view", action="store_true", help="gradient_as_bucket_view")
    par.add_argument("--ddp-find-unused", action="store_true", default=None, help="find_unused_parameters")
    par.add_argument("--ddp-static-graph", action="store_true", default=None, help="static_graph")
    step = p.add_argument_group("training step")
    step.add_argument("--steps", type=int, default=2, help="the first makes the optimizer state")
    step.add_argument("--accumulate", type=int, default=1, help="passes per step")
    step.add_argument("--accumulate-sync", choices=("last", "every", "scatter"), default="last",
                      help="reduce gradients in the last pass only, or in every pass; scatter (fsdp2, hybrid): in every pass, "
                           "but among replicas in the last only")
    step.add_argument("--optimizer", choices=("adamw", "adam", "sgd", "muon", "adamw-torch-8bit"), default="adamw",
                      help="muon: over the blocks' matrices, and AdamW over all else (muon.py)")
    step.add_argument("--muon-nesterov", action=argparse.BooleanOptionalAction, default=None, help="muon: default its own (on)")
    step.add_argument("--muon-ns-steps", type=int, help="muon: Newton-Schulz steps; default its own (5)")
    step.add_argument("--optimizer-kernel", choices=("default", "foreach", "fused", "loop"), default="default")
    step.add_argument("--momentum", type=float, default=0.0, help="sgd")
    step.add_argument("--weight-decay", type=float, help="default: the optimizer's own")
    step.add_argument("--keep-gradients", action="store_true", help="zero_grad sets them to zero, as before PyTorch 2.0")
    step.add_argument("--grad-scaler", action="store_true", default=None,
                      help="the loss is scaled by GradScaler, with fsdp1 by ShardedGradScaler")
    step.add_argument("--clip", type=float, help="clip the gradient norm")
    step.add_argument("--eval-batches", type=int, default=None,
                      help="before the second step, this many passes of an evaluation (evaluation.py)")
    step.add_argument("--eval-batch", type=int, default=None, help="sequences of each; default: --batch")
    step.add_argument("--eval-holds-logits", action="store_true", default=None,
                      help="with --loss-at loop: until the next pass's forward, as torchtitan's validator does")


def make_shape(options):
    if options.program:
        return program_network.make_shape(options)
    if options.transformers:
        return transformers_network.make_shape(options)
    fields = dict(networks.PRESETS[options.preset])
    for name in ("layers", "width", "heads", "kv_heads", "head_dim", "ffn", "vocab", "seq", "tied", "attention",
                 "gelu", "bias", "qkv_bias", "qkv", "kv", "qk_norm", "norm_at", "gated", "rotary_share", "block", "experts",
                 "norm_weight", "gate", "global_every", "local_rope_base", "window", "document", "target_seq", "gate_up", "embed_scale", "attention_scale", "residual_scale", "logits_scale", "unturned_every",
                 "experts_per_token", "expert_ffn", "shared_ffn", "dense_layers", "score", "expert_groups", "groups_per_token",
                 "route_scale", "route_bias", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                 "route_norm", "routing", "dropout", "rms_norm", "rope", "loss", "loss_at", "loss_in_place", "logits_shifted", "logits_held", "use_cache", "reentrant", "selective", "selective_scattered",
                 "selective_sends_again"):
        if getattr(options, name) is not None:
            fields[name] = getattr(options, name)
    return Shape(**fields, checkpointing=options.checkpointing)
