/* plan/strategy/shared.c - beside which keys ranks may share layers, sequences, stages, experts. */
#include "plan/autograd/stages/schedule.h"
#include "plan/plan.h"
#include "plan/strategy/private.h"

#define ONLY_FSDP2 "is planned only with FSDP2; set flavour=fsdp2"
#define OF_A_COPY  " that share a copy of the model"

/* Where every rank shares them and nothing is sharded, gradients are DTensors that operators
 * settle (optimizer/shared.c): what those of other optimizers do was not recorded. */
static bool settles_gradients(const PlanStrategy *s) {
    return (s->optimizer == PLAN_OPTIMIZER_ADAMW ||
            (s->optimizer == PLAN_OPTIMIZER_ADAM && s->weight_decay <= 0)) &&
           s->optimizer_kernel != PLAN_KERNEL_LOOP && s->state_dtype == PLAN_STATE_PARAM;
}

/* Layers that ranks share are recorded of FSDP2 over the others, and of nothing beside them. */
static const char *why_not_in_flavour(const PlanStrategy *s) {
    if (s->flavour == PLAN_FLAVOUR_PLAIN && s->sequence_parallel == PLAN_NO &&
        s->zero_grad == PLAN_ZERO_KEEP) {
        return "without FSDP and sequence_parallel has gradients of two kinds, which PyTorch "
               "cannot set to zero together; set zero_grad=drop";
    }
    if (s->flavour == PLAN_FLAVOUR_PLAIN) {
        return settles_gradients(s)
                   ? NULL
                   : "without FSDP is planned only for AdamW, and Adam without weight decay; set "
                     "optimizer=adamw and optimizer_kernel=foreach or fused";
    }
    return s->flavour == PLAN_FLAVOUR_FSDP2 ? NULL : ONLY_FSDP2;
}

/* Frozen parameters are recorded of layers that ranks share as torchtitan has it, and of no other
 * axis. */
static const char *why_not_trained_in_part(const PlanStrategy *s) {
    bool is_frozen = s->freeze.choice != PLAN_FREEZE_NONE;
    bool is_alone = s->context == 1 && s->pipeline == 1 && s->expert == 1;
    if (s->lora_rank || (is_frozen && !is_alone)) {
        return "is not planned with frozen parameters or adapters; set freeze=none and lora_rank=0";
    }
    bool is_known = s->tensor_plan == PLAN_TENSOR_TORCHTITAN && s->compile == PLAN_COMPILE_BLOCK &&
                    s->async_tensor == PLAN_NO && s->float8 == PLAN_FLOAT8_NONE &&
                    (s->flavour == PLAN_FLAVOUR_FSDP2 || s->sequence_parallel == PLAN_YES);
    return !is_frozen || is_known
               ? NULL
               : "with frozen parameters is planned only as torchtitan shares layers, by eager "
                 "kernels or compiled blocks in no float8; set freeze=none, or "
                 "tensor_plan=torchtitan, sequence_parallel=yes, compile=block, "
                 "async_tensor=no and float8=none";
}

/* With eager kernels or compiled blocks, and none of the other keys. */
static const char *why_not_with(const PlanStrategy *s) {
    if (!plan_strategy_is_after(s, PLAN_PYTORCH_2_4)) {
        return "is planned only for current PyTorch; set pytorch=current";
    }
    if (s->kernels == PLAN_KERNELS_FUSED) {
        return "is not planned with fused kernels; set kernels=eager or compiled";
    }
    if (s->reshard_after_forward.choice == PLAN_RESHARD_RANKS) {
        return "is not planned with reshard_after_forward=N; set reshard_after_forward=yes or no";
    }
    if (s->autocast != PLAN_AUTOCAST_NONE) {
        return "is not planned with autocast; set autocast=none, and param_dtype=bf16 (without "
               "FSDP model_dtype=bf16)";
    }
    if (s->loss_scale.choice != PLAN_LOSS_SCALE_NONE) {
        return "is not planned with a scaled loss; set loss_scale=none";
    }
    if (why_not_trained_in_part(s)) {
        return why_not_trained_in_part(s);
    }
    if (s->offload != PLAN_OFFLOAD_NONE) {
        return "is not planned with offload; set offload=none";
    }
    return s->deterministic == PLAN_DETERMINISTIC_NO
               ? NULL
               : "is not planned with deterministic algorithms; set deterministic=no";
}

/* So many ranks; why_not NULL: they may. */
static bool may_share(const char *key, uint64_t n, const char *why_not, GError **error) {
    g_autofree char *asked = g_strdup_printf("%s=%" G_GUINT64_FORMAT, key, n);
    g_autofree char *instead = g_strconcat(key, "=1", NULL);
    return plan_strategy_allows(asked, why_not, instead, error);
}

/* Ranks are dealt out in equal parts; whose: "" or what they do with each other. */
static bool divides(const char *key, uint64_t n, uint64_t ranks, const char *whose,
                    GError **error) {
    if (ranks % n) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s=%" G_GUINT64_FORMAT " does not divide the %" G_GUINT64_FORMAT
                    " rank%s%s; change one of them, or %s=1",
                    key, n, ranks, ranks == 1 ? "" : "s", whose, key);
    }
    return ranks % n == 0;
}

/* Asynchronously, as it was recorded. */
static const char *why_not_async(const PlanStrategy *s) {
    if (s->tensor == 1) {
        return "needs ranks that share layers; set tensor";
    }
    if (s->kernels != PLAN_KERNELS_COMPILED || s->compile != PLAN_COMPILE_BLOCK) {
        return "is planned only with compiled blocks; set kernels=compiled and compile=block";
    }
    if (!plan_strategy_shares_as_torchtitan(s)) {
        return PLAN_ONLY_AS_TORCHTITAN;
    }
    if (s->flavour != PLAN_FLAVOUR_FSDP2) {
        return ONLY_FSDP2;
    }
    if (plan_strategy_param_dtype(s) != PLAN_BF16) {
        return "is planned only in bf16, or float8 over it; set param_dtype=bf16";
    }
    return NULL;
}

static bool async_is_known(const PlanStrategy *s, GError **error) {
    const char *why_not = s->async_tensor == PLAN_YES ? why_not_async(s) : NULL;
    return plan_strategy_allows("async_tensor=yes", why_not, "async_tensor=no", error);
}

static const char *why_not_tensor_plan(const PlanStrategy *s) {
    bool cuts_tokens = s->sequence_parallel == PLAN_YES;
    bool is_compiled = s->kernels == PLAN_KERNELS_COMPILED;
    if (s->tensor == 1) {
        return s->tensor_plan != PLAN_TENSOR_TORCHTITAN
                   ? "tensor_plan needs ranks that share layers; set tensor, or "
                     "tensor_plan=torchtitan"
               : !cuts_tokens ? "sequence_parallel=no needs ranks that share layers; set tensor, "
                                "or sequence_parallel=yes"
                              : NULL;
    }
    if (s->tensor_plan == PLAN_TENSOR_KEMPNERFORGE && cuts_tokens && !is_compiled) {
        return "tensor_plan=kempnerforge is planned only with compiled blocks; set "
               "kernels=compiled, or tensor_plan=torchtitan, or sequence_parallel=no";
    }
    if (s->tensor_plan == PLAN_TENSOR_TRANSFORMERS && cuts_tokens) {
        return "tensor_plan=transformers leaves sequences whole; set sequence_parallel=no, or "
               "tensor_plan=torchtitan";
    }
    bool is_known = s->compile == PLAN_COMPILE_BLOCK &&
                    s->checkpointing.choice != PLAN_CHECKPOINTING_SELECTIVE_OP;
    return cuts_tokens || !is_compiled || is_known
               ? NULL
               : "sequence_parallel=no with compiled kernels is planned only block by block, and "
                 "not checkpointed selectively; set compile=block and checkpointing=full or none, "
                 "or kernels=eager, or sequence_parallel=yes";
}

bool plan_strategy_tensor_is_known(const PlanStrategy *s, GError **error) {
    if (!async_is_known(s, error) || !plan_strategy_holds(why_not_tensor_plan(s), error)) {
        return false;
    }
    if (s->tensor == 1) {
        return true;
    }
    const char *why = why_not_in_flavour(s);
    why = why ? why : why_not_with(s);
    return divides("tensor", s->tensor, s->ranks, "", error) &&
           may_share("tensor", s->tensor, why, error);
}

/* Sequences that ranks share are recorded of FSDP2, whose group they are part of. */
static const char *why_not_beside_sequences(const PlanStrategy *s) {
    bool is_compiled = s->kernels == PLAN_KERNELS_COMPILED;
    if (!plan_strategy_shares_as_torchtitan(s)) {
        return PLAN_ONLY_AS_TORCHTITAN;
    }
    if (s->kernels == PLAN_KERNELS_FUSED || s->compile != PLAN_COMPILE_BLOCK) {
        return "is planned only with eager kernels or compiled blocks; set kernels=eager and "
               "compile=block, or kernels=compiled and compile=block";
    }
    if (is_compiled && plan_strategy_is_after(s, PLAN_PYTORCH_CURRENT)) {
        return "with compiled blocks is not planned since PyTorch 2.14, whose backward gathers "
               "again; set pytorch=current, or kernels=eager";
    }
    if (is_compiled && s->checkpointing.choice == PLAN_CHECKPOINTING_SELECTIVE_OP) {
        return "with compiled blocks is not planned with selective checkpointing; set "
               "checkpointing=full or none, or kernels=eager";
    }
    return why_not_with(s);
}

bool plan_strategy_context_is_known(const PlanStrategy *s, GError **error) {
    if (s->context == 1) {
        return true;
    }
    if (s->flavour != PLAN_FLAVOUR_FSDP2) {
        return may_share("context", s->context, ONLY_FSDP2, error);
    }
    return divides("context", s->context, plan_strategy_shard_ranks(s), OF_A_COPY, error) &&
           may_share("context", s->context, why_not_beside_sequences(s), error);
}

/* Stages are recorded of FSDP2 and DDP, a group of which each has for itself, and of nothing
 * wrapped. */
static const char *why_not_in_stages(const PlanStrategy *s) {
    if (s->flavour == PLAN_FLAVOUR_FSDP1 || s->flavour == PLAN_FLAVOUR_ZERO1) {
        return "is planned only with FSDP2, DDP, or nothing wrapped; set "
               "flavour=fsdp2";
    }
    if (plan_strategy_copies_results(s)) {
        return "is not planned with find_unused or static_graph; set both to no";
    }
    if (s->pytorch == PLAN_PYTORCH_2_15) {
        return "is not planned for PyTorch 2.15, whose stages keep less; set pytorch=2.14";
    }
    if (s->tensor_plan != PLAN_TENSOR_TORCHTITAN && s->sequence_parallel == PLAN_YES) {
        return "is planned only with torchtitan's way of sharing layers; set "
               "tensor_plan=torchtitan, or sequence_parallel=no";
    }
    if (s->compile != PLAN_COMPILE_BLOCK) {
        return "is planned only with blocks compiled one by one; set compile=block";
    }
    if (s->reshard_after_forward.choice == PLAN_RESHARD_YES && s->pipeline_stages > 1) {
        return "with several stages per rank is planned only with units that stay whole from "
               "forward to backward; set reshard_after_forward=no";
    }
    if (s->accumulate_sync != PLAN_SYNC_LAST) {
        return "reduces gradients only after the last microbatch; set accumulate_sync=last";
    }
    if (s->reshard_after_backward == PLAN_NO) {
        return "keeps a stage's units whole to its last microbatch as it is; set "
               "reshard_after_backward=yes";
    }
    if (s->pipeline_schedule == PLAN_PIPELINE_1F1B && s->accumulate < s->pipeline) {
        return "needs at least as many microbatches per step, as Schedule1F1B does; raise "
               "accumulate, set pipeline_schedule=gpipe";
    }
    bool is_interleaved = s->pipeline_schedule == PLAN_PIPELINE_INTERLEAVED;
    bool of_several = is_interleaved || s->pipeline_schedule == PLAN_PIPELINE_LOOPED_BFS;
    if (of_several != (s->pipeline_stages > 1)) {
        return "has several stages per rank only with pipeline_schedule=interleaved-1f1b or "
               "looped-bfs, which need them; change pipeline_stages or pipeline_schedule";
    }
    if (is_interleaved && s->accumulate % plan_schedule_rounds(s->pipeline, s->accumulate)) {
        return "needs microbatches that make rounds of equal length, as ScheduleInterleaved1F1B "
               "does; make accumulate a multiple of pipeline";
    }
    if (s->zero_grad == PLAN_ZERO_KEEP) {
        return "is not planned with gradients that are kept; set zero_grad=drop";
    }
    if (s->host_reads != PLAN_READS_NONE) {
        return "is not planned with reads within a step; set host_reads=none";
    }
    if (s->wrap.choice != PLAN_WRAP_BLOCK || s->wrap_ends != PLAN_ENDS_ROOT) {
        return "is planned only with a unit for each block and one for the rest of a stage; set "
               "wrap=block and wrap_ends=root";
    }
    return why_not_with(s);
}

bool plan_strategy_pipeline_is_known(PlanStrategy *s, GError **error) {
    if (s->pipeline == 1) {
        bool is_open = s->pipeline_schedule == PLAN_PIPELINE_1F1B && s->pipeline_stages == 1;
        return plan_strategy_holds(
            is_open ? NULL
                    : "pipeline_schedule and pipeline_stages need stages; set pipeline, or "
                      "pipeline_schedule=1f1b and pipeline_stages=1",
            error);
    }
    if (!divides("pipeline", s->pipeline, s->ranks, "", error) ||
        !divides("tensor", s->tensor, s->ranks / s->pipeline, " of a stage (ranks / pipeline)",
                 error) ||
        !may_share("pipeline", s->pipeline, why_not_in_stages(s), error)) {
        return false;
    }
    if (s->reshard_after_forward.choice == PLAN_RESHARD_DEFAULT &&
        (s->sharding == PLAN_SHARDING_FULL ||
         s->sharding == PLAN_SHARDING_HYBRID)) { /* torchtitan's default with stages */
        s->reshard_after_forward.choice = PLAN_RESHARD_NO;
    }
    return true;
}

/* Experts that ranks share are recorded of FSDP2. */
static const char *why_not_beside_experts(const PlanStrategy *s) {
    if (s->flavour != PLAN_FLAVOUR_FSDP2) {
        return ONLY_FSDP2;
    }
    if (s->tensor > 1) {
        return "is not planned with layers that ranks share; set tensor=1";
    }
    if (s->wrap.choice != PLAN_WRAP_BLOCK || s->wrap_ends != PLAN_ENDS_ROOT) {
        return "is planned only with a unit for each block, one for its experts and one for the "
               "rest; set wrap=block and wrap_ends=root";
    }
    if (s->backward_prefetch != PLAN_PREFETCH_PRE ||
        s->forward_prefetch.choice != PLAN_FORWARD_PREFETCH_NO) {
        return "has its own lists of what is gathered ahead, as in torchtitan; set "
               "backward_prefetch=pre and forward_prefetch=no";
    }
    if (plan_strategy_reduce_dtype(s) == PLAN_FP16) {
        return "is planned only with gradients reduced in bf16 or fp32; set reduce_dtype=fp32";
    }
    return why_not_with(s);
}

/* All rows of all ranks are the most that one of them can get. */
static bool has_rows_enough(const PlanStrategy *s, GError **error) {
    if (s->expert == 1 || s->expert_overload <= (double)s->expert) {
        return true;
    }
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                "expert_overload=%g is more than all rows of %" G_GUINT64_FORMAT
                " ranks; set expert_overload=%" G_GUINT64_FORMAT,
                s->expert_overload, s->expert, s->expert);
    return false;
}

bool plan_strategy_experts_are_known(const PlanStrategy *s, GError **error) {
    const char *why = s->expert > 1 ? why_not_beside_experts(s) : NULL;
    const char *whose = s->pipeline > 1 ? OF_A_COPY " in a stage (ranks / pipeline)" : OF_A_COPY;
    return may_share("expert", s->expert, why, error) &&
           divides("expert", s->expert, plan_strategy_shard_ranks(s), whose, error) &&
           has_rows_enough(s, error);
}
