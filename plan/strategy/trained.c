/* plan/strategy/trained.c - beside which keys parameters may be frozen or adapted, and by what they
 * may be stepped. */
#include "plan/strategy/private.h"

static const char *why_not_counted_on_device(const PlanStrategy *s) {
    if (plan_strategy_steps_on_host(s)) {
        return "optimizer_count=device needs the optimizer on the device; set offload=none, or "
               "optimizer_count=host";
    }
    return plan_strategy_is_sgd(s) || s->optimizer == PLAN_OPTIMIZER_ADAMW_TORCH_8BIT ||
                   s->optimizer_kernel != PLAN_KERNEL_LOOP
               ? "optimizer_count=device is for Adam's loop; set optimizer=adamw and "
                 "optimizer_kernel=loop, or optimizer_count=host"
               : NULL;
}

const char *plan_rule_optimizer(const PlanStrategy *s) {
    const char *why = s->optimizer_count == PLAN_COUNT_DEVICE ? why_not_counted_on_device(s) : NULL;
    if (why) {
        return why;
    }
    if (s->weight_decay < 0) {
        return "weight_decay is 0 or more, or -1 for PyTorch's own";
    }
    return plan_strategy_is_sgd(s) && s->flavour == PLAN_FLAVOUR_FSDP2 &&
                   s->optimizer_kernel == PLAN_KERNEL_FUSED
               ? "fused SGD has no rule for FSDP2's DTensors in PyTorch; set "
                 "optimizer_kernel=foreach or loop"
               : NULL;
}

/* What is known of Muon is recorded of these. */
const char *plan_rule_muon(const PlanStrategy *s) {
    if (s->optimizer != PLAN_OPTIMIZER_MUON) {
        return NULL;
    }
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
    if (s->flavour == PLAN_FLAVOUR_FSDP2 && plan_strategy_is_hybrid(s)) {
        return "is not planned with groups of ranks; set sharding=full or grad-op";
    }
    if (plan_strategy_steps_on_host(s)) {
        return "is not planned on the host; set offload=none or activations";
    }
    if (s->loss_scale.choice != PLAN_LOSS_SCALE_NONE) {
        return "is not planned with a scaled loss; set loss_scale=none";
    }
    if (s->deterministic != PLAN_DETERMINISTIC_NO) {
        return "is not planned with deterministic algorithms; set deterministic=no";
    }
    PlanDtype model = plan_strategy_model_dtype(s), momentum = plan_strategy_state_dtype(s, model);
    return s->muon_nesterov == PLAN_NO && (model == PLAN_BF16 || momentum == PLAN_BF16)
               ? "without Nesterov's momentum divides a momentum in bf16 by its norm, in place, in "
                 "PyTorch, and forgets it; set muon_nesterov=yes, or model_dtype=fp32, a "
                 "param_dtype and state_dtype=param"
               : NULL;
}

/* What is known of states in 8 bits is recorded of these. */
const char *plan_rule_eight_bit(const PlanStrategy *s) {
    if (s->optimizer != PLAN_OPTIMIZER_ADAMW_TORCH_8BIT) {
        return NULL;
    }
    if (s->flavour == PLAN_FLAVOUR_FSDP1 || s->flavour == PLAN_FLAVOUR_ZERO1) {
        return "is planned for one rank, DDP and FSDP2; set flavour=fsdp2, ddp or plain";
    }
    if (s->pytorch != PLAN_PYTORCH_CURRENT) {
        return "is planned only for PyTorch 2.13; set pytorch=current";
    }
    if (s->state_dtype != PLAN_STATE_PARAM) {
        return "has states of its own dtype; set state_dtype=param";
    }
    if (s->tensor > 1 || s->expert > 1) {
        return "is not planned where ranks share layers or experts; set tensor and expert to 1";
    }
    if (plan_strategy_steps_on_host(s)) {
        return "is not planned on the host; set offload=none or activations";
    }
    if (s->loss_scale.choice != PLAN_LOSS_SCALE_NONE) {
        return "is not planned with a scaled loss; set loss_scale=none";
    }
    if (s->float8 != PLAN_FLOAT8_NONE) {
        return "is not planned with layers in float8; set float8=none";
    }
    return s->deterministic == PLAN_DETERMINISTIC_NO
               ? NULL
               : "is not planned with deterministic algorithms; set deterministic=no";
}

/* Its gradients are whole only until they are reduced, once a step. */
const char *plan_rule_zero1(const PlanStrategy *s) {
    if (s->flavour != PLAN_FLAVOUR_ZERO1) {
        return NULL;
    }
    if (s->accumulate > 1 && s->accumulate_sync == PLAN_SYNC_EVERY) {
        return "sharding=optimizer-only reduces gradients once a step; set accumulate_sync=last";
    }
    return s->zero_grad == PLAN_ZERO_DROP
               ? NULL
               : "sharding=optimizer-only keeps no gradients; set zero_grad=drop";
}

/* FSDP1's own clipping of 1.13 returns nothing; it asks the host by itself whether to scale. */
const char *plan_rule_host_reads(const PlanStrategy *s) {
    if (!plan_strategy_reads_norm(s)) {
        return NULL;
    }
    if (s->clip == 0) {
        return "host_reads=norm and both need clipping, whose norm they read; set clip, or "
               "host_reads=loss or none";
    }
    return s->flavour == PLAN_FLAVOUR_FSDP1 && s->pytorch == PLAN_PYTORCH_1_13
               ? "host_reads=norm and both need a norm to read, and FSDP1's clip_grad_norm_ in "
                 "PyTorch 1.13 returns none; set host_reads=loss or none, or pytorch=2.0"
               : NULL;
}

/* What a compiler makes of blocks with adapters, or with frozen weights, is recorded of these. */
static const char *why_not_compiled(const PlanStrategy *s) {
    if (s->kernels == PLAN_KERNELS_EAGER) {
        return NULL;
    }
    if (s->kernels == PLAN_KERNELS_FUSED) {
        return "frozen parameters are not planned with fused kernels; set kernels=eager or "
               "compiled, or lora_rank=0 and freeze=none";
    }
    if (s->compile != PLAN_COMPILE_BLOCK) {
        return "frozen parameters are planned only with blocks that are compiled one by one; set "
               "compile=block, or kernels=eager";
    }
    if (s->flavour == PLAN_FLAVOUR_FSDP1) {
        return "frozen parameters in compiled blocks are not planned with FSDP1; set "
               "flavour=fsdp2, or kernels=eager";
    }
    if (s->float8 != PLAN_FLOAT8_NONE) {
        return "frozen parameters are not planned with layers in float8; set float8=none";
    }
    if (s->autocast != PLAN_AUTOCAST_NONE) {
        return "frozen parameters in compiled blocks are not planned under autocast; set "
               "autocast=none and model_dtype or param_dtype, or kernels=eager";
    }
    if (s->checkpointing.choice == PLAN_CHECKPOINTING_SELECTIVE_OP) {
        return "frozen parameters in compiled blocks are not planned with "
               "checkpointing=selective-op; set checkpointing=full, or kernels=eager";
    }
    if (s->eval_batches) {
        return "an evaluation of compiled blocks with frozen parameters is not planned; set "
               "eval_batches=0, or kernels=eager";
    }
    if (!s->lora_rank) {
        return NULL;
    }
    if (s->lora_dropout > 0) {
        return "lora_dropout is not planned in compiled blocks; set lora_dropout=0, or "
               "kernels=eager";
    }
    if (s->lora_base != PLAN_LORA_BASE_MODEL) {
        return "lora_base is not planned in compiled blocks; set lora_base=model, or kernels=eager";
    }
    return s->lora_dtype == PLAN_LORA_MODEL || s->model_dtype == PLAN_FP32
               ? NULL
               : "lora_dtype=fp32 beside 16-bit weights is not planned in compiled blocks; set "
                 "lora_dtype=model, or kernels=eager";
}

/* What is known of frozen parameters is recorded of these. */
const char *plan_rule_frozen(const PlanStrategy *s) {
    if (s->lora_dropout > 0 && !s->lora_rank) {
        return "lora_dropout is of adapters, and there are none; set lora_rank, or lora_dropout=0";
    }
    if (s->freeze.choice == PLAN_FREEZE_NONE && !s->lora_rank) {
        return NULL;
    }
    const char *why = why_not_compiled(s);
    if (why) {
        return why;
    }
    if (s->flavour == PLAN_FLAVOUR_ZERO1) {
        return "frozen parameters are not planned with sharding=optimizer-only; set sharding=full "
               "or none";
    }
    if (!plan_strategy_is_fsdp(s)) {
        return NULL;
    }
    if (!plan_strategy_is_after(s, PLAN_PYTORCH_2_4)) {
        return "frozen parameters with FSDP are planned only for current PyTorch; set "
               "pytorch=current, or flavour=ddp";
    }
    return s->lora_dtype == PLAN_LORA_MODEL || s->model_dtype == PLAN_FP32
               ? NULL
               : "lora_dtype=fp32 with 16-bit weights gives FSDP's units two dtypes, which is not "
                 "planned; set lora_dtype=model, or model_dtype=fp32 and a param_dtype";
}

const char *plan_rule_base_of_adapters(const PlanStrategy *s) {
    return s->lora_base == PLAN_LORA_BASE_MODEL && (s->lora_base_double == PLAN_YES ||
                                                    s->lora_base_storage != PLAN_LORA_STORAGE_UINT8)
               ? "lora_base_double and lora_base_storage are of weights in 4 bits, and there are "
                 "none; set lora_base_double=no and lora_base_storage=uint8, or lora_base=nf4 and "
                 "lora_rank=16"
               : NULL;
}

const char *plan_rule_four_bits(const PlanStrategy *s) {
    if (s->lora_base == PLAN_LORA_BASE_MODEL) {
        return NULL;
    }
    if (!s->lora_rank) {
        return "is of what adapters are beside; set lora_rank";
    }
    if (plan_strategy_is_fsdp(s) && s->lora_base_storage != PLAN_LORA_STORAGE_MODEL) {
        return "with FSDP wants bytes that lie in the dtype of what they are joined with; set "
               "lora_base_storage=model";
    }
    if (plan_strategy_is_fsdp(s) && plan_strategy_param_dtype(s) != plan_strategy_model_dtype(s)) {
        return "with FSDP wants param_dtype=model, since a cast would take bytes for numbers; set "
               "model_dtype instead";
    }
    return s->checkpointing.choice == PLAN_CHECKPOINTING_SELECTIVE_OP
               ? "is not planned with checkpointing=selective-op; set checkpointing=full"
               : NULL;
}
