/* plan/strategy/settle.c - which strategy keys conflict, and what keys left open resolve to. */
#include "plan/plan.h"
#include "plan/strategy/private.h"

static bool is_fsdp(const PlanStrategy *strategy) {
    return strategy->flavour == PLAN_FLAVOUR_FSDP1 || strategy->flavour == PLAN_FLAVOUR_FSDP2;
}

static bool is_sgd(const PlanStrategy *strategy) {
    return strategy->optimizer == PLAN_OPTIMIZER_SGD ||
           strategy->optimizer == PLAN_OPTIMIZER_MOMENTUM;
}

bool plan_strategy_refuse(GError **error, const char *message) {
    g_set_error_literal(error, PLAN_ERROR, PLAN_ERROR_VALUE, message);
    return false;
}

bool plan_strategy_allows(const char *asked, const char *why_not, const char *instead,
                          GError **error) {
    if (why_not) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s %s, or %s", asked, why_not, instead);
    }
    return !why_not;
}

/* Called once tensor and pipeline are known to divide ranks. */
static bool settle_groups(PlanStrategy *strategy, GError **error) {
    if (!plan_strategy_is_hybrid(strategy)) {
        return strategy->replicate <= 1 ||
               plan_strategy_refuse(error,
                                    "replicate belongs to hybrid sharding; set sharding=hybrid or "
                                    "hybrid-grad-op, or replicate=0");
    }
    if (strategy->replicate == 0) {
        uint64_t ranks = strategy->ranks / strategy->pipeline;
        if (ranks % 8 || 8 % strategy->tensor) {
            return plan_strategy_refuse(
                error, "hybrid sharding in groups of 8 ranks needs a multiple of 8 ranks (in each "
                       "stage) and a tensor that divides 8; set replicate to the number of groups");
        }
        strategy->replicate = ranks / 8;
    }
    return plan_strategy_ranks_of_part(strategy) % strategy->replicate == 0 ||
           plan_strategy_refuse(error, "replicate (the number of groups) must divide ranks / "
                                       "tensor / pipeline; change one of them");
}

static bool settle_reshard(PlanStrategy *strategy, GError **error) {
    PlanVariant *reshard = &strategy->reshard_after_forward;
    uint64_t ranks = plan_strategy_shard_ranks(strategy), n = plan_strategy_part_ranks(strategy);
    if (reshard->choice == PLAN_RESHARD_DEFAULT) {
        return true;
    }
    if (strategy->flavour != PLAN_FLAVOUR_FSDP2) {
        return plan_strategy_refuse(
            error, "reshard_after_forward is FSDP2's (elsewhere sharding=full or grad-op says it); "
                   "set reshard_after_forward=default, or flavour=fsdp2");
    }
    if (strategy->sharding == PLAN_SHARDING_GRAD_OP ||
        strategy->sharding == PLAN_SHARDING_HYBRID_GRAD_OP) {
        return plan_strategy_refuse(error, "sharding grad-op keeps parameters after forward; set "
                                           "sharding=full (or hybrid) with reshard_after_forward");
    }
    if (n && ranks % n) {
        return plan_strategy_refuse(error, "reshard_after_forward=N needs an N that divides the "
                                           "ranks that share a copy of the model");
    }
    if (n == 1) {
        *reshard = (PlanVariant){.choice = PLAN_RESHARD_NO};
    } else if (n == ranks) {
        *reshard = (PlanVariant){.choice = PLAN_RESHARD_YES};
    }
    return true;
}

static bool precision_is_fsdp(const PlanStrategy *strategy, GError **error) {
    PlanDtype model = plan_strategy_model_dtype(strategy);
    bool is_zero1 = strategy->flavour == PLAN_FLAVOUR_ZERO1;
    if (!is_fsdp(strategy) && !is_zero1 &&
        (plan_strategy_param_dtype(strategy) != model ||
         plan_strategy_reduce_dtype(strategy) != model)) {
        return plan_strategy_refuse(
            error, "param_dtype and reduce_dtype are FSDP's mixed precision; without it "
                   "set autocast or model_dtype, or flavour=fsdp1 or fsdp2");
    }
    return true;
}

/* Fused kernels are not PyTorch's. */
static bool autocast_is_known(const PlanStrategy *strategy, GError **error) {
    if (strategy->autocast == PLAN_AUTOCAST_NONE) {
        return true;
    }
    if (strategy->kernels == PLAN_KERNELS_FUSED) {
        return plan_strategy_refuse(error, "autocast is not planned with fused kernels; set "
                                           "kernels=eager or compiled, or autocast=none");
    }
    PlanDtype other = strategy->autocast == PLAN_AUTOCAST_BF16 ? PLAN_FP16 : PLAN_BF16;
    if (strategy->flavour == PLAN_FLAVOUR_FSDP2 && strategy->param_dtype != PLAN_PARAM_MODEL &&
        plan_strategy_param_dtype(strategy) == other) {
        return plan_strategy_refuse(error,
                                    "autocast and param_dtype are two different 16-bit dtypes, "
                                    "which is not planned with FSDP2; set both alike");
    }
    return strategy->flavour != PLAN_FLAVOUR_ZERO1 ||
           plan_strategy_refuse(
               error, "autocast is not planned with sharding=optimizer-only, which keeps 16-bit "
                      "weights of its own; set param_dtype=bf16 and autocast=none");
}

/* What is recorded of scalers. ShardedGradScaler asks all ranks of the world at once, which is no
 * axis of a mesh with groups. */
static bool scale_is_known(const PlanStrategy *s, GError **error) {
    bool sgd = is_sgd(s);
    if (s->loss_scale.choice == PLAN_LOSS_SCALE_NONE) {
        return true;
    }
    if (s->flavour == PLAN_FLAVOUR_ZERO1 ||
        (s->flavour == PLAN_FLAVOUR_FSDP1 && plan_strategy_is_hybrid(s))) {
        return plan_strategy_refuse(
            error, "loss_scale is not planned with sharding=optimizer-only, nor with hybrid "
                   "sharding by FSDP1; set sharding=full or none, or loss_scale=none");
    }
    if (s->offload == PLAN_OFFLOAD_PARAMS || s->offload == PLAN_OFFLOAD_OPTIMIZER) {
        return plan_strategy_refuse(error,
                                    "loss_scale is not planned with parameters or optimizer on the "
                                    "host; set offload=none or activations, or loss_scale=none");
    }
    if (s->flavour != PLAN_FLAVOUR_FSDP1 && plan_strategy_model_dtype(s) == PLAN_FP16) {
        return plan_strategy_refuse(
            error, "GradScaler refuses gradients in fp16, which model_dtype=fp16 makes; "
                   "set model_dtype=fp32 and autocast=fp16, or model_dtype=fp32 and "
                   "param_dtype=fp16, or loss_scale=none");
    }
    return !sgd || s->optimizer_kernel != PLAN_KERNEL_FUSED ||
           plan_strategy_refuse(error, "loss_scale with fused SGD is not planned; set "
                                       "optimizer_kernel=foreach or loop, or loss_scale=none");
}

/* Keys that only FSDP1 has. */
static bool keys_are_fsdp1s(const PlanStrategy *strategy, GError **error) {
    if (strategy->flavour == PLAN_FLAVOUR_FSDP1) {
        return true;
    }
    if (strategy->backward_prefetch == PLAN_PREFETCH_POST) {
        return plan_strategy_refuse(error,
                                    "backward_prefetch=post is FSDP1's; set flavour=fsdp1, or "
                                    "backward_prefetch=pre or none");
    }
    return true;
}

/* Keys that only FSDP2 has. */
static bool keys_are_fsdp2s(PlanStrategy *strategy, GError **error) {
    PlanVariant *ahead = &strategy->forward_prefetch;
    if (ahead->choice != PLAN_FORWARD_PREFETCH_NO && !is_fsdp(strategy)) {
        return plan_strategy_refuse(error,
                                    "forward_prefetch is FSDP's; set flavour=fsdp1 or fsdp2, or "
                                    "forward_prefetch=no");
    }
    if (strategy->flavour == PLAN_FLAVOUR_FSDP1) {
        bool one = ahead->choice == PLAN_FORWARD_PREFETCH_UNITS && ahead->number == 1;
        *ahead = one ? (PlanVariant){.choice = PLAN_FORWARD_PREFETCH_YES} : *ahead;
        if (ahead->choice == PLAN_FORWARD_PREFETCH_UNITS) {
            return plan_strategy_refuse(error,
                                        "forward_prefetch=N is FSDP2's; set forward_prefetch=no or "
                                        "yes, or flavour=fsdp2");
        }
    }
    if (strategy->wrap_ends == PLAN_ENDS_TAIL && strategy->flavour != PLAN_FLAVOUR_FSDP2) {
        return plan_strategy_refuse(
            error, "wrap_ends=tail is FSDP2's; set flavour=fsdp2, or wrap_ends=root");
    }
    return strategy->reshard_last == PLAN_YES || (strategy->flavour == PLAN_FLAVOUR_FSDP2) ||
           plan_strategy_refuse(
               error, "reshard_last=no is FSDP2's; set flavour=fsdp2, or reshard_last=yes");
}

/* Its gradients are whole only until they are reduced, once a step. */
static bool zero1_reduces_once(const PlanStrategy *strategy, GError **error) {
    if (strategy->flavour != PLAN_FLAVOUR_ZERO1) {
        return true;
    }
    if (strategy->accumulate > 1 && strategy->accumulate_sync == PLAN_SYNC_EVERY) {
        return plan_strategy_refuse(error,
                                    "sharding=optimizer-only reduces gradients once a step; set "
                                    "accumulate_sync=last");
    }
    return strategy->zero_grad == PLAN_ZERO_DROP ||
           plan_strategy_refuse(error,
                                "sharding=optimizer-only keeps no gradients; set zero_grad=drop");
}

static bool params_are_fsdps(const PlanStrategy *s, GError **error) {
    return s->offload != PLAN_OFFLOAD_PARAMS || is_fsdp(s) ||
           plan_strategy_refuse(error, "offload=params is FSDP's; set flavour=fsdp1 or fsdp2, or "
                                       "offload=optimizer");
}

static const char *why_not_parts(const PlanStrategy *s) {
    if (s->kernels != PLAN_KERNELS_EAGER) {
        return "is planned only with eager kernels, which leave a block's parts apart; set "
               "kernels=eager";
    }
    if (s->offload == PLAN_OFFLOAD_ACTIVATIONS) {
        return "is not planned with offload=activations; set offload=none";
    }
    return s->checkpoint_place == PLAN_CHECKPOINT_OUTSIDE
               ? "lies inside of a block, so checkpoint_place=outside does not apply; set it to "
                 "inside"
               : NULL;
}

bool plan_strategy_checkpoints_parts(const PlanStrategy *s) {
    return s->checkpointing.choice == PLAN_CHECKPOINTING_PARTS ||
           s->checkpointing.choice == PLAN_CHECKPOINTING_MODULE;
}

static bool parts_are_known(const PlanStrategy *s, GError **error) {
    bool is_all = s->checkpointing.choice == PLAN_CHECKPOINTING_PARTS;
    return !plan_strategy_checkpoints_parts(s) ||
           plan_strategy_allows(is_all ? "checkpointing=parts" : "checkpointing=module",
                                why_not_parts(s), "checkpointing=full", error);
}

static bool offload_has_blocks(const PlanStrategy *strategy, GError **error) {
    return strategy->offload != PLAN_OFFLOAD_ACTIVATIONS ||
           strategy->checkpointing.choice != PLAN_CHECKPOINTING_NONE ||
           plan_strategy_refuse(error,
                                "offload=activations moves what checkpointed blocks keep; set "
                                "checkpointing=full too");
}

static bool compiler_is_asked(const PlanStrategy *strategy, GError **error) {
    return strategy->compile == PLAN_COMPILE_BLOCK || strategy->kernels == PLAN_KERNELS_COMPILED ||
           plan_strategy_refuse(
               error, "compile needs compiled kernels; set kernels=compiled, or compile=block");
}

static const char *why_not_float8_gather(const PlanStrategy *s) {
    bool shards = s->flavour == PLAN_FLAVOUR_FSDP2 && plan_strategy_shard_ranks(s) > 1;
    if (s->float8 != PLAN_FLOAT8_TENSORWISE) {
        return "needs one scale per weight; set float8=tensorwise";
    }
    if (s->tensor > 1) {
        return "is not planned with layers that ranks share; set tensor=1";
    }
    if (!shards) {
        return "is FSDP2's, and needs ranks that shard; set flavour=fsdp2 and more ranks";
    }
    if (s->reshard_after_forward.choice == PLAN_RESHARD_RANKS) {
        return "is not planned with reshard_after_forward=N; set reshard_after_forward=yes";
    }
    if (s->offload == PLAN_OFFLOAD_PARAMS) {
        return "is not planned with parameters on the host; set offload=none";
    }
    if (plan_strategy_model_dtype(s) != PLAN_FP32) {
        return "is planned only with shards in fp32; set model_dtype=fp32";
    }
    if (s->deterministic == PLAN_DETERMINISTIC_YES) {
        return "is not planned with deterministic algorithms; set deterministic=no";
    }
    if (!plan_strategy_is_after(s, PLAN_PYTORCH_2_4)) {
        return "is not planned for PyTorch 2.4 and before; set pytorch=2.13";
    }
    return NULL;
}

static bool float8_gathers_are_known(const PlanStrategy *s, GError **error) {
    return s->float8_gather == PLAN_FLOAT8_GATHER_NO ||
           plan_strategy_allows("float8_gather", why_not_float8_gather(s), "float8_gather=no",
                                error);
}

/* What a compiler makes of float8 layers is recorded of these. */
static const char *why_not_float8(const PlanStrategy *s) {
    if (s->kernels != PLAN_KERNELS_COMPILED || s->compile != PLAN_COMPILE_BLOCK) {
        return "is planned only with compiled blocks; set kernels=compiled and compile=block";
    }
    if (plan_strategy_param_dtype(s) != PLAN_BF16 || s->autocast != PLAN_AUTOCAST_NONE) {
        return "is planned only where all else is computed in bf16; set param_dtype=bf16 (or "
               "model_dtype=bf16) and autocast=none";
    }
    if (s->flavour == PLAN_FLAVOUR_ZERO1) {
        return "is not planned with sharding=optimizer-only; set sharding=full or none";
    }
    if (s->tensor > 1 && s->flavour != PLAN_FLAVOUR_FSDP2) {
        return "with tensor is planned only for FSDP2; set flavour=fsdp2 and a tensor lower than "
               "ranks, or tensor=1";
    }
    if (s->tensor > 1 &&
        (s->tensor_plan != PLAN_TENSOR_TORCHTITAN || s->sequence_parallel == PLAN_NO)) {
        return "is planned only with torchtitan's way of sharing layers; set "
               "tensor_plan=torchtitan "
               "and sequence_parallel=yes";
    }
    if (s->flavour == PLAN_FLAVOUR_FSDP1 && s->float8 == PLAN_FLOAT8_ROWWISE) {
        return "by rows is not planned for FSDP1; set flavour=fsdp2, or float8=tensorwise";
    }
    return NULL;
}

static bool float8_is_known(const PlanStrategy *s, GError **error) {
    return s->float8 == PLAN_FLOAT8_NONE ||
           plan_strategy_allows("float8", why_not_float8(s), "float8=none", error);
}

/* FSDP1's own clipping of 1.13 returns nothing; it asks the host by itself whether to scale. */
static bool reads_are_there(const PlanStrategy *s, GError **error) {
    if (!plan_strategy_reads_norm(s)) {
        return true;
    }
    if (s->clip == 0) {
        return plan_strategy_refuse(error, "host_reads=norm and both need clipping, whose norm "
                                           "they read; set clip, or host_reads=loss or none");
    }
    return s->flavour != PLAN_FLAVOUR_FSDP1 || s->pytorch != PLAN_PYTORCH_1_13 ||
           plan_strategy_refuse(
               error, "host_reads=norm and both need a norm to read, and FSDP1's clip_grad_norm_ "
                      "in PyTorch 1.13 returns none; set host_reads=loss or none, or pytorch=2.0");
}

static const char *why_not_four_bits(const PlanStrategy *s) {
    if (!s->lora_rank) {
        return "is of what adapters are beside; set lora_rank";
    }
    if (is_fsdp(s) && s->lora_base_storage != PLAN_LORA_STORAGE_MODEL) {
        return "with FSDP wants bytes that lie in the dtype of what they are joined with; set "
               "lora_base_storage=model";
    }
    if (is_fsdp(s) && plan_strategy_param_dtype(s) != plan_strategy_model_dtype(s)) {
        return "with FSDP wants param_dtype=model, since a cast would take bytes for numbers; set "
               "model_dtype instead";
    }
    if (s->checkpointing.choice == PLAN_CHECKPOINTING_SELECTIVE_OP) {
        return "is not planned with checkpointing=selective-op; set checkpointing=full";
    }
    return NULL;
}

static bool four_bits_are_known(const PlanStrategy *s, GError **error) {
    bool is_asked = s->lora_base != PLAN_LORA_BASE_MODEL;
    if (!is_asked &&
        (s->lora_base_double == PLAN_YES || s->lora_base_storage != PLAN_LORA_STORAGE_UINT8)) {
        return plan_strategy_refuse(error,
                                    "lora_base_double and lora_base_storage are of weights in "
                                    "4 bits, and there are none; set lora_base_double=no and "
                                    "lora_base_storage=uint8, or lora_base=nf4 and lora_rank=16");
    }
    return !is_asked ||
           plan_strategy_allows("lora_base", why_not_four_bits(s), "lora_base=model", error);
}

/* What is known of frozen parameters is recorded of these. */
static bool freezes_as_known(const PlanStrategy *s, GError **error) {
    if (s->lora_dropout > 0 && !s->lora_rank) {
        return plan_strategy_refuse(error, "lora_dropout is of adapters, and there are none; set "
                                           "lora_rank, or lora_dropout=0");
    }
    if (s->freeze.choice == PLAN_FREEZE_NONE && !s->lora_rank) {
        return true;
    }
    if (s->kernels != PLAN_KERNELS_EAGER) {
        return plan_strategy_refuse(error, "frozen parameters are planned only with eager kernels; "
                                           "set kernels=eager, or lora_rank=0 and freeze=none");
    }
    if (s->flavour == PLAN_FLAVOUR_ZERO1) {
        return plan_strategy_refuse(error, "frozen parameters are not planned with "
                                           "sharding=optimizer-only; set sharding=full or none");
    }
    if (is_fsdp(s) && !plan_strategy_is_after(s, PLAN_PYTORCH_2_4)) {
        return plan_strategy_refuse(error, "frozen parameters with FSDP are planned only for "
                                           "current PyTorch; set pytorch=current, or flavour=ddp");
    }
    return s->lora_dtype == PLAN_LORA_MODEL || !is_fsdp(s) || s->model_dtype == PLAN_FP32 ||
           plan_strategy_refuse(
               error, "lora_dtype=fp32 with 16-bit weights gives FSDP's units two dtypes, which is "
                      "not planned; set lora_dtype=model, or model_dtype=fp32 and a param_dtype");
}

static bool keys_are_ddps(const PlanStrategy *strategy, GError **error) {
    return strategy->flavour == PLAN_FLAVOUR_DDP || strategy->bucket_view == PLAN_NO ||
           plan_strategy_refuse(error, "bucket_view is DDP's; set flavour=ddp, or bucket_view=no");
}

static bool count_is_on_device(const PlanStrategy *s, GError **error) {
    if (s->offload == PLAN_OFFLOAD_OPTIMIZER || s->offload == PLAN_OFFLOAD_PARAMS) {
        return plan_strategy_refuse(error, "optimizer_count=device needs the optimizer on the "
                                           "device; set offload=none, or optimizer_count=host");
    }
    return (!is_sgd(s) && s->optimizer_kernel == PLAN_KERNEL_LOOP) ||
           plan_strategy_refuse(error, "optimizer_count=device is for Adam's loop; set "
                                       "optimizer=adamw and optimizer_kernel=loop, or "
                                       "optimizer_count=host");
}

/* What is known of Muon is recorded of these. */
static const char *why_not_muon(const PlanStrategy *s) {
    bool is_fsdp2 = s->flavour == PLAN_FLAVOUR_FSDP2;
    if (s->flavour == PLAN_FLAVOUR_FSDP1) {
        return "finds no matrices with FSDP1, whose shards are flat: PyTorch's Muon refuses them; "
               "set flavour=fsdp2";
    }
    if (s->flavour == PLAN_FLAVOUR_ZERO1) {
        return "is not planned with sharding=optimizer-only; set sharding=full or none";
    }
    if (s->pytorch != PLAN_PYTORCH_CURRENT) {
        return "is planned only for PyTorch 2.13; set pytorch=current";
    }
    if (s->tensor > 1 || s->pipeline > 1 || s->expert > 1 || s->context > 1) {
        return "is not planned where ranks share layers, stages, experts or sequences; set tensor, "
               "pipeline, expert and context to 1";
    }
    if (is_fsdp2 && plan_strategy_is_hybrid(s)) {
        return "is not planned with groups of ranks; set sharding=full or grad-op";
    }
    if (s->offload == PLAN_OFFLOAD_OPTIMIZER || s->offload == PLAN_OFFLOAD_PARAMS) {
        return "is not planned on the host; set offload=none or activations";
    }
    if (s->loss_scale.choice != PLAN_LOSS_SCALE_NONE) {
        return "is not planned with a scaled loss; set loss_scale=none";
    }
    if (s->deterministic != PLAN_DETERMINISTIC_NO) {
        return "is not planned with deterministic algorithms; set deterministic=no";
    }
    PlanDtype model = plan_strategy_model_dtype(s), momentum = plan_strategy_state_dtype(s, model);
    if (s->muon_nesterov == PLAN_NO && (model == PLAN_BF16 || momentum == PLAN_BF16)) {
        return "without Nesterov's momentum divides a momentum in bf16 by its norm, in place, in "
               "PyTorch, and forgets it; set muon_nesterov=yes, or model_dtype=fp32, a "
               "param_dtype and state_dtype=param";
    }
    return NULL;
}

static bool muon_is_known(const PlanStrategy *s, GError **error) {
    return s->optimizer != PLAN_OPTIMIZER_MUON ||
           plan_strategy_allows("optimizer=muon", why_not_muon(s), "optimizer=adamw", error);
}

static bool settle_optimizer(PlanStrategy *strategy, GError **error) {
    bool sgd = is_sgd(strategy);
    if (strategy->weight_decay == -1) {
        bool is_adamws = strategy->optimizer == PLAN_OPTIMIZER_ADAMW ||
                         strategy->optimizer == PLAN_OPTIMIZER_MUON;
        strategy->weight_decay = is_adamws ? 0.01 : 0;
    }
    if (strategy->optimizer_count == PLAN_COUNT_DEVICE && !count_is_on_device(strategy, error)) {
        return false;
    }
    if (strategy->weight_decay < 0) {
        return plan_strategy_refuse(error, "weight_decay is 0 or more, or -1 for PyTorch's own");
    }
    if (sgd && strategy->flavour == PLAN_FLAVOUR_FSDP2 &&
        strategy->optimizer_kernel == PLAN_KERNEL_FUSED) {
        return plan_strategy_refuse(error, "fused SGD has no rule for FSDP2's DTensors in PyTorch; "
                                           "set optimizer_kernel=foreach or loop");
    }
    return true;
}

/* Gradients of another dtype than their parameters': that of compute, or unsharded of reduction. */
static bool low_gradients_are_stepped(const PlanStrategy *s, GError **error) {
    bool sgd = is_sgd(s);
    PlanDtype low = plan_strategy_shard_ranks(s) > 1 ? plan_strategy_param_dtype(s)
                                                     : plan_strategy_reduce_dtype(s);
    if (s->keep_low_precision_grads == PLAN_NO || low == plan_strategy_model_dtype(s)) {
        return true;
    }
    if (s->flavour != PLAN_FLAVOUR_FSDP1) {
        return plan_strategy_refuse(error,
                                    "keep_low_precision_grads is FSDP1's; set flavour=fsdp1, or "
                                    "keep_low_precision_grads=no");
    }
    return (sgd && s->optimizer_kernel != PLAN_KERNEL_FUSED) ||
           plan_strategy_refuse(
               error, "keep_low_precision_grads=yes leaves gradients in another dtype than the "
                      "parameters, which PyTorch's Adam and fused kernels refuse; set "
                      "keep_low_precision_grads=no, or optimizer=sgd and optimizer_kernel=foreach "
                      "or loop");
}

static bool versions_are_known(const PlanStrategy *strategy, GError **error) {
    if (strategy->pytorch == PLAN_PYTORCH_1_13 && strategy->flavour == PLAN_FLAVOUR_FSDP1 &&
        (plan_strategy_is_hybrid(strategy) || strategy->use_orig_params == PLAN_YES)) {
        return plan_strategy_refuse(
            error, "hybrid sharding and use_orig_params came with PyTorch 2.0; set "
                   "pytorch=2.0, or sharding=full and use_orig_params=no");
    }
    if (strategy->flavour != PLAN_FLAVOUR_FSDP2 ||
        plan_strategy_is_after(strategy, PLAN_PYTORCH_2_4)) {
        return true;
    }
    if (!plan_strategy_is_after(strategy, PLAN_PYTORCH_2_3)) {
        return plan_strategy_refuse(
            error, "flavour=fsdp2 came with PyTorch 2.4; set pytorch=2.4 or current, or "
                   "flavour=fsdp1");
    }
    return (strategy->backward_prefetch == PLAN_PREFETCH_PRE &&
            strategy->forward_prefetch.choice == PLAN_FORWARD_PREFETCH_NO) ||
           plan_strategy_refuse(
               error, "FSDP2 of PyTorch 2.4 cannot be told what to prefetch; set "
                      "backward_prefetch=pre and forward_prefetch=no, or pytorch=current");
}

/* What a compiler makes of deterministic algorithms was not recorded; older versions had no ordered
 * flash kernel, and 2.0 and 1.13 filled nothing. */
static bool determinism_is_known(const PlanStrategy *s, GError **error) {
    if (s->deterministic == PLAN_DETERMINISTIC_NO) {
        return true;
    }
    if (s->kernels != PLAN_KERNELS_EAGER) {
        return plan_strategy_refuse(error, "deterministic is planned only with eager kernels; set "
                                           "kernels=eager, or deterministic=no");
    }
    if (!plan_strategy_is_after(s, PLAN_PYTORCH_2_0)) {
        return plan_strategy_refuse(error,
                                    "deterministic is not planned for PyTorch 2.0 and before; set "
                                    "pytorch=2.4 or current, or deterministic=no");
    }
    return s->flavour != PLAN_FLAVOUR_ZERO1 && s->offload == PLAN_OFFLOAD_NONE
               ? true
               : plan_strategy_refuse(
                     error, "deterministic is not planned with sharding=optimizer-only or offload; "
                            "set sharding=full and offload=none, or deterministic=no");
}

static bool settle_flavour(PlanStrategy *strategy, GError **error) {
    switch ((PlanFlavourId)strategy->flavour) {
    case PLAN_FLAVOUR_AUTO:
        strategy->flavour = strategy->sharding == PLAN_SHARDING_OPTIMIZER_ONLY ? PLAN_FLAVOUR_ZERO1
                            : strategy->sharding != PLAN_SHARDING_NONE         ? PLAN_FLAVOUR_FSDP2
                            : strategy->ranks > strategy->tensor               ? PLAN_FLAVOUR_DDP
                                                                               : PLAN_FLAVOUR_PLAIN;
        return true;
    case PLAN_FLAVOUR_PLAIN:
        if (strategy->ranks > strategy->tensor) {
            return plan_strategy_refuse(error, "flavour=plain is for one rank; set ranks=1, or "
                                               "tensor equal to ranks, or flavour=ddp or fsdp2");
        }
        return strategy->sharding == PLAN_SHARDING_NONE ||
               plan_strategy_refuse(error, "flavour=plain shards nothing; set sharding=none");
    case PLAN_FLAVOUR_DDP:
        return strategy->sharding == PLAN_SHARDING_NONE ||
               plan_strategy_refuse(
                   error, "flavour=ddp shards nothing; set sharding=none, or flavour=fsdp2");
    case PLAN_FLAVOUR_FSDP1:
        return strategy->sharding != PLAN_SHARDING_OPTIMIZER_ONLY ||
               plan_strategy_refuse(error,
                                    "flavour=fsdp1 shards gradients too; set sharding=grad-op, or "
                                    "flavour=zero1");
    case PLAN_FLAVOUR_ZERO1:
        return strategy->sharding == PLAN_SHARDING_OPTIMIZER_ONLY ||
               plan_strategy_refuse(error, "flavour=zero1 shards the optimizer alone; set "
                                           "sharding=optimizer-only, or flavour=fsdp2");
    case PLAN_FLAVOUR_FSDP2:
        if (strategy->sharding == PLAN_SHARDING_OPTIMIZER_ONLY) {
            return plan_strategy_refuse(
                error, "flavour=fsdp2 shards gradients too; set sharding=grad-op, or "
                       "flavour=zero1");
        }
        return strategy->sharding != PLAN_SHARDING_NONE ||
               plan_strategy_refuse(error,
                                    "flavour=fsdp2 shards; set sharding=full, grad-op, hybrid or "
                                    "hybrid-grad-op, or flavour=ddp");
    case PLAN_N_FLAVOURS:
        break;
    }
    g_assert_not_reached();
}

/* The order matters: settle_groups() divides by what the checks before it have bounded. */
bool plan_strategy_settle(PlanStrategy *strategy, GError **error) {
    return settle_flavour(strategy, error) && plan_strategy_tensor_is_known(strategy, error) &&
           versions_are_known(strategy, error) &&
           plan_strategy_pipeline_is_known(strategy, error) && settle_groups(strategy, error) &&
           plan_strategy_context_is_known(strategy, error) &&
           plan_strategy_experts_are_known(strategy, error) && settle_reshard(strategy, error) &&
           precision_is_fsdp(strategy, error) && autocast_is_known(strategy, error) &&
           scale_is_known(strategy, error) && keys_are_fsdp1s(strategy, error) &&
           keys_are_fsdp2s(strategy, error) && keys_are_ddps(strategy, error) &&
           settle_optimizer(strategy, error) && muon_is_known(strategy, error) &&
           zero1_reduces_once(strategy, error) && offload_has_blocks(strategy, error) &&
           parts_are_known(strategy, error) && low_gradients_are_stepped(strategy, error) &&
           params_are_fsdps(strategy, error) && reads_are_there(strategy, error) &&
           compiler_is_asked(strategy, error) && float8_is_known(strategy, error) &&
           float8_gathers_are_known(strategy, error) && freezes_as_known(strategy, error) &&
           four_bits_are_known(strategy, error) && determinism_is_known(strategy, error);
}
