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

SimPrediction *cli_predict_figures(CliPlanSource *source, const char *name,
                                   const ModelCluster *cluster, Plan **ret_plan, GError **error) {
    g_autoptr(GError) refusal = NULL;
    g_autoptr(Plan) plan = cli_plan_source_load_folded(source, name, &refusal);
    SimPrediction *prediction =
        plan != NULL ? cli_predict_play(plan, cluster, NULL, &refusal) : NULL;
    if (g_error_matches(refusal, SIM_ERROR, SIM_ERROR_FOLDED)) {
        g_clear_error(&refusal);
        plan_free(plan);
        plan = cli_plan_source_load_for_one(source, name, &refusal);
        prediction = plan != NULL ? cli_predict_play(plan, cluster, NULL, &refusal) : NULL;
    }
    if (prediction == NULL) {
        g_propagate_error(error, g_steal_pointer(&refusal));
        return NULL;
    }
    *ret_plan = g_steal_pointer(&plan);
    return prediction;
}
