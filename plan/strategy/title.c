/* plan/strategy/title.c - a strategy in a few words, for people. */
#include "plan/strategy/strategy.h"

static void append_sharding(const PlanStrategy *strategy, GString *title) {
    static const char *const names[] = {[PLAN_SHARDING_NONE] = " not sharded",
                                        [PLAN_SHARDING_FULL] = "",
                                        [PLAN_SHARDING_GRAD_OP] = " grad-op",
                                        [PLAN_SHARDING_HYBRID] = " hybrid",
                                        [PLAN_SHARDING_HYBRID_GRAD_OP] = " hybrid-grad-op",
                                        [PLAN_SHARDING_OPTIMIZER_ONLY] = ""};
    if (strategy->flavour >= PLAN_FLAVOUR_FSDP1) {
        g_string_append(title, names[strategy->sharding]);
    }
    if (strategy->replicate > 1) {
        g_string_append_printf(title, " %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT,
                               strategy->replicate, plan_strategy_shard_ranks(strategy));
    }
}

static void append_wrap(const PlanStrategy *strategy, GString *title) {
    static const char *const names[] = {[PLAN_WRAP_BLOCK] = ", a unit per block",
                                        [PLAN_WRAP_WHOLE] = ", one unit for the whole model",
                                        [PLAN_WRAP_LINEAR] = ", a unit per linear layer"};
    if (strategy->flavour < PLAN_FLAVOUR_FSDP1) {
        return;
    }
    if (strategy->wrap.choice < G_N_ELEMENTS(names)) {
        g_string_append(title, names[strategy->wrap.choice]);
        return;
    }
    g_autofree char *wrap = plan_strategy_value(strategy, "wrap");
    g_string_append_printf(title, ", units by %s", wrap);
}

/* What pictures of a class are held side by side for. */
static void append_bargains(const PlanStrategy *strategy, GString *title) {
    static const char *const offloads[] = {[PLAN_OFFLOAD_NONE] = "",
                                           [PLAN_OFFLOAD_ACTIVATIONS] = ", activations offloaded",
                                           [PLAN_OFFLOAD_OPTIMIZER] = ", optimizer offloaded",
                                           [PLAN_OFFLOAD_PARAMS] = ", parameters offloaded"};
    if (strategy->checkpointing.choice != PLAN_CHECKPOINTING_NONE) {
        g_string_append(title, ", checkpointed");
    }
    g_string_append(title, offloads[strategy->offload]);
    if (strategy->flavour >= PLAN_FLAVOUR_FSDP1 &&
        strategy->backward_prefetch != PLAN_PREFETCH_PRE) {
        g_string_append(title, strategy->backward_prefetch == PLAN_PREFETCH_NONE
                                   ? ", no backward prefetch"
                                   : ", late backward prefetch");
    }
}

/* Where several ranks share something. */
static void append_several(GString *title, const char *what, uint64_t ranks) {
    if (ranks > 1) {
        g_string_append_printf(title, "%s%" G_GUINT64_FORMAT, what, ranks);
    }
}

char *plan_strategy_title(const PlanStrategy *strategy) {
    static const char *const flavours[PLAN_N_FLAVOURS] = {
        "auto", "one rank", "DDP", "FSDP1", "FSDP2", "optimizer sharded (ZeRO-1)"};
    bool is_shared = strategy->flavour == PLAN_FLAVOUR_PLAIN && strategy->ranks > 1;
    GString *title = g_string_new(is_shared ? "not sharded" : flavours[strategy->flavour]);
    PlanDtype param = plan_strategy_param_dtype(strategy);
    append_sharding(strategy, title);
    append_wrap(strategy, title);
    if (param != PLAN_FP32) {
        g_string_append_printf(title, ", %s", plan_dtype_name(param));
    }
    if (strategy->autocast != PLAN_AUTOCAST_NONE) {
        g_string_append_printf(title, ", autocast to %s",
                               strategy->autocast == PLAN_AUTOCAST_BF16 ? "bf16" : "fp16");
    }
    if (strategy->lora_rank) {
        g_string_append_printf(title, ", LoRA of rank %" G_GUINT64_FORMAT, strategy->lora_rank);
    }
    if (strategy->lora_base != PLAN_LORA_BASE_MODEL) {
        g_string_append(title, " beside weights in 4 bits");
    }
    if (strategy->ignored.choice != PLAN_IGNORED_NONE) {
        g_string_append(title, ", partly ignored");
    }
    if (strategy->freeze.choice != PLAN_FREEZE_NONE) {
        g_string_append(title, ", partly frozen");
    }
    append_bargains(strategy, title);
    append_several(title, ", tensor ", strategy->tensor);
    append_several(title, ", context ", strategy->context);
    append_several(title, ", pipeline ", strategy->pipeline);
    if (strategy->pipeline_stages > 1) {
        g_string_append_printf(title, " x %" G_GUINT64_FORMAT " stages", strategy->pipeline_stages);
    }
    if (strategy->expert > 1 && strategy->expert_overload > 1) {
        g_string_append_printf(title, ", busiest expert rank %g times its share",
                               strategy->expert_overload);
    }
    g_string_append_printf(title, ", %" G_GUINT64_FORMAT " rank%s, micro-batch %" G_GUINT64_FORMAT,
                           strategy->ranks, strategy->ranks == 1 ? "" : "s", strategy->micro_batch);
    if (strategy->accumulate > 1) {
        g_string_append_printf(title, " x %" G_GUINT64_FORMAT, strategy->accumulate);
    }
    return g_string_free(title, FALSE);
}
