#include "cli/published/run-kind.h"

#include <string.h>

#include "plan/strategy/strategy.h"

static const struct {
    const char *name, *words;
} kinds[CLI_N_RUN_KINDS] = {
    [CLI_RUN_COMPUTES] = {"computes", "bound by arithmetic"},
    [CLI_RUN_MOVES] = {"moves", "bound by memory bandwidth"},
    [CLI_RUN_LINKS] = {"links", "bound by links between GPUs"},
    [CLI_RUN_HOST] = {"host", "bound by the host"},
    [CLI_RUN_CONTEXT] = {"context", "with context parallelism"},
    [CLI_RUN_FLOAT8] = {"float8", "in float8"},
    [CLI_RUN_RETRIES] = {"retries", "with allocation retries"},
    [CLI_RUN_TOO_LARGE] = {"too_large", "too large for the GPU here"},
};

/* CLI_N_RUN_KINDS: of none that a strategy tells. */
static CliRunKind asked_for(const Plan *plan) {
    PlanStrategy strategy;
    bool is_read = plan_strategy_of_text(&strategy, plan->strategy, NULL);
    return is_read && strategy.context > 1                  ? CLI_RUN_CONTEXT
           : is_read && strategy.float8 != PLAN_FLOAT8_NONE ? CLI_RUN_FLOAT8
                                                            : CLI_N_RUN_KINDS;
}

static bool is_bound_by(const SimPrediction *prediction, SimCause cause) {
    return g_strcmp0(prediction->bound_by, prediction->cause_names[cause]) == 0;
}

/* Launches are the host's; what a collective slows, or other ranks hold up, is of the links. */
static CliRunKind bound_of(const SimPrediction *prediction) {
    return is_bound_by(prediction, SIM_CAUSE_ARITHMETIC) ? CLI_RUN_COMPUTES
           : is_bound_by(prediction, SIM_CAUSE_MEMORY)   ? CLI_RUN_MOVES
           : is_bound_by(prediction, SIM_CAUSE_HOST) || is_bound_by(prediction, SIM_CAUSE_OVERHEAD)
               ? CLI_RUN_HOST
               : CLI_RUN_LINKS;
}

CliRunKind cli_run_kind(const Plan *plan, const SimPrediction *prediction) {
    CliRunKind asked = asked_for(plan);
    return !prediction->fits               ? CLI_RUN_TOO_LARGE
           : prediction->alloc_retries > 0 ? CLI_RUN_RETRIES
           : asked != CLI_N_RUN_KINDS      ? asked
                                           : bound_of(prediction);
}

const char *cli_run_kind_name(CliRunKind kind) {
    return kinds[kind].name;
}

const char *cli_run_kind_words(CliRunKind kind) {
    return kinds[kind].words;
}

char *cli_run_gpu(const ModelCluster *cluster) {
    return g_strndup(cluster->model, strcspn(cluster->model, "- "));
}
