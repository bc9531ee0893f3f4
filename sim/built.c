#include "sim/built.h"

#include "sim/predict.h"
#include "sim/settings.h"

static PlanForm form_for(const SimOptions *options, const Trace *trace) {
    bool is_for_one = !options->every_rank && options->rank == 0 && trace == NULL;
    return is_for_one ? PLAN_FORM_FOLDED : PLAN_FORM_WHOLE;
}

/* As --every-rank asks it. ret_traced: by rank; NULL: all are. Transfer full. */
static void play_each(SimOptions *options, const Plan *plan, const ModelCluster *cluster,
                      bool **ret_traced) {
    options->every_rank = true;
    options->jitter = sim_jitter_of(cluster);
    if (plan->world > SIM_FEW_RANKS) {
        options->traced = *ret_traced = g_new0(bool, plan->world);
        (*ret_traced)[0] = true;
    }
}

SimPrediction *sim_predict_built(SimBuild *build, gpointer self, Plan **plan,
                                 const ModelCluster *cluster, const SimOptions *asked, Trace *trace,
                                 GError **error) {
    SimOptions options = *asked;
    g_autofree bool *traced = NULL;
    for (PlanForm form = form_for(&options, trace);; form--) {
        GError *refusal = NULL;
        if (*plan == NULL) {
            *plan = build(self, form, &refusal);
        }
        bool are_unlike = *plan != NULL && sim_told_apart((*plan)->world, cluster) != NULL;
        if (are_unlike && !options.every_rank && !options.one_of_each) {
            play_each(&options, *plan, cluster, &traced);
        }
        if (*plan != NULL && (options.every_rank || are_unlike) && (*plan)->for_one) {
            plan_free(*plan);
            *plan = build(self, PLAN_FORM_WHOLE, &refusal);
        }
        SimPrediction *prediction =
            *plan != NULL ? sim_predict_settled(*plan, cluster, &options, trace, &refusal) : NULL;
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
