/* cli/explain/enough.c - what ran out of memory, played as if it sufficed. */
#include "cli/explain/explain.h"
#include "sim/settings.h"
#include "sim/settled.h"

/* By rank, whether it has rows. Transfer full. */
static bool *ranks_of(const Trace *trace, const Plan *plan) {
    bool *traced = g_new0(bool, plan->world);
    for (guint i = 0; i < trace->ranks->len; i++) {
        traced[g_array_index(trace->ranks, TraceRank, i).rank] = true;
    }
    return traced;
}

Trace *cli_explain_enough(const CliSubject *subject, GError **error) {
    if (subject->prediction->fits) {
        return NULL;
    }
    g_autoptr(SimSettings) asked = sim_settings_read(subject->trace, error);
    if (asked == NULL) {
        return NULL;
    }
    SimOptions options = asked->options;
    options.boundless = true;
    options.steps = options.every_rank ? options.steps : SIM_STEPS_IT_TAKES;
    g_autofree bool *traced = ranks_of(subject->trace, subject->plan);
    options.traced = options.every_rank ? traced : NULL;
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction =
        sim_predict_settled(subject->plan, subject->cluster, &options, trace, error);
    return prediction != NULL ? g_steal_pointer(&trace) : NULL;
}
