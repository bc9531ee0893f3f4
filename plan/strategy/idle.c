/* plan/strategy/idle.c - keys that change nothing of a plan beside the others: they are taken,
 * since scripts sweep them, but whoever gave one by hand should know. A row says only what is sure:
 * tests/plan/drawn.c changes each key that is called idle, and wants the same plan. */
#include "plan/strategy/private.h"

static bool is_fsdp1(const PlanStrategy *s) {
    return s->flavour == PLAN_FLAVOUR_FSDP1;
}

static bool is_fsdp2(const PlanStrategy *s) {
    return s->flavour == PLAN_FLAVOUR_FSDP2;
}

static bool reshards_by_order(const PlanStrategy *s) {
    return is_fsdp2(s) && (s->reshard_after_forward.choice == PLAN_RESHARD_YES ||
                           s->reshard_after_forward.choice == PLAN_RESHARD_RANKS);
}

static bool is_ddp(const PlanStrategy *s) {
    return s->flavour == PLAN_FLAVOUR_DDP;
}

static bool has_units(const PlanStrategy *s) {
    return plan_strategy_is_fsdp(s) || s->flavour == PLAN_FLAVOUR_ZERO1;
}

static bool is_checkpointed(const PlanStrategy *s) {
    return s->checkpointing.choice != PLAN_CHECKPOINTING_NONE;
}

static bool selects_what_is_sent(const PlanStrategy *s) {
    return s->expert > 1 && s->checkpointing.choice == PLAN_CHECKPOINTING_SELECTIVE_OP;
}

static bool shares_experts(const PlanStrategy *s) {
    return s->expert > 1;
}

static bool is_eager(const PlanStrategy *s) {
    return s->kernels == PLAN_KERNELS_EAGER;
}

static bool is_compiled_as_one(const PlanStrategy *s) {
    return s->compile != PLAN_COMPILE_BLOCK;
}

static bool has_passes(const PlanStrategy *s) {
    return s->accumulate > 1;
}

static bool is_evaluated(const PlanStrategy *s) {
    return s->eval_batches > 0;
}

static bool has_stages(const PlanStrategy *s) {
    return s->pipeline > 1;
}

static bool has_adapters(const PlanStrategy *s) {
    return s->lora_rank > 0;
}

static bool has_low_gradients(const PlanStrategy *s) {
    PlanDtype model = plan_strategy_model_dtype(s);
    return plan_strategy_param_dtype(s) != model || plan_strategy_reduce_dtype(s) != model;
}

static bool has_momentum(const PlanStrategy *s) {
    return s->optimizer == PLAN_OPTIMIZER_MOMENTUM;
}

static bool is_adams(const PlanStrategy *s) {
    return !plan_strategy_is_sgd(s);
}

static bool is_muon(const PlanStrategy *s) {
    return s->optimizer == PLAN_OPTIMIZER_MUON;
}

static bool has_kernels(const PlanStrategy *s) {
    return s->optimizer != PLAN_OPTIMIZER_ADAMW_TORCH_8BIT;
}

static const struct {
    const char *keys, *decided_by; /* a blank between two */
    bool (*matters)(const PlanStrategy *s);
    const char *needs;
} rows[] = {
    {"limit_all_gathers use_orig_params", "flavour", is_fsdp1, "is FSDP1's (flavour=fsdp1)"},
    {"hold_reduced", "flavour sharding ranks", is_fsdp2, "is FSDP2's (flavour=fsdp2)"},
    {"reshard_root", "flavour sharding ranks reshard_after_forward", reshards_by_order,
     "goes with FSDP2's reshard_after_forward=yes or N"},
    {"bucket_mb", "flavour sharding ranks", is_ddp, "is DDP's (flavour=ddp)"},
    {"wrap wrap_ends", "flavour sharding ranks", has_units, "is of what is sharded (sharding)"},
    {"init backward_prefetch", "flavour sharding ranks", plan_strategy_is_fsdp,
     "is FSDP's (flavour=fsdp1 or fsdp2)"},
    {"checkpoint_place checkpoint_early_stop", "checkpointing", is_checkpointed,
     "is of what is recomputed (checkpointing)"},
    {"checkpoint_sent", "checkpointing expert", selects_what_is_sent,
     "is of experts that ranks share, checkpointed selectively (expert, "
     "checkpointing=selective-op)"},
    {"expert_overload", "expert", shares_experts, "is of experts that ranks share (expert)"},
    {"silu_backward", "kernels", is_eager, "is of eager kernels (kernels=eager)"},
    {"shape_padding", "kernels compile", is_compiled_as_one,
     "is of a network compiled as a whole (compile=network)"},
    {"accumulate_sync reshard_after_backward", "accumulate", has_passes,
     "is of several passes a step (accumulate)"},
    {"eval_micro_batch eval_holds_logits", "eval_batches", is_evaluated,
     "is of an evaluation (eval_batches)"},
    {"pipeline_split", "pipeline", has_stages, "is of stages (pipeline)"},
    {"lora_alpha lora_on lora_dtype", "lora_rank", has_adapters, "is of adapters (lora_rank)"},
    {"keep_low_precision_grads", "param_dtype reduce_dtype model_dtype", has_low_gradients,
     "is of gradients in another dtype than the parameters (param_dtype)"},
    {"momentum", "optimizer", has_momentum, "is SGD's with momentum (optimizer=momentum)"},
    {"beta1 beta2 eps", "optimizer", is_adams, "is Adam's (optimizer=adamw or adam)"},
    {"optimizer_kernel", "optimizer", has_kernels,
     "is of PyTorch's own optimizers (optimizer=adamw, adam, sgd, momentum or muon)"},
    {"muon_lr muon_momentum muon_nesterov muon_steps muon_weight_decay muon_rate", "optimizer",
     is_muon, "is Muon's (optimizer=muon)"},
};

static bool is_among(const char *word, const char *words) {
    g_auto(GStrv) all = g_strsplit(words, " ", -1);
    return g_strv_contains((const char *const *)all, word);
}

const char *plan_strategy_why_idle(const PlanStrategy *settled, const char *key,
                                   const char **ret_decided_by) {
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (is_among(key, rows[i].keys)) {
            *ret_decided_by = rows[i].decided_by;
            return rows[i].matters(settled) ? NULL : rows[i].needs;
        }
    }
    return NULL;
}
