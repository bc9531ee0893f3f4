/* cli/predict/play.c - a plan played as most commands want it. */
#include "cli/predict/predict.h"
#include "sim/built.h"
#include "sim/settings.h"

const char *cli_predict_other_dtype(const SimPrediction *prediction) {
    PlanDtype dtype;
    if (g_str_equal(prediction->unsupported_dtype, "mxfp8")) {
        return "choose --float8 rowwise or none";
    }
    bool is_float8 =
        plan_dtype_parse(prediction->unsupported_dtype, &dtype) && plan_dtype_is_float8(dtype);
    return is_float8 ? "choose --float8 none" : "choose another --param-dtype";
}

/* Of a GPU that cannot compute in the plan's dtype nothing is told but that. */
static SimPrediction *if_computed(SimPrediction *prediction, GError **error) {
    if (prediction != NULL && prediction->unsupported_dtype != NULL) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s cannot compute in %s; %s",
                    prediction->unsupported_on, prediction->unsupported_dtype,
                    cli_predict_other_dtype(prediction));
        sim_prediction_free(prediction);
        return NULL;
    }
    return prediction;
}

typedef struct {
    CliPlanSource *source;
    const char *name;
} Named;

static Plan *load(gpointer self, PlanForm form, GError **error) {
    const Named *named = self;
    return cli_plan_source_load(named->source, named->name, form, error);
}

SimPrediction *cli_predict(CliPlanSource *source, const char *name, Plan **plan,
                           const ModelCluster *cluster, const SimOptions *options, Trace *trace,
                           GError **error) {
    Named named = {source, name};
    return sim_predict_built(load, &named, plan, cluster, options, trace, error);
}

SimPrediction *cli_predict_play(CliPlanSource *source, const char *name, Plan **plan,
                                const ModelCluster *cluster, Trace *trace, GError **error) {
    SimOptions options = {.steps = SIM_STEPS_IT_TAKES};
    return if_computed(cli_predict(source, name, plan, cluster, &options, trace, error), error);
}

SimPrediction *cli_predict_roughly(CliPlanSource *source, const char *name, Plan **plan,
                                   const ModelCluster *cluster, GError **error) {
    SimOptions options = {
        .steps = SIM_STEPS_IT_TAKES, .one_of_each = true, .jitter = sim_jitter_of(cluster)};
    return if_computed(cli_predict(source, name, plan, cluster, &options, NULL, error), error);
}
