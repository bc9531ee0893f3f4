/* cli/predict/play.c - a plan played as most commands want it. */
#include "cli/predict/predict.h"

const char *cli_predict_other_dtype(const SimPrediction *prediction) {
    PlanDtype dtype;
    bool is_float8 =
        plan_dtype_parse(prediction->unsupported_dtype, &dtype) && plan_dtype_is_float8(dtype);
    return is_float8 ? "choose --float8 none" : "choose another --param-dtype";
}

SimPrediction *cli_predict_play(const Plan *plan, const ModelCluster *cluster, Trace *trace,
                                GError **error) {
    SimOptions options = {.steps = SIM_DEFAULT_STEPS};
    g_autoptr(SimPrediction) prediction = sim_predict(plan, cluster, &options, trace, error);
    if (prediction != NULL && prediction->unsupported_dtype != NULL) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s cannot compute in %s; %s",
                    prediction->unsupported_on, prediction->unsupported_dtype,
                    cli_predict_other_dtype(prediction));
        return NULL;
    }
    return g_steal_pointer(&prediction);
}
