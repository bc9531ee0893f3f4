/* plan/strategy/precision.c - which dtypes go together, and beside which keys they are planned. */
#include "plan/strategy/private.h"

const char *plan_rule_mixed_precision(const PlanStrategy *s) {
    PlanDtype model = plan_strategy_model_dtype(s);
    bool is_mixed = plan_strategy_param_dtype(s) != model || plan_strategy_reduce_dtype(s) != model;
    return !is_mixed || plan_strategy_is_fsdp(s) || s->flavour == PLAN_FLAVOUR_ZERO1
               ? NULL
               : "param_dtype and reduce_dtype are FSDP's mixed precision; without it set autocast "
                 "or model_dtype, or flavour=fsdp1 or fsdp2";
}

/* Fused kernels are not PyTorch's. */
const char *plan_rule_autocast(const PlanStrategy *s) {
    if (s->autocast == PLAN_AUTOCAST_NONE) {
        return NULL;
    }
    if (s->kernels == PLAN_KERNELS_FUSED) {
        return "autocast is not planned with fused kernels; set kernels=eager or compiled, or "
               "autocast=none";
    }
    PlanDtype other = s->autocast == PLAN_AUTOCAST_BF16 ? PLAN_FP16 : PLAN_BF16;
    if (s->flavour == PLAN_FLAVOUR_FSDP2 && s->param_dtype != PLAN_PARAM_MODEL &&
        plan_strategy_param_dtype(s) == other) {
        return "autocast and param_dtype are two different 16-bit dtypes, which is not planned "
               "with FSDP2; set both alike";
    }
    return s->flavour != PLAN_FLAVOUR_ZERO1
               ? NULL
               : "autocast is not planned with sharding=optimizer-only, which keeps 16-bit "
                 "weights of its own; set param_dtype=bf16 and autocast=none";
}

/* What is recorded of scalers. ShardedGradScaler asks all ranks of the world at once, which is no
 * axis of a mesh with groups. */
const char *plan_rule_loss_scale(const PlanStrategy *s) {
    if (s->loss_scale.choice == PLAN_LOSS_SCALE_NONE) {
        return NULL;
    }
    if (s->flavour == PLAN_FLAVOUR_ZERO1 ||
        (s->flavour == PLAN_FLAVOUR_FSDP1 && plan_strategy_is_hybrid(s))) {
        return "loss_scale is not planned with sharding=optimizer-only, nor with hybrid sharding "
               "by FSDP1; set sharding=full or none, or loss_scale=none";
    }
    if (plan_strategy_steps_on_host(s)) {
        return "loss_scale is not planned with parameters or optimizer on the host; set "
               "offload=none or activations, or loss_scale=none";
    }
    if (s->flavour != PLAN_FLAVOUR_FSDP1 && plan_strategy_model_dtype(s) == PLAN_FP16) {
        return "GradScaler refuses gradients in fp16, which model_dtype=fp16 makes; set "
               "model_dtype=fp32 and autocast=fp16, or model_dtype=fp32 and param_dtype=fp16, or "
               "loss_scale=none";
    }
    return plan_strategy_is_sgd(s) && s->optimizer_kernel == PLAN_KERNEL_FUSED
               ? "loss_scale with fused SGD is not planned; set optimizer_kernel=foreach or loop, "
                 "or loss_scale=none"
               : NULL;
}

/* Gradients of another dtype than their parameters': that of compute, or unsharded of reduction. */
const char *plan_rule_low_gradients(const PlanStrategy *s) {
    PlanDtype low = plan_strategy_shard_ranks(s) > 1 ? plan_strategy_param_dtype(s)
                                                     : plan_strategy_reduce_dtype(s);
    if (s->keep_low_precision_grads == PLAN_NO || low == plan_strategy_model_dtype(s)) {
        return NULL;
    }
    if (s->flavour != PLAN_FLAVOUR_FSDP1) {
        return "keep_low_precision_grads is FSDP1's; set flavour=fsdp1, or "
               "keep_low_precision_grads=no";
    }
    return plan_strategy_is_sgd(s) && s->optimizer_kernel != PLAN_KERNEL_FUSED
               ? NULL
               : "keep_low_precision_grads=yes leaves gradients in another dtype than the "
                 "parameters, which PyTorch's Adam and fused kernels refuse; set "
                 "keep_low_precision_grads=no, or optimizer=sgd and optimizer_kernel=foreach or "
                 "loop";
}

/* Where a block is recomputed with its unit's hooks, or units share modules, what is cast when was
 * not recorded, unless nothing between units is. */
const char *plan_rule_output_dtype(const PlanStrategy *s) {
    bool casts_between = plan_strategy_output_dtype(s) != plan_strategy_param_dtype(s);
    if (s->output_dtype == PLAN_OUTPUT_NONE) {
        return NULL;
    }
    if (s->flavour != PLAN_FLAVOUR_FSDP2) {
        return "is FSDP2's; set flavour=fsdp2";
    }
    if (s->param_dtype == PLAN_PARAM_MODEL) {
        return "is planned only where units cast what they are given; set param_dtype=bf16 or "
               "fp16";
    }
    if (s->kernels != PLAN_KERNELS_EAGER) {
        return "is planned only with eager kernels; set kernels=eager";
    }
    if (s->tensor * s->context * s->pipeline * s->expert > 1) {
        return "is planned only where ranks share nothing but parameters; set tensor=1 and "
               "context=1 and pipeline=1 and expert=1";
    }
    if (casts_between && s->autocast != PLAN_AUTOCAST_NONE) {
        return "under autocast is planned only where it is param_dtype; set autocast=none";
    }
    if (casts_between && s->checkpointing.choice != PLAN_CHECKPOINTING_NONE &&
        s->checkpoint_place == PLAN_CHECKPOINT_OUTSIDE) {
        return "of another dtype than param_dtype is not planned with checkpoint_place=outside; "
               "set checkpoint_place=inside";
    }
    if (casts_between && s->checkpointing.choice != PLAN_CHECKPOINTING_NONE &&
        s->checkpoint_early_stop == PLAN_NO) {
        return "of another dtype than param_dtype is not planned with checkpoint_early_stop=no; "
               "set checkpoint_early_stop=yes";
    }
    return casts_between && (s->wrap.choice == PLAN_WRAP_EVERY || s->wrap_ends == PLAN_ENDS_TAIL)
               ? "of another dtype than param_dtype is not planned where several modules are a "
                 "unit; set wrap=block and wrap_ends=own"
               : NULL;
}

/* Transformer Engine's eager layers. Wherever ranks are joined they are all of a run's. */
static const char *refuse_delayed(const PlanStrategy *s) {
    if (s->kernels != PLAN_KERNELS_EAGER) {
        return "with delayed scales is Transformer Engine's, which no compiler compiles; set "
               "kernels=eager, or float8=tensorwise";
    }
    if (plan_strategy_param_dtype(s) != PLAN_BF16 || s->autocast != PLAN_AUTOCAST_NONE) {
        return "with delayed scales is planned only where all else is computed in bf16; set "
               "param_dtype=bf16 (or model_dtype=bf16) and autocast=none";
    }
    if (s->flavour == PLAN_FLAVOUR_FSDP2 || s->flavour == PLAN_FLAVOUR_ZERO1 ||
        s->sharding == PLAN_SHARDING_HYBRID || s->sharding == PLAN_SHARDING_HYBRID_GRAD_OP) {
        return "with delayed scales is planned only for FSDP1 over all ranks, DDP and one rank; "
               "set flavour=fsdp1 and sharding=full or grad-op, or sharding=none";
    }
    if (s->tensor > 1 || s->context > 1 || s->pipeline > 1 || s->expert > 1) {
        return "with delayed scales is planned only where each rank computes the whole network; "
               "set tensor=1, context=1, pipeline=1 and expert=1";
    }
    if (s->checkpointing.choice == PLAN_CHECKPOINTING_SELECTIVE_OP ||
        s->deterministic != PLAN_DETERMINISTIC_NO) {
        return "with delayed scales is not planned with checkpointing=selective-op or "
               "deterministic algorithms; set checkpointing=full or none, and deterministic=no";
    }
    return NULL;
}

static const char *refuse_mxfp8(const PlanStrategy *s) {
    if (s->flavour == PLAN_FLAVOUR_FSDP1) {
        return "in MXFP8 is not planned for FSDP1; set flavour=fsdp2, or float8=tensorwise";
    }
    if (s->tensor > 1 || s->context > 1 || s->pipeline > 1 || s->expert > 1) {
        return "in MXFP8 is planned only where each rank computes the whole network; set tensor=1, "
               "context=1, pipeline=1 and expert=1, or float8=rowwise";
    }
    return NULL;
}

/* What a compiler makes of float8 layers is recorded of these. */
const char *plan_rule_float8(const PlanStrategy *s) {
    if (s->float8 == PLAN_FLOAT8_NONE) {
        return NULL;
    }
    if (s->float8 == PLAN_FLOAT8_DELAYED) {
        return refuse_delayed(s);
    }
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
    if (s->float8 == PLAN_FLOAT8_MXFP8) {
        return refuse_mxfp8(s);
    }
    if (s->tensor > 1 && s->flavour != PLAN_FLAVOUR_FSDP2) {
        return "with tensor is planned only for FSDP2; set flavour=fsdp2 and a tensor lower than "
               "ranks, or tensor=1";
    }
    if (s->tensor > 1 && !plan_strategy_shares_as_torchtitan(s)) {
        return PLAN_ONLY_AS_TORCHTITAN;
    }
    return s->flavour == PLAN_FLAVOUR_FSDP1 && s->float8 == PLAN_FLOAT8_ROWWISE
               ? "by rows is not planned for FSDP1; set flavour=fsdp2, or float8=tensorwise"
               : NULL;
}

const char *plan_rule_float8_gather(const PlanStrategy *s) {
    if (s->float8_gather == PLAN_FLOAT8_GATHER_NO) {
        return NULL;
    }
    if (s->float8 != PLAN_FLOAT8_TENSORWISE) {
        return "needs one scale per weight; set float8=tensorwise";
    }
    if (s->tensor > 1) {
        return "is not planned with layers that ranks share; set tensor=1";
    }
    if (s->flavour != PLAN_FLAVOUR_FSDP2 || plan_strategy_shard_ranks(s) == 1) {
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
    return plan_strategy_is_after(s, PLAN_PYTORCH_2_4)
               ? NULL
               : "is not planned for PyTorch 2.4 and before; set pytorch=2.13";
}
