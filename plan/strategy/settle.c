/* plan/strategy/settle.c - what keys left open resolve to, and which strategy keys conflict: the
 * list of all rules, in the order in which they are told. */
#include "plan/plan.h"
#include "plan/strategy/private.h"

/* ---- what is left open ---------------------------------------------------------------------- */

/* A flavour that goes with one sharding alone brings it along, where none is asked for. */
static void settle_sharding(PlanStrategy *s) {
    if (!plan_strategy_is_given(s, "sharding")) {
        s->sharding = s->flavour == PLAN_FLAVOUR_DDP || s->flavour == PLAN_FLAVOUR_PLAIN
                          ? PLAN_SHARDING_NONE
                      : s->flavour == PLAN_FLAVOUR_ZERO1 ? PLAN_SHARDING_OPTIMIZER_ONLY
                                                         : s->sharding;
    }
}

static const char *settle_flavour(PlanStrategy *s) {
    bool has_one_part = s->ranks <= s->tensor * s->pipeline;
    switch ((PlanFlavourId)s->flavour) {
    case PLAN_FLAVOUR_AUTO:
        s->flavour = s->sharding == PLAN_SHARDING_OPTIMIZER_ONLY ? PLAN_FLAVOUR_ZERO1
                     : s->sharding != PLAN_SHARDING_NONE         ? PLAN_FLAVOUR_FSDP2
                     : has_one_part                              ? PLAN_FLAVOUR_PLAIN
                                                                 : PLAN_FLAVOUR_DDP;
        return NULL;
    case PLAN_FLAVOUR_PLAIN:
        return !has_one_part ? "flavour=plain is for one rank; set ranks=1, or tensor x pipeline "
                               "equal to ranks, or flavour=ddp or fsdp2"
               : s->sharding != PLAN_SHARDING_NONE
                   ? "flavour=plain shards nothing; set sharding=none"
                   : NULL;
    case PLAN_FLAVOUR_DDP:
        return s->sharding != PLAN_SHARDING_NONE
                   ? "flavour=ddp shards nothing; set sharding=none, or flavour=fsdp2"
                   : NULL;
    case PLAN_FLAVOUR_FSDP1:
        return s->sharding == PLAN_SHARDING_OPTIMIZER_ONLY
                   ? "flavour=fsdp1 shards gradients too; set sharding=grad-op, or flavour=zero1"
                   : NULL;
    case PLAN_FLAVOUR_ZERO1:
        return s->sharding != PLAN_SHARDING_OPTIMIZER_ONLY
                   ? "flavour=zero1 shards the optimizer alone; set sharding=optimizer-only, or "
                     "flavour=fsdp2"
                   : NULL;
    case PLAN_FLAVOUR_FSDP2:
        return s->sharding == PLAN_SHARDING_OPTIMIZER_ONLY
                   ? "flavour=fsdp2 shards gradients too; set sharding=grad-op, or flavour=zero1"
               : s->sharding == PLAN_SHARDING_NONE
                   ? "flavour=fsdp2 shards; set sharding=full, grad-op, hybrid or hybrid-grad-op, "
                     "or flavour=ddp"
                   : NULL;
    case PLAN_N_FLAVOURS:
        break;
    }
    g_assert_not_reached();
}

/* Called once tensor and pipeline are known to divide ranks. */
static const char *settle_groups(PlanStrategy *s) {
    if (!plan_strategy_is_hybrid(s)) {
        return s->replicate > 1 ? "replicate belongs to hybrid sharding; set sharding=hybrid or "
                                  "hybrid-grad-op, or replicate=0"
                                : NULL;
    }
    if (s->replicate == 0) {
        uint64_t ranks = s->ranks / s->pipeline;
        if (ranks % 8 || 8 % s->tensor) {
            return "hybrid sharding in groups of 8 ranks needs a multiple of 8 ranks (in each "
                   "stage) and a tensor that divides 8; set replicate to the number of groups";
        }
        s->replicate = ranks / 8;
    }
    return plan_strategy_ranks_of_part(s) % s->replicate
               ? "replicate (the number of groups) must divide ranks / tensor / pipeline; change "
                 "one of them"
               : NULL;
}

static const char *settle_reshard(PlanStrategy *s) {
    PlanVariant *reshard = &s->reshard_after_forward;
    uint64_t ranks = plan_strategy_shard_ranks(s), n = plan_strategy_part_ranks(s);
    if (reshard->choice == PLAN_RESHARD_DEFAULT) {
        return NULL;
    }
    if (s->flavour != PLAN_FLAVOUR_FSDP2) {
        return "reshard_after_forward is FSDP2's (elsewhere sharding=full or grad-op says it); set "
               "reshard_after_forward=default, or flavour=fsdp2";
    }
    if (s->sharding == PLAN_SHARDING_GRAD_OP || s->sharding == PLAN_SHARDING_HYBRID_GRAD_OP) {
        return "sharding grad-op keeps parameters after forward; set sharding=full (or hybrid) "
               "with reshard_after_forward";
    }
    if (n && ranks % n) {
        return "reshard_after_forward=N needs an N that divides the ranks that share a copy of the "
               "model";
    }
    if (n == 1) {
        *reshard = (PlanVariant){.choice = PLAN_RESHARD_NO};
    } else if (n == ranks) {
        *reshard = (PlanVariant){.choice = PLAN_RESHARD_YES};
    }
    return NULL;
}

/* FSDP1 gathers one unit ahead or none. */
static void settle_prefetch(PlanStrategy *s) {
    PlanVariant *ahead = &s->forward_prefetch;
    if (s->flavour == PLAN_FLAVOUR_FSDP1 && ahead->choice == PLAN_FORWARD_PREFETCH_UNITS &&
        ahead->number == 1) {
        *ahead = (PlanVariant){.choice = PLAN_FORWARD_PREFETCH_YES};
    }
}

static void settle_weight_decay(PlanStrategy *s) {
    if (s->weight_decay == -1) {
        bool is_adamws = s->optimizer == PLAN_OPTIMIZER_ADAMW ||
                         s->optimizer == PLAN_OPTIMIZER_MUON ||
                         s->optimizer == PLAN_OPTIMIZER_ADAMW_TORCH_8BIT;
        s->weight_decay = is_adamws ? 0.01 : 0;
    }
}

/* ---- whose keys they are -------------------------------------------------------------------- */

static const char *versions(const PlanStrategy *s) {
    if (s->pytorch == PLAN_PYTORCH_1_13 && s->flavour == PLAN_FLAVOUR_FSDP1 &&
        (plan_strategy_is_hybrid(s) || s->use_orig_params == PLAN_YES)) {
        return "hybrid sharding and use_orig_params came with PyTorch 2.0; set pytorch=2.0, or "
               "sharding=full and use_orig_params=no";
    }
    if (s->flavour != PLAN_FLAVOUR_FSDP2 || plan_strategy_is_after(s, PLAN_PYTORCH_2_4)) {
        return NULL;
    }
    if (!plan_strategy_is_after(s, PLAN_PYTORCH_2_3)) {
        return "flavour=fsdp2 came with PyTorch 2.4; set pytorch=2.4 or current, or flavour=fsdp1";
    }
    return s->backward_prefetch == PLAN_PREFETCH_PRE &&
                   s->forward_prefetch.choice == PLAN_FORWARD_PREFETCH_NO
               ? NULL
               : "FSDP2 of PyTorch 2.4 cannot be told what to prefetch; set backward_prefetch=pre "
                 "and forward_prefetch=no, or pytorch=current";
}

static const char *keys_of_flavours(const PlanStrategy *s) {
    bool is_fsdp1 = s->flavour == PLAN_FLAVOUR_FSDP1, is_fsdp2 = s->flavour == PLAN_FLAVOUR_FSDP2;
    unsigned ahead = s->forward_prefetch.choice;
    if (!is_fsdp1 && s->backward_prefetch == PLAN_PREFETCH_POST) {
        return "backward_prefetch=post is FSDP1's; set flavour=fsdp1, or backward_prefetch=pre or "
               "none";
    }
    if (!plan_strategy_is_fsdp(s) && ahead != PLAN_FORWARD_PREFETCH_NO) {
        return "forward_prefetch is FSDP's; set flavour=fsdp1 or fsdp2, or forward_prefetch=no";
    }
    if (is_fsdp1 && ahead == PLAN_FORWARD_PREFETCH_UNITS) {
        return "forward_prefetch=N is FSDP2's; set forward_prefetch=no or yes, or flavour=fsdp2";
    }
    if (!is_fsdp2 && s->wrap_ends == PLAN_ENDS_TAIL) {
        return "wrap_ends=tail is FSDP2's; set flavour=fsdp2, or wrap_ends=root";
    }
    if (!is_fsdp2 && s->reshard_last == PLAN_NO) {
        return "reshard_last=no is FSDP2's; set flavour=fsdp2, or reshard_last=yes";
    }
    if (!is_fsdp2 && s->reshard_after_backward == PLAN_NO) {
        return "reshard_after_backward=no is FSDP2's; set flavour=fsdp2, or "
               "reshard_after_backward=yes";
    }
    if (s->accumulate_sync == PLAN_SYNC_SCATTER && !is_fsdp2) {
        return "accumulate_sync=scatter is FSDP2's; set flavour=fsdp2, or accumulate_sync=every";
    }
    if (s->accumulate_sync == PLAN_SYNC_SCATTER && !plan_strategy_is_hybrid(s)) {
        return "accumulate_sync=scatter leaves out the sums between groups; set sharding=hybrid "
               "or hybrid-grad-op, or accumulate_sync=every";
    }
    return s->flavour != PLAN_FLAVOUR_DDP && s->bucket_view == PLAN_YES
               ? "bucket_view is DDP's; set flavour=ddp, or bucket_view=no"
               : NULL;
}

static const char *graph_of_ddp(const PlanStrategy *s) {
    if (!plan_strategy_copies_results(s)) {
        return NULL;
    }
    if (s->flavour != PLAN_FLAVOUR_DDP) {
        return "find_unused and static_graph are DDP's; set flavour=ddp, or both to no";
    }
    if (s->find_unused == PLAN_YES && s->static_graph == PLAN_YES) {
        return "static_graph finds what is unused by itself; set find_unused=no";
    }
    if (s->compile != PLAN_COMPILE_BLOCK) {
        return "find_unused and static_graph are planned without compile=network; set "
               "compile=block, or both to no";
    }
    if (!plan_strategy_is_after(s, PLAN_PYTORCH_2_4)) {
        return "find_unused and static_graph are planned for PyTorch 2.11 and later; set "
               "pytorch=current, or both to no";
    }
    return s->static_graph == PLAN_YES && s->accumulate > 1 && s->accumulate_sync == PLAN_SYNC_LAST
               ? "PyTorch fails at static_graph in a pass that does not reduce; set "
                 "accumulate_sync=every, or static_graph=no"
               : NULL;
}

/* What is known of evaluations is recorded of these. */
static const char *evaluation(const PlanStrategy *s) {
    if (!s->eval_batches) {
        return NULL;
    }
    if (s->pipeline > 1) {
        return "an evaluation is not planned of stages, whose schedule runs forward alone in "
               "another order; set eval_batches=0, or pipeline=1";
    }
    if (s->kernels == PLAN_KERNELS_COMPILED &&
        (s->compile != PLAN_COMPILE_BLOCK || s->float8 != PLAN_FLOAT8_NONE ||
         s->async_tensor == PLAN_YES)) {
        return "an evaluation of compiled kernels is planned of blocks compiled one by one, "
               "without float8 and async_tensor, for without gradients those are other programs; "
               "set compile=block, float8=none and async_tensor=no, or eval_batches=0";
    }
    if (s->kernels == PLAN_KERNELS_COMPILED && !plan_strategy_is_after(s, PLAN_PYTORCH_2_4)) {
        return "an evaluation of compiled kernels is planned for PyTorch 2.11 and later; set "
               "pytorch=current, or eval_batches=0";
    }
    return NULL;
}

static const char *params_on_host(const PlanStrategy *s) {
    return s->offload == PLAN_OFFLOAD_PARAMS && !plan_strategy_is_fsdp(s)
               ? "offload=params is FSDP's; set flavour=fsdp1 or fsdp2, or offload=optimizer"
               : NULL;
}

/* ---- what is recomputed and compiled -------------------------------------------------------- */

static const char *offloaded_activations(const PlanStrategy *s) {
    return s->offload == PLAN_OFFLOAD_ACTIVATIONS &&
                   s->checkpointing.choice == PLAN_CHECKPOINTING_NONE
               ? "offload=activations moves what checkpointed blocks keep; set checkpointing=full "
                 "too"
               : NULL;
}

static const char *why_not_inside_blocks(const PlanStrategy *s) {
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

static const char *checkpointed_parts(const PlanStrategy *s) {
    return s->checkpointing.choice == PLAN_CHECKPOINTING_PARTS ? why_not_inside_blocks(s) : NULL;
}

static const char *checkpointed_modules(const PlanStrategy *s) {
    return s->checkpointing.choice == PLAN_CHECKPOINTING_MODULE ? why_not_inside_blocks(s) : NULL;
}

static const char *compiler(const PlanStrategy *s) {
    return s->compile != PLAN_COMPILE_BLOCK && s->kernels != PLAN_KERNELS_COMPILED
               ? "compile needs compiled kernels; set kernels=compiled, or compile=block"
               : NULL;
}

/* What a compiler makes of deterministic algorithms was not recorded; older versions had no ordered
 * flash kernel, and 2.0 and 1.13 filled nothing. */
static const char *determinism(const PlanStrategy *s) {
    if (s->deterministic == PLAN_DETERMINISTIC_NO) {
        return NULL;
    }
    if (s->kernels != PLAN_KERNELS_EAGER) {
        return "deterministic is planned only with eager kernels; set kernels=eager, or "
               "deterministic=no";
    }
    if (!plan_strategy_is_after(s, PLAN_PYTORCH_2_0)) {
        return "deterministic is not planned for PyTorch 2.0 and before; set pytorch=2.4 or "
               "current, or deterministic=no";
    }
    return s->flavour == PLAN_FLAVOUR_ZERO1 || s->offload != PLAN_OFFLOAD_NONE
               ? "deterministic is not planned with sharding=optimizer-only or offload; set "
                 "sharding=full and offload=none, or deterministic=no"
               : NULL;
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* Of what is asked for, a rule says the rest, "ASKED ..., or INSTEAD"; NULL: it says all. */
static const struct {
    PlanStrategyRule *rule;
    const char *asked, *instead;
} rules[] = {
    {plan_rule_mixed_precision, NULL, NULL},
    {plan_rule_autocast, NULL, NULL},
    {plan_rule_loss_scale, NULL, NULL},
    {keys_of_flavours, NULL, NULL},
    {graph_of_ddp, NULL, NULL},
    {evaluation, NULL, NULL},
    {plan_rule_optimizer, NULL, NULL},
    {plan_rule_muon, "optimizer=muon", "optimizer=adamw"},
    {plan_rule_eight_bit, "optimizer=adamw-torch-8bit", "optimizer=adamw"},
    {plan_rule_zero1, NULL, NULL},
    {offloaded_activations, NULL, NULL},
    {checkpointed_parts, "checkpointing=parts", "checkpointing=full"},
    {checkpointed_modules, "checkpointing=module", "checkpointing=full"},
    {plan_rule_low_gradients, NULL, NULL},
    {plan_rule_output_dtype, "output_dtype", "output_dtype=none"},
    {params_on_host, NULL, NULL},
    {plan_rule_host_reads, NULL, NULL},
    {compiler, NULL, NULL},
    {plan_rule_float8, "float8", "float8=none"},
    {plan_rule_float8_gather, "float8_gather", "float8_gather=no"},
    {plan_rule_frozen, NULL, NULL},
    {plan_rule_ignored, "ignored", "ignored=none"},
    {plan_rule_base_of_adapters, NULL, NULL},
    {plan_rule_four_bits, "lora_base", "lora_base=model"},
    {determinism, NULL, NULL},
};

static bool rules_hold(const PlanStrategy *s, GError **error) {
    for (unsigned i = 0; i < G_N_ELEMENTS(rules); i++) {
        const char *wrong = rules[i].rule(s), *asked = rules[i].asked;
        if (asked ? !plan_strategy_allows(asked, wrong, rules[i].instead, error)
                  : !plan_strategy_holds(wrong, error)) {
            return false;
        }
    }
    return true;
}

/* The order matters: settle_groups() divides by what the checks before it have bounded. */
bool plan_strategy_settle(PlanStrategy *s, GError **error) {
    settle_sharding(s);
    if (!plan_strategy_holds(settle_flavour(s), error)) {
        return false;
    }
    settle_prefetch(s);
    settle_weight_decay(s);
    return plan_strategy_tensor_is_known(s, error) && plan_strategy_holds(versions(s), error) &&
           plan_strategy_pipeline_is_known(s, error) &&
           plan_strategy_holds(settle_groups(s), error) &&
           plan_strategy_context_is_known(s, error) && plan_strategy_experts_are_known(s, error) &&
           plan_strategy_holds(settle_reshard(s), error) && rules_hold(s, error);
}
