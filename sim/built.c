#include "sim/built.h"

static PlanForm form_for(const SimOptions *options, const Trace *trace) {
    bool is_for_one = !options->every_rank && options->rank == 0 && trace == NULL;
    return is_for_one ? PLAN_FORM_FOLDED : PLAN_FORM_WHOLE;
}

SimPrediction *sim_predict_built(SimBuild *build, gpointer self, Plan **plan,
                                 const ModelCluster *cluster, const SimOptions *options,
                                 Trace *trace, GError **error) {
    for (PlanForm form = form_for(options, trace);; form--) {
        GError *refusal = NULL;
        if (*plan == NULL) {
            *plan = build(self, form, &refusal);
        }
        SimPrediction *prediction =
            *plan != NULL ? sim_predict_settled(*plan, cluster, options, trace, &refusal) : NULL;
        if (!g_error_matches(refusal, SIM_ERROR, SIM_ERROR_FOLDED)) {
            if (refusal != NULL) {
                g_propagate_error(error, refusal);
            }
            return prediction;
        }
        g_error_free(refusal);
        g_clear_pointer(plan, plan_free);
    }
}
