#include "sim/settled.h"

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
    sim_prediction_free(prediction);
    if (trace != NULL) {
        empty(trace);
    }
    options.steps = SIM_STEPS_SETTLED;
    return sim_predict(plan, cluster, &options, trace, error);
}
