#include "sim/settled.h"

#include "plan/strategy/strategy.h"

enum {
    ENOUGH_PASSES = 320 /* 20 steps of 16 */
};

/* Steps of many passes show in fewer of them how often memory is given back. */
static uint32_t settled_steps(const Plan *plan) {
    PlanStrategy strategy;
    bool is_read = plan_strategy_of_text(&strategy, plan->strategy, NULL);
    uint64_t passes = is_read ? MAX(1, strategy.accumulate) : 1;
    return (uint32_t)CLAMP(ENOUGH_PASSES / passes, SIM_DEFAULT_STEPS, SIM_STEPS_SETTLED);
}

static bool has_settled(const SimPrediction *prediction) {
    return !prediction->fits || prediction->alloc_retries == 0;
}

static void empty(Trace *trace) {
    Trace *fresh = trace_new();
    Trace filled = *trace;
    *trace = *fresh;
    *fresh = filled;
    trace_free(fresh);
}

SimPrediction *sim_predict_settled(const Plan *plan, const ModelCluster *cluster,
                                   const SimOptions *asked, Trace *trace, GError **error) {
    SimOptions options = *asked;
    bool is_free = asked->steps == SIM_STEPS_IT_TAKES;
    options.steps = is_free ? SIM_DEFAULT_STEPS : asked->steps;
    SimPrediction *prediction = sim_predict(plan, cluster, &options, trace, error);
    if (prediction == NULL || !is_free || asked->every_rank || has_settled(prediction)) {
        return prediction;
    }
    options.steps = settled_steps(plan);
    if (options.steps == SIM_DEFAULT_STEPS) {
        return prediction;
    }
    sim_prediction_free(prediction);
    if (trace != NULL) {
        empty(trace);
    }
    return sim_predict(plan, cluster, &options, trace, error);
}
