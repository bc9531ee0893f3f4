/* plan/strategy/ignored.c - beside which keys a wrapper may be told to leave modules alone. */
#include "plan/strategy/private.h"

static const char *why_not_with_fsdp(const PlanStrategy *s) {
    if (plan_strategy_param_dtype(s) != plan_strategy_model_dtype(s)) {
        return "with FSDP is planned in one dtype, for param_dtype is not of what it leaves alone; "
               "set model_dtype and param_dtype=model";
    }
    if (s->wrap_ends == PLAN_ENDS_TAIL || s->output_dtype != PLAN_OUTPUT_NONE) {
        return "is not planned with wrap_ends=tail or output_dtype; set wrap_ends=root and "
               "output_dtype=none";
    }
    if (s->flavour == PLAN_FLAVOUR_FSDP1 && s->use_orig_params == PLAN_NO) {
        return "with FSDP1 is planned only with use_orig_params=yes, where the optimizer has "
               "parameters in the network's order; set it";
    }
    return s->clip == 0 ? NULL
           : s->flavour == PLAN_FLAVOUR_FSDP2
               ? "with FSDP2 cannot be clipped by PyTorch, which multiplies no tensor by a "
                 "DTensor; set clip=0"
               : "with FSDP1 is not planned with clipping; set clip=0";
}

/* What is known of it is recorded of these. */
const char *plan_rule_ignored(const PlanStrategy *s) {
    if (s->ignored.choice == PLAN_IGNORED_NONE) {
        return NULL;
    }
    if (!plan_strategy_is_fsdp(s) && s->flavour != PLAN_FLAVOUR_DDP) {
        return "is told to FSDP or DDP; set flavour=fsdp1, fsdp2 or ddp";
    }
    if (s->pytorch != PLAN_PYTORCH_CURRENT) {
        return "is planned only for PyTorch 2.13; set pytorch=current";
    }
    if (s->tensor > 1 || s->pipeline > 1 || s->expert > 1 || s->context > 1) {
        return "is not planned where ranks share layers, stages, experts or sequences; set tensor, "
               "pipeline, expert and context to 1";
    }
    if (s->kernels != PLAN_KERNELS_EAGER) {
        return "is planned only with eager kernels; set kernels=eager";
    }
    if (s->offload == PLAN_OFFLOAD_OPTIMIZER || s->offload == PLAN_OFFLOAD_PARAMS) {
        return "is not planned with what is offloaded; set offload=none or activations";
    }
    if (s->loss_scale.choice != PLAN_LOSS_SCALE_NONE || s->optimizer == PLAN_OPTIMIZER_MUON ||
        s->optimizer == PLAN_OPTIMIZER_ADAMW_TORCH_8BIT ||
        s->deterministic != PLAN_DETERMINISTIC_NO || s->lora_base != PLAN_LORA_BASE_MODEL) {
        return "is not planned with a scaled loss, Muon, states in 8 bits, deterministic "
               "algorithms or weights in 4 bits; set loss_scale=none, optimizer=adamw, "
               "deterministic=no and "
               "lora_base=model";
    }
    return plan_strategy_is_fsdp(s) ? why_not_with_fsdp(s) : NULL;
}
