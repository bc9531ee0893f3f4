/* plan/strategy/follows.c - what follows from a strategy's keys. */
#include "plan/plan.h"
#include "plan/strategy/private.h"

bool plan_strategy_is_fsdp(const PlanStrategy *strategy) {
    return strategy->flavour == PLAN_FLAVOUR_FSDP1 || strategy->flavour == PLAN_FLAVOUR_FSDP2;
}

bool plan_strategy_is_sgd(const PlanStrategy *strategy) {
    return strategy->optimizer == PLAN_OPTIMIZER_SGD ||
           strategy->optimizer == PLAN_OPTIMIZER_MOMENTUM;
}

bool plan_strategy_steps_on_host(const PlanStrategy *strategy) {
    return strategy->offload == PLAN_OFFLOAD_OPTIMIZER || strategy->offload == PLAN_OFFLOAD_PARAMS;
}

bool plan_strategy_shares_as_torchtitan(const PlanStrategy *strategy) {
    return strategy->tensor_plan == PLAN_TENSOR_TORCHTITAN &&
           strategy->sequence_parallel == PLAN_YES;
}

bool plan_strategy_checkpoints_parts(const PlanStrategy *strategy) {
    return strategy->checkpointing.choice == PLAN_CHECKPOINTING_PARTS ||
           strategy->checkpointing.choice == PLAN_CHECKPOINTING_MODULE;
}

bool plan_strategy_is_after(const PlanStrategy *strategy, PlanPytorch version) {
    return plan_pytorch_is_after((PlanPytorch)strategy->pytorch, version);
}

bool plan_strategy_is_hybrid(const PlanStrategy *strategy) {
    return strategy->sharding == PLAN_SHARDING_HYBRID ||
           strategy->sharding == PLAN_SHARDING_HYBRID_GRAD_OP;
}

uint64_t plan_strategy_evaluated_at_once(const PlanStrategy *strategy) {
    return strategy->eval_micro_batch ? strategy->eval_micro_batch : strategy->micro_batch;
}

uint64_t plan_strategy_ranks_of_part(const PlanStrategy *strategy) {
    return strategy->ranks / strategy->tensor / strategy->pipeline;
}

uint64_t plan_strategy_shard_ranks(const PlanStrategy *strategy) {
    return strategy->sharding == PLAN_SHARDING_NONE ? 1
           : plan_strategy_is_hybrid(strategy)
               ? plan_strategy_ranks_of_part(strategy) / strategy->replicate
               : plan_strategy_ranks_of_part(strategy);
}

uint64_t plan_strategy_alike_ranks(const PlanStrategy *strategy) {
    return strategy->expert > 1 ? plan_strategy_shard_ranks(strategy) / strategy->expert : 1;
}

uint64_t plan_strategy_part_ranks(const PlanStrategy *strategy) {
    const PlanVariant *reshard = &strategy->reshard_after_forward;
    return reshard->choice == PLAN_RESHARD_RANKS ? (uint64_t)reshard->number : 0;
}

uint64_t plan_strategy_forward_prefetch(const PlanStrategy *strategy) {
    const PlanVariant *ahead = &strategy->forward_prefetch;
    return ahead->choice == PLAN_FORWARD_PREFETCH_UNITS
               ? (uint64_t)ahead->number
               : ahead->choice == PLAN_FORWARD_PREFETCH_YES;
}

bool plan_strategy_reads_norm(const PlanStrategy *strategy) {
    return strategy->host_reads == PLAN_READS_NORM || strategy->host_reads == PLAN_READS_BOTH;
}

double plan_strategy_first_scale(const PlanStrategy *strategy) {
    switch ((PlanLossScale)strategy->loss_scale.choice) {
    case PLAN_LOSS_SCALE_NONE:
        return 0;
    case PLAN_LOSS_SCALE_DYNAMIC:
        return 65536; /* torch/amp/grad_scaler.py, PyTorch 2.13 */
    case PLAN_LOSS_SCALE_FROM:
        return strategy->loss_scale.number;
    }
    g_assert_not_reached();
}

bool plan_strategy_is_one_program(const PlanStrategy *strategy) {
    return strategy->compile != PLAN_COMPILE_BLOCK &&
           (strategy->flavour == PLAN_FLAVOUR_PLAIN || strategy->flavour == PLAN_FLAVOUR_DDP);
}

PlanDtype plan_strategy_model_dtype(const PlanStrategy *strategy) {
    return (PlanDtype)strategy->model_dtype;
}

PlanDtype plan_strategy_param_dtype(const PlanStrategy *strategy) {
    return strategy->param_dtype == PLAN_PARAM_MODEL ? plan_strategy_model_dtype(strategy)
                                                     : (PlanDtype)(strategy->param_dtype - 1);
}

PlanDtype plan_strategy_state_dtype(const PlanStrategy *strategy, PlanDtype owned) {
    return strategy->state_dtype == PLAN_STATE_PARAM ? owned
                                                     : (PlanDtype)(strategy->state_dtype - 1);
}

bool plan_strategy_copies_results(const PlanStrategy *strategy) {
    return strategy->find_unused == PLAN_YES || strategy->static_graph == PLAN_YES;
}

PlanDtype plan_strategy_output_dtype(const PlanStrategy *strategy) {
    return strategy->output_dtype == PLAN_OUTPUT_NONE ? plan_strategy_param_dtype(strategy)
                                                      : (PlanDtype)(strategy->output_dtype - 1);
}

/* FSDP2 of 2.15, told none, reduces in the dtype that a parameter's gradient has by itself. */
PlanDtype plan_strategy_reduce_dtype(const PlanStrategy *strategy) {
    bool is_of_shards =
        strategy->flavour == PLAN_FLAVOUR_FSDP2 && strategy->pytorch == PLAN_PYTORCH_2_15;
    return strategy->reduce_dtype != PLAN_REDUCE_PARAM ? (PlanDtype)(strategy->reduce_dtype - 1)
           : is_of_shards                              ? plan_strategy_model_dtype(strategy)
                                                       : plan_strategy_param_dtype(strategy);
}
