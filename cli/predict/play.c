/* cli/predict/play.c - a plan played as most commands want it. */
#include "cli/predict/predict.h"

SimPrediction *cli_predict_play(const Plan *plan, const ModelCluster *cluster, Trace *trace,
                                GError **error) {
    SimOptions options = {.steps = SIM_DEFAULT_STEPS};
    g_autoptr(SimPrediction) prediction = sim_predict(plan, cluster, &options, trace, error);
    if (prediction != NULL && prediction->unsupported_dtype != NULL) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s cannot compute in %s; choose another --param-dtype",
                    prediction->unsupported_on, prediction->unsupported_dtype);
        return NULL;
    }
    return g_steal_pointer(&prediction);
}
