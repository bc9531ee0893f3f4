/* What does not go together in a strategy, or beside a network, is refused with a remedy. */
#include <string.h>

#include "plan/strategy/strategy.h"
#include "tests/plan/plans.h"

static void contradictions(void) {
    static const struct {
        const char *words, *expected;
    } cases[] = {
        {"ranks=2 sharding=none flavour=plain", "flavour=plain is for one rank"},
        {"ranks=2 flavour=ddp sharding=full", "flavour=ddp shards nothing; set sharding=none"},
        {"ranks=1 flavour=plain sharding=grad-op", "flavour=plain shards nothing; set sharding"},
        {"ranks=2 flavour=zero1 sharding=full", "flavour=zero1 shards the optimizer alone; set"},
        {"ranks=2 sharding=none flavour=fsdp2", "flavour=fsdp2 shards; set sharding"},
        {"ranks=4 replicate=2", "replicate belongs to hybrid sharding"},
        {"ranks=6 sharding=hybrid", "hybrid sharding in groups of 8 ranks needs a multiple of 8"},
        {"ranks=6 sharding=hybrid replicate=4",
         "replicate (the number of groups) must divide ranks"},
        {"ranks=6 reshard_after_forward=4", "reshard_after_forward=N needs an N that divides"},
        {"ranks=6 flavour=fsdp1 reshard_after_forward=yes", "reshard_after_forward is FSDP2's"},
        {"ranks=2 flavour=fsdp1 wrap_ends=tail", "wrap_ends=tail is FSDP2's"},
        {"ranks=6 sharding=grad-op reshard_after_forward=yes", "sharding grad-op keeps"},
        {"ranks=2 wrap=linear checkpointing=full pytorch=2.0 flavour=fsdp1",
         "unit layers.0.linear lies inside layers.0"},
        {"ranks=2 wrap=linear checkpointing=full pytorch=2.4",
         "unit layers.0.linear lies inside layers.0"},
        {"ranks=2 wrap=linear checkpointing=full flavour=fsdp1 sharding=none offload=params",
         "unit layers.0.linear lies inside layers.0"},
        {"ranks=2 checkpointing=module=mlp",
         "checkpointing=module=mlp is the whole name or class of nothing that lies in a block"},
        {"ranks=2 wrap=module=linear",
         "wrap=module=linear is the whole name or class of no module"},
        {"ranks=2 bucket_view=yes", "bucket_view is DDP's"},
        {"ranks=2 eval_batches=1 pipeline=2 accumulate=2",
         "an evaluation is not planned of stages"},
        {"ranks=2 eval_batches=1 kernels=compiled compile=network sharding=none",
         "an evaluation of compiled kernels is planned of blocks compiled one by one"},
        {"ranks=2 eval_batches=1 kernels=compiled param_dtype=bf16 float8=tensorwise",
         "an evaluation of compiled kernels is planned of blocks compiled one by one"},
        {"ranks=2 eval_batches=1 kernels=compiled pytorch=2.4",
         "an evaluation of compiled kernels is planned for PyTorch 2.11"},
        {"ranks=2 find_unused=yes", "find_unused and static_graph are DDP's"},
        {"ranks=2 sharding=none find_unused=yes static_graph=yes", "static_graph finds what is"},
        {"ranks=2 sharding=none static_graph=yes accumulate=2", "PyTorch fails at static_graph"},
        {"ranks=2 optimizer=sgd optimizer_kernel=fused", "fused SGD has no rule for FSDP2"},
        {"ranks=2 sharding=none offload=params", "offload=params is FSDP's"},
        {"ranks=2 offload=activations", "offload=activations moves what checkpointed blocks keep"},
        {"ranks=2 expert=2 sharding=none", "expert=2 is planned only with FSDP2"},
        {"ranks=4 expert=4 sharding=hybrid replicate=2",
         "expert=4 does not divide the 2 ranks that share a copy of the model; change one"},
        {"ranks=3 expert=2", "expert=2 does not divide the 3 ranks that share a copy"},
        {"ranks=8 pipeline=2 accumulate=2 expert=8", "expert=8 does not divide the 4 ranks that "
                                                     "share a copy of the model in a stage"},
        {"ranks=8 expert=2 tensor=2", "expert=2 is not planned with layers that ranks share"},
        {"ranks=2 expert=2 kernels=fused", "expert=2 is not planned with fused kernels"},
        {"ranks=2 expert=2 wrap=whole", "expert=2 is planned only with a unit for each block"},
        {"ranks=2 expert=2 forward_prefetch=1",
         "expert=2 has its own lists of what is gathered ahead"},
        {"ranks=2 expert=2 reduce_dtype=fp16", "expert=2 is planned only with gradients reduced"},
        {"ranks=6 pipeline=4 accumulate=4", "pipeline=4 does not divide the 6 ranks;"},
        {"ranks=4 sharding=hybrid pipeline=8", "pipeline=8 does not divide the 4 ranks;"},
        {"ranks=2 sharding=hybrid pipeline=16 tensor=2",
         "pipeline=16 does not divide the 2 ranks;"},
        {"ranks=8 sharding=hybrid pipeline=2 accumulate=2",
         "hybrid sharding in groups of 8 ranks needs a multiple"},
        {"ranks=4 pipeline=2", "pipeline=2 needs at least as many microbatches per step"},
        {"ranks=4 pipeline=2 accumulate=2 flavour=fsdp1",
         "pipeline=2 is planned only with FSDP2, DDP, or nothing wrapped"},
        {"ranks=4 pipeline=2 accumulate=2 sharding=none find_unused=yes",
         "pipeline=2 is not planned with find_unused or static_graph"},
        {"ranks=4 pipeline=2 accumulate=2 sharding=none flavour=plain",
         "flavour=plain is for one rank; set ranks=1, or tensor x pipeline equal to ranks"},
        {"ranks=8 pipeline=2 tensor=2 accumulate=2 sharding=none",
         "tensor=2 is planned only with FSDP2"},
        {"ranks=2 pipeline=2 accumulate=2 sharding=none autocast=bf16",
         "pipeline=2 is not planned with autocast; set autocast=none, and param_dtype=bf16 "
         "(without FSDP model_dtype=bf16)"},
        {"ranks=24 pipeline=2 accumulate=2 tensor=8",
         "tensor=8 does not divide the 12 ranks of a stage (ranks / pipeline); change one"},
        {"ranks=6 pipeline=2 accumulate=2 context=2",
         "context=2 does not divide the 3 ranks that share a copy"},
        {"ranks=8 pipeline=2 accumulate=2 tensor=2 tensor_plan=kempnerforge kernels=compiled",
         "pipeline=2 is planned only with torchtitan's way"},
        {"ranks=4 pipeline=2 accumulate=2 kernels=fused",
         "pipeline=2 is not planned with fused kernels"},
        {"ranks=4 pipeline=2 accumulate=2 kernels=compiled compile=network",
         "pipeline=2 is planned only with blocks compiled one by one"},
        {"ranks=4 pipeline=2 accumulate=2 reshard_after_forward=yes "
         "pipeline_schedule=looped-bfs pipeline_stages=2",
         "pipeline=2 with several stages per rank is planned only with units that stay whole"},
        {"ranks=4 pipeline=2 accumulate=2 accumulate_sync=every",
         "pipeline=2 reduces gradients only after"},
        {"ranks=4 pipeline=2 accumulate=2 zero_grad=keep",
         "pipeline=2 is not planned with gradients that are kept"},
        {"ranks=4 pipeline=2 accumulate=2 host_reads=loss",
         "pipeline=2 is not planned with reads within a step"},
        {"ranks=4 pipeline=2 accumulate=2 wrap_ends=own",
         "pipeline=2 is planned only with a unit for"},
        {"ranks=4 pipeline=2 accumulate=2 offload=params",
         "pipeline=2 is not planned with offload"},
        {"ranks=2 pipeline_schedule=gpipe", "pipeline_schedule and pipeline_stages need stages"},
        {"ranks=6 context=4", "context=4 does not divide the 6 ranks that share a copy"},
        {"ranks=2 context=2 sharding=none", "context=2 is planned only with FSDP2;"},
        {"ranks=2 context=2 flavour=fsdp1", "context=2 is planned only with FSDP2;"},
        {"ranks=6 context=2 sharding=hybrid replicate=2",
         "context=2 does not divide the 3 ranks that share a copy"},
        {"ranks=6 context=2 tensor=2", "context=2 does not divide the 3 ranks that share a copy"},
        {"ranks=4 context=2 tensor=2 tensor_plan=kempnerforge kernels=compiled",
         "context=2 is planned only with torchtitan's way"},
        {"ranks=2 context=2 kernels=fused", "context=2 is planned only with eager kernels or"},
        {"ranks=2 context=2 kernels=compiled compile=network",
         "context=2 is planned only with eager kernels or compiled blocks"},
        {"ranks=2 context=2 kernels=compiled checkpointing=selective-op",
         "context=2 with compiled blocks is not planned with selective"},
        {"ranks=2 context=2 autocast=bf16", "context=2 is not planned with autocast"},
        {"ranks=2 context=2 offload=params", "context=2 is not planned with offload"},
        {"ranks=6 tensor=4",
         "tensor=4 does not divide the 6 ranks; change one of them, or tensor=1"},
        {"ranks=2 tensor=2 sharding=none optimizer=sgd",
         "tensor=2 without FSDP is planned only for AdamW"},
        {"ranks=2 tensor=2 sharding=none optimizer_kernel=loop",
         "tensor=2 without FSDP is planned only for AdamW"},
        {"ranks=4 tensor=2 flavour=plain sharding=none", "flavour=plain is for one rank"},
        {"ranks=4 tensor=2 sharding=none", "tensor=2 is planned only with FSDP2;"},
        {"ranks=4 tensor=2 flavour=fsdp1", "tensor=2 is planned only with FSDP2"},
        {"ranks=8 tensor=2 sharding=hybrid replicate=3",
         "replicate (the number of groups) must divide ranks / tensor"},
        {"ranks=24 tensor=3 sharding=hybrid",
         "hybrid sharding in groups of 8 ranks needs a multiple"},
        {"ranks=4 tensor=2 pytorch=2.4", "tensor=2 is planned only for current PyTorch"},
        {"ranks=4 context=2 param_dtype=bf16 kernels=compiled pytorch=2.14",
         "context=2 with compiled blocks is not planned since PyTorch 2.14"},
        {"ranks=4 pipeline=2 accumulate=2 pytorch=2.15",
         "pipeline=2 is not planned for PyTorch 2.15"},
        {"ranks=4 tensor=2 kernels=fused", "tensor=2 is not planned with fused kernels"},
        {"ranks=4 tensor=2 lora_rank=2", "tensor=2 is not planned with frozen parameters or adap"},
        {"ranks=8 tensor=2 context=2 freeze=module=head",
         "tensor=2 is not planned with frozen parameters or adapters"},
        {"ranks=4 tensor=2 freeze=module=head sequence_parallel=no tensor_plan=transformers",
         "tensor=2 with frozen parameters is planned only as torchtitan shares layers"},
        {"ranks=4 tensor=2 tensor_plan=kempnerforge",
         "tensor_plan=kempnerforge is planned only with compiled"},
        {"ranks=4 kernels=compiled tensor_plan=kempnerforge",
         "tensor_plan needs ranks that share layers"},
        {"ranks=4 tensor=2 tensor_plan=transformers", "tensor_plan=transformers leaves sequences"},
        {"ranks=4 sequence_parallel=no", "sequence_parallel=no needs ranks that share layers"},
        {"ranks=4 tensor=2 sequence_parallel=no kernels=compiled checkpointing=selective-op",
         "sequence_parallel=no with compiled kernels is planned only block by block"},
        {"ranks=4 tensor=2 sequence_parallel=no kernels=compiled compile=network",
         "sequence_parallel=no with compiled kernels is planned only block by block"},
        {"ranks=4 tensor=2 sequence_parallel=no kernels=compiled param_dtype=bf16 async_tensor=yes",
         "async_tensor=yes is planned only with torchtitan's way"},
        {"ranks=4 tensor=2 sequence_parallel=no kernels=compiled param_dtype=bf16 "
         "float8=tensorwise",
         "float8 is planned only with torchtitan's way"},
        {"ranks=4 tensor=2 context=2 sequence_parallel=no",
         "context=2 is planned only with torchtitan's way"},
        {"ranks=2 tensor=2 sharding=none sequence_parallel=no zero_grad=keep",
         "tensor=2 without FSDP and sequence_parallel has gradients of two kinds"},
        {"ranks=8 tensor=2 reshard_after_forward=2",
         "tensor=2 is not planned with reshard_after_forward=N"},
        {"ranks=4 tensor=2 autocast=bf16", "tensor=2 is not planned with autocast"},
        {"ranks=4 tensor=2 param_dtype=fp16 loss_scale=dynamic",
         "tensor=2 is not planned with a scaled loss"},
        {"ranks=4 tensor=2 lora_rank=4",
         "tensor=2 is not planned with frozen parameters or adapters"},
        {"ranks=4 tensor=2 offload=params", "tensor=2 is not planned with offload"},
        {"ranks=4 tensor=2 deterministic=yes", "tensor=2 is not planned with deterministic"},
        {"ranks=2 sharding=optimizer-only zero_grad=keep", "sharding=optimizer-only keeps no"},
        {"ranks=2 sharding=optimizer-only accumulate=2 accumulate_sync=every",
         "sharding=optimizer-only reduces gradients once"},
        {"ranks=2 sharding=optimizer-only flavour=fsdp1", "flavour=fsdp1 shards gradients too"},
        {"ranks=2 sharding=none forward_prefetch=1", "forward_prefetch is FSDP's"},
        {"ranks=2 flavour=fsdp1 forward_prefetch=2", "forward_prefetch=N is FSDP2's"},
        {"ranks=2 flavour=fsdp1 reshard_last=no", "reshard_last=no is FSDP2's"},
        {"ranks=2 flavour=fsdp1 reshard_after_backward=no", "reshard_after_backward=no is FSDP2's"},
        {"ranks=4 pipeline=2 accumulate=2 reshard_after_backward=no",
         "pipeline=2 keeps a stage's units whole"},
        {"ranks=4 accumulate=2 accumulate_sync=scatter",
         "accumulate_sync=scatter leaves out the sums between groups; set sharding=hybrid"},
        {"ranks=4 flavour=fsdp1 sharding=hybrid replicate=2 accumulate=2 accumulate_sync=scatter",
         "accumulate_sync=scatter is FSDP2's"},
        {"ranks=2 flavour=fsdp1 param_dtype=bf16 output_dtype=fp32", "output_dtype is FSDP2's"},
        {"ranks=2 output_dtype=fp32", "output_dtype is planned only where units cast"},
        {"ranks=2 param_dtype=bf16 output_dtype=bf16 kernels=compiled",
         "output_dtype is planned only with eager kernels"},
        {"ranks=4 tensor=2 param_dtype=bf16 output_dtype=bf16",
         "output_dtype is planned only where ranks share nothing"},
        {"ranks=2 param_dtype=bf16 output_dtype=fp32 autocast=bf16",
         "output_dtype under autocast is planned only"},
        {"ranks=2 param_dtype=bf16 output_dtype=fp32 checkpointing=full checkpoint_place=outside",
         "output_dtype of another dtype than param_dtype is not planned with checkpoint_place"},
        {"ranks=2 param_dtype=bf16 output_dtype=fp32 checkpointing=full checkpoint_early_stop=no",
         "output_dtype of another dtype than param_dtype is not planned with checkpoint_early"},
        {"ranks=2 param_dtype=bf16 output_dtype=fp32 wrap=every=2",
         "output_dtype of another dtype than param_dtype is not planned where several"},
        {"ranks=2 flavour=fsdp1 param_dtype=bf16 keep_low_precision_grads=yes",
         "keep_low_precision_grads=yes leaves"},
        {"ranks=2 param_dtype=bf16 keep_low_precision_grads=yes",
         "keep_low_precision_grads is FSDP1's"},
        {"ranks=2 deterministic=yes kernels=compiled",
         "deterministic is planned only with eager kernels"},
        {"ranks=2 deterministic=unfilled pytorch=2.0 flavour=fsdp1",
         "deterministic is not planned for PyTorch 2.0 and before"},
        {"ranks=2 deterministic=yes offload=params",
         "deterministic is not planned with sharding=optimizer-only or offload"},
        {"ranks=2 deterministic=yes sharding=optimizer-only",
         "deterministic is not planned with sharding=optimizer-only or offload"},
        {"ranks=2 pytorch=2.0", "flavour=fsdp2 came with PyTorch 2.4"},
        {"ranks=2 pytorch=2.3", "flavour=fsdp2 came with PyTorch 2.4; set pytorch=2.4"},
        {"ranks=2 pytorch=2.4 forward_prefetch=2",
         "FSDP2 of PyTorch 2.4 cannot be told what to prefetch"},
        {"ranks=2 pytorch=2.4 backward_prefetch=none",
         "FSDP2 of PyTorch 2.4 cannot be told what to prefetch"},
        {"ranks=8 pytorch=1.13 flavour=fsdp1 use_orig_params=yes",
         "hybrid sharding and use_orig_params came with"},
        {"ranks=8 pytorch=1.13 flavour=fsdp1 sharding=hybrid",
         "hybrid sharding and use_orig_params came with"},
        {"ranks=2 host_reads=norm", "host_reads=norm and both need clipping"},
        {"ranks=2 host_reads=both", "host_reads=norm and both need clipping"},
        {"ranks=2 host_reads=both clip=1 flavour=fsdp1 pytorch=1.13",
         "host_reads=norm and both need a norm to read, and FSDP1's clip_grad_norm_"},
        {"ranks=2 compile=network", "compile needs compiled kernels"},
        {"ranks=2 optimizer_count=device", "optimizer_count=device is for Adam's loop"},
        {"ranks=2 optimizer_count=device optimizer_kernel=fused", "optimizer_count=device is for"},
        {"ranks=2 optimizer_count=device optimizer_kernel=loop optimizer=sgd",
         "optimizer_count=device is for Adam's loop"},
        {"ranks=2 optimizer_count=device optimizer_kernel=loop offload=params",
         "optimizer_count=device needs the optimizer on the device"},
        {"ranks=2 sharding=none param_dtype=bf16", "param_dtype and reduce_dtype are FSDP's"},
        {"ranks=2 sharding=optimizer-only loss_scale=dynamic",
         "loss_scale is not planned with sharding=optimizer-only"},
        {"ranks=4 flavour=fsdp1 sharding=hybrid replicate=2 loss_scale=dynamic",
         "loss_scale is not planned with sharding=optimizer-only, nor with hybrid"},
        {"ranks=2 loss_scale=dynamic offload=params",
         "loss_scale is not planned with parameters or optimizer on the host"},
        {"ranks=2 loss_scale=dynamic offload=optimizer",
         "loss_scale is not planned with parameters or optimizer on the host"},
        {"ranks=2 loss_scale=from=8 model_dtype=fp16", "GradScaler refuses gradients in fp16"},
        {"ranks=2 loss_scale=dynamic optimizer=sgd optimizer_kernel=fused",
         "loss_scale with fused SGD is not planned"},
        {"ranks=2 autocast=bf16 kernels=fused", "autocast is not planned with fused kernels"},
        {"ranks=2 sharding=optimizer-only autocast=bf16",
         "autocast is not planned with sharding=optimizer-only"},
        {"ranks=2 autocast=bf16 param_dtype=fp16",
         "autocast and param_dtype are two different 16-bit dtypes"},
        {"ranks=2 weight_decay=-0.5", "weight_decay is 0 or more"},
        {"ranks=2 freeze=module=layers.0 flavour=fsdp1 wrap=whole",
         "unit root is trained in part, which a flat parameter of FSDP1 cannot be"},
        {"ranks=2 freeze=module=layers.0 sharding=optimizer-only",
         "frozen parameters are not planned with sharding=optimizer-only"},
        {"ranks=2 lora_rank=2 kernels=fused",
         "frozen parameters are not planned with fused kernels; set kernels=eager or compiled"},
        {"ranks=1 sharding=none freeze=module=layers.0 kernels=compiled compile=network",
         "frozen parameters are planned only with blocks that are compiled one by one; set "
         "compile=block"},
        {"ranks=2 flavour=fsdp1 use_orig_params=yes lora_rank=2 kernels=compiled",
         "frozen parameters in compiled blocks are not planned with FSDP1; set flavour=fsdp2"},
        {"ranks=2 flavour=fsdp1 kernels=compiled param_dtype=bf16 float8=delayed",
         "float8 with delayed scales is Transformer Engine's, which no compiler compiles"},
        {"ranks=2 flavour=fsdp1 float8=delayed",
         "float8 with delayed scales is planned only where all else is computed in bf16"},
        {"ranks=2 flavour=fsdp2 param_dtype=bf16 float8=delayed",
         "float8 with delayed scales is planned only for FSDP1 over all ranks"},
        {"ranks=4 flavour=fsdp1 sharding=hybrid replicate=2 param_dtype=bf16 float8=delayed",
         "float8 with delayed scales is planned only for FSDP1 over all ranks"},
        {"ranks=2 pipeline=2 accumulate=2 sharding=none model_dtype=bf16 float8=delayed",
         "float8 with delayed scales is planned only where each rank computes the whole network"},
        {"ranks=2 flavour=fsdp1 param_dtype=bf16 float8=delayed checkpointing=selective-op",
         "float8 with delayed scales is not planned with checkpointing=selective-op"},
        {"ranks=2 lora_rank=2 kernels=compiled float8=tensorwise param_dtype=bf16",
         "frozen parameters are not planned with layers in float8; set float8=none"},
        {"ranks=2 lora_rank=2 kernels=compiled autocast=bf16",
         "frozen parameters in compiled blocks are not planned under autocast; set autocast=none"},
        {"ranks=2 freeze=module=embed kernels=compiled checkpointing=selective-op",
         "frozen parameters in compiled blocks are not planned with checkpointing=selective-op"},
        {"ranks=2 lora_rank=2 kernels=compiled eval_batches=1",
         "an evaluation of compiled blocks with frozen parameters is not planned; set "
         "eval_batches"},
        {"ranks=2 lora_rank=2 kernels=compiled lora_dropout=0.1",
         "lora_dropout is not planned in compiled blocks; set lora_dropout=0, or kernels=eager"},
        {"ranks=2 sharding=none lora_rank=2 kernels=compiled lora_base=nf4",
         "lora_base is not planned in compiled blocks; set lora_base=model, or kernels=eager"},
        {"ranks=2 sharding=none lora_rank=2 kernels=compiled lora_dtype=fp32 model_dtype=bf16",
         "lora_dtype=fp32 beside 16-bit weights is not planned in compiled blocks; set "
         "lora_dtype=model"},
        {"ranks=2 lora_rank=2 lora_base=nf4",
         "lora_base with FSDP wants bytes that lie in the dtype of what they are joined with; set "
         "lora_base_storage=model"},
        {"ranks=2 lora_rank=2 lora_base=nf4 lora_base_storage=model param_dtype=bf16",
         "lora_base with FSDP wants param_dtype=model"},
        {"ranks=2 sharding=none lora_base=nf4",
         "lora_base is of what adapters are beside; set lora_"},
        {"ranks=2 sharding=none lora_rank=2 lora_base_double=yes",
         "lora_base_double and lora_base_storage are of weights in 4 bits, and there are none"},
        {"ranks=2 sharding=none lora_rank=2 lora_base_storage=model",
         "lora_base_double and lora_base_storage are of weights in 4 bits, and there are none"},
        {"ranks=2 sharding=none lora_rank=2 lora_base=nf4 checkpointing=selective-op",
         "lora_base is not planned with checkpointing=selective-op; set checkpointing=full"},
        {"ranks=2 lora_dropout=0.1",
         "lora_dropout is of adapters, and there are none; set lora_rank"},
        {"ranks=2 lora_rank=2 pytorch=2.4",
         "frozen parameters with FSDP are planned only for current"},
        {"ranks=2 lora_rank=2 lora_dtype=fp32 model_dtype=bf16",
         "lora_dtype=fp32 with 16-bit weights gives FSDP's units two dtypes"},
        {"ranks=2 lora_rank=2", "lora_on=.*\\.(q|v|qkv|Wqkv|q_proj|v_proj|query_key_value) names "
                                "no linear layer of a block"},
        {"ranks=2 freeze=module=layers", "freeze=module=layers is the whole name or class of no"},
        {"ranks=2 freeze=module=\\Qlayers.0",
         "freeze=module=\\Qlayers.0 needs a regular expression that can be matched"},
        {"ranks=2 freeze=module=(?x)layers#one", "freeze=module=(?x)layers#one needs a regular"},
        {"ranks=2 wrap=module=a)|(?:b", "wrap=module=a)|(?:b needs a regular expression"},
        {"ranks=2 freeze=module=.*", "freeze=module=.* leaves nothing to train"},
        {"ranks=2 ignored=module=layers", "ignored=module=layers is the whole name or class of no"},
        {"ranks=2 ignored=module=.*", "ignored=module=.* leaves nothing to shard or reduce"},
        {"ranks=1 sharding=none ignored=module=layers.0", "ignored is told to FSDP or DDP"},
        {"ranks=2 ignored=module=layers.0 param_dtype=bf16",
         "ignored with FSDP is planned in one dtype"},
        {"ranks=2 ignored=module=layers.0 model_dtype=bf16 param_dtype=bf16 output_dtype=bf16",
         "ignored is not planned with wrap_ends=tail or output_dtype"},
        {"ranks=2 ignored=module=layers.0 clip=1", "ignored with FSDP2 cannot be clipped"},
        {"ranks=2 ignored=module=layers.0 flavour=fsdp1",
         "ignored with FSDP1 is planned only with use_orig_params=yes"},
        {"ranks=2 ignored=module=layers.0 flavour=fsdp1 use_orig_params=yes clip=1",
         "ignored with FSDP1 is not planned with clipping"},
        {"ranks=2 ignored=module=layers.0 pytorch=2.4", "ignored is planned only for PyTorch 2.13"},
        {"ranks=2 ignored=module=layers.0 kernels=compiled",
         "ignored is planned only with eager kernels"},
        {"ranks=2 ignored=module=layers.0 offload=params",
         "ignored is not planned with what is offloaded"},
        {"ranks=2 ignored=module=layers.0 loss_scale=dynamic",
         "ignored is not planned with a scaled loss"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = test_plan_error(MLP_TOY, cases[i].words);
        g_assert_true(g_str_has_prefix(error->message, cases[i].expected));
    }
}

/* What ranks would share is of a Llama as torchtitan has it, or of a GPT in the same way, and
 * divides by them. */
static void layers_that_are_not_shared(void) {
    static const struct {
        const char *more, *expected, *words;
    } cases[] = {
        {"family=mpt\nheads=2\n", "is not planned for families other than gpt and llama"},
        {"family=gpt\nheads=2\ndropout=0.1\n", "is not planned for dropout; set dropout = 0"},
        {"family=gpt\nheads=2\npositions=alibi\n", "positions = alibi; set positions = learned"},
        {"family=gpt\nheads=2\n", "compiled blocks of family gpt", "kernels=compiled"},
        {"family=gpt\nheads=2\n", "PyTorch other than 2.13", "pytorch=2.14"},
        {"family=gpt\nheads=2\ntied=yes\n", "a head that is the embedding with a tensor_plan",
         "tensor_plan=kempnerforge sequence_parallel=no"},
        {"family=gpt\nheads=1\n", "does not divide heads (1)"},
        {"family=llama\nheads=2\nkv_heads=1\n", "does not divide kv_heads (1)"},
        {"family=llama\nheads=2\nkv_heads=2\ntied=yes\n",
         "a head that is the embedding with a tensor_plan that cuts neither or one of them; set "
         "tied = no, or tensor_plan=torchtitan",
         "tensor_plan=transformers sequence_parallel=no"},
        {"family=llama\nheads=2\nkv_heads=2\nqkv=joined\n", "q, k and v of one layer"},
        {"family=llama\nheads=2\nkv_heads=2\nqk_norm=width\n", "norms over the whole of q and k"},
        {"family=llama\nheads=2\nkv_heads=2\nloss=metered\n", "a metered or chunked loss"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "[network]\n%slayers=1\nwidth=8\nffn=8\nvocab=12\nseq=8\n", cases[i].more);
        g_autofree char *words =
            g_strconcat("ranks=4 tensor=2 ", cases[i].words ? cases[i].words : "", NULL);
        g_autoptr(GError) error = test_plan_error(text, words);
        g_assert_nonnull(strstr(error->message, cases[i].expected));
    }
}

/* Nor are sequences, of which every rank has two parts. */
static void sequences_that_are_not_shared(void) {
    static const struct {
        const char *more, *words, *expected;
    } cases[] = {
        {"family=gpt\nheads=2\n", "param_dtype=bf16",
         "is not planned for families other than llama"},
        {"family=llama\nheads=2\nattention=math\n", "", "attention with its scores in memory"},
        {"family=llama\nheads=2\nqkv=joined\n", "param_dtype=bf16", "q, k and v of one layer"},
        {"family=llama\nheads=2\nrope=complex\n", "param_dtype=bf16", "another rotary embedding"},
        {"family=llama\nheads=2\nqk_norm=width\n", "param_dtype=bf16",
         "norms over the whole of q and k"},
        {"family=llama\nheads=2\nqk_norm=head\n", "", "norms of q and k in fp32"},
        {"family=llama\nheads=2\nkv_heads=1\n", "", "groups of heads in fp32"},
        {"family=llama\nheads=2\n", "", "a rank's part of a sequence that 64 does not divide"},
        {"family=llama\nheads=2\n", "param_dtype=bf16 seq=6", "a sequence of 6 tokens is not cut"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "[network]\n%slayers=1\nwidth=8\nffn=8\nvocab=12\nseq=8\n", cases[i].more);
        g_autofree char *words = g_strconcat("ranks=2 context=2 ", cases[i].words, NULL);
        g_autoptr(GError) error = test_plan_error(text, words);
        g_assert_nonnull(strstr(error->message, cases[i].expected));
    }
}

/* Nor are experts that do not divide, or that are transformers'. */
static void experts_that_are_not_shared(void) {
    static const struct {
        const char *more, *words, *expected;
    } cases[] = {
        {"", "ranks=4 expert=4", "expert=4 does not divide the experts"},
        {"", "ranks=6 expert=2 expert_overload=2.5",
         "more than all rows of 2 ranks; set expert_overload=2"},
        {"", "ranks=6 expert=6 expert_overload=3.5", "for a rank's experts; set expert_overload=3"},
        {"", "ranks=12 expert=2", "more ranks than experts shards each expert by rows"},
        {"code=transformers\nqk_norm=head\n", "ranks=2 expert=2 param_dtype=bf16",
         "torchtitan's experts, not transformers'"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            g_strdup_printf("[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nexperts=6\n"
                            "experts_per_token=2\nexpert_ffn=8\nvocab=12\nseq=8\n%s",
                            cases[i].more);
        g_autoptr(GError) error = test_plan_error(text, cases[i].words);
        g_assert_nonnull(strstr(error->message, cases[i].expected));
    }
    g_autoptr(GError) error = test_plan_error(MLP_TOY, "ranks=2 expert=2");
    g_assert_nonnull(strstr(error->message, "is planned only for family llama with experts"));
}

static void adapters_of_one_layer(void) {
    const char *text =
        "[network]\nfamily=neox\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=12\nseq=8\n"
        "rotary_share=0.5\n";
    g_autoptr(GError) error =
        test_plan_error(text, "ranks=2 sharding=none lora_rank=2 lora_base=nf4");
    g_assert_nonnull(strstr(error->message, "planned only without family neox; set lora_base="));
}

/* What an old PyTorch could not run is not planned as if it had. */
static void kernels_that_were_not(void) {
    const char *text = "[network]\nfamily=t5\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=12\nseq=8\n"
                       "attention=kernel\n";
    static const char *const refused[] = {"ranks=2 pytorch=2.0 flavour=fsdp1",
                                          "ranks=2 pytorch=1.13 flavour=fsdp1"};
    for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = test_plan_error(text, refused[i]);
        g_assert_nonnull(strstr(error->message, "takes no scale before PyTorch 2.1"));
    }
    g_autoptr(Plan) plan = test_plan(text, "ranks=2 pytorch=2.4 flavour=fsdp1");
    g_assert_cmpuint(plan->world, ==, 2);
}

/* Tensors whose elements no number here counts. */
static void tensors_beyond_all_memory(void) {
    const char *text = "[network]\nfamily=gpt\nlayers=1\nwidth=64\nheads=4\nvocab=16777216\n"
                       "seq=16777216\n";
    g_autoptr(GError) error = test_plan_error(text, "ranks=1 sharding=none micro_batch=1000000");
    g_assert_nonnull(strstr(error->message, "that no memory holds; lower one of them"));
    const char *latent = "[network]\nfamily=llama\nlayers=1\nwidth=64\nheads=16384\nvocab=96\n"
                         "seq=1024\nffn=64\nrope=complex\nkv_lora_rank=8\nv_head_dim=8\n"
                         "qk_nope_head_dim=16384\nqk_rope_head_dim=16384\n";
    g_autoptr(GError) heads = test_plan_error(latent, "ranks=1 sharding=none micro_batch=1000000");
    g_assert_nonnull(strstr(heads->message, "that no memory holds; lower one of them"));
    const char *wide = "[network]\nfamily=llama\nlayers=40\nwidth=1048576\nheads=8\nvocab=96\n"
                       "seq=32\nexperts=4096\nexperts_per_token=2\nexpert_ffn=4194304\n";
    g_autoptr(GError) many = test_plan_error(wide, "ranks=65536");
    g_assert_nonnull(strstr(many->message, "has more than 2^58 parameters"));
    const char *sound = "[network]\nfamily=llama\nlayers=1000\nwidth=64\nheads=8\nvocab=96\n"
                        "ffn=4194304\nseq=1048576\n";
    g_autoptr(GError) sum = test_plan_error(sound, "ranks=2 micro_batch=2000");
    g_assert_nonnull(strstr(sum->message, "role 0: its buffers come to more than 2^62 bytes"));
    g_autoptr(Plan) plan = test_plan(text, "ranks=1 sharding=none seq=4096 micro_batch=1000");
    g_assert_cmpuint(plan->tokens_per_rank, ==, 4096000);
}

/* Weights that two units would share, and units that run twice. */
static void units_that_cannot_be(void) {
    static const struct {
        const char *network, *expected;
    } cases[] = {
        {"[network]\nfamily=gpt\nlayers=1\nwidth=8\nheads=2\nvocab=12\nseq=8\ntied=yes\n",
         "module head uses wte.weight, which belongs to unit wte"},
        {"[network]\nfamily=t5\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=12\nseq=8\n",
         "module shared runs twice a pass"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = test_plan_error(cases[i].network, "ranks=2 wrap_ends=own");
        g_assert_true(g_str_has_prefix(error->message, cases[i].expected));
    }
}

/* Where nothing is cast for them they may be. */
static void adapters_that_are_units(void) {
    static const char llama[] =
        "[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nvocab=16\nseq=4\nffn=8\n";
    g_autoptr(GError) error =
        test_plan_error(llama, "ranks=2 lora_rank=2 wrap=linear param_dtype=bf16");
    g_assert_true(g_str_has_prefix(error->message, "unit layers.0.attn.q.lora_A is gathered in"));
    plan_free(test_plan(llama, "ranks=2 lora_rank=2 wrap=linear"));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/strategy-refused/contradictions are refused", contradictions);
    g_test_add_func("/plan/strategy-refused/units that cannot be", units_that_cannot_be);
    g_test_add_func("/plan/strategy-refused/adapters that are units", adapters_that_are_units);
    g_test_add_func("/plan/strategy-refused/adapters of one layer", adapters_of_one_layer);
    g_test_add_func("/plan/strategy-refused/kernels that were not", kernels_that_were_not);
    g_test_add_func("/plan/strategy-refused/layers that are not shared",
                    layers_that_are_not_shared);
    g_test_add_func("/plan/strategy-refused/sequences that are not shared",
                    sequences_that_are_not_shared);
    g_test_add_func("/plan/strategy-refused/experts that are not shared",
                    experts_that_are_not_shared);
    g_test_add_func("/plan/strategy-refused/tensors beyond all memory", tensors_beyond_all_memory);
    return g_test_run();
}
