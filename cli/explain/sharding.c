/* Every sharding strategy over one network: who keeps what, what goes over the wires, its cost. */
#include "cli/explain/explain.h"
#include "cli/plan-source.h"
#include "cli/predict/predict.h"
#include "trace/scale.h"

static const struct {
    const char *sharding;
    /* What a rank keeps of parameters, gradients and the optimizer's state. */
    const char *parameters, *gradients, *state;
    const char *gathered, *dropped;
} strategies[] = {
    {"none", "whole", "whole", "whole", "nothing", "nothing"},
    {"optimizer-only", "whole", "whole", "a share", "parameters, after the optimizer", "nothing"},
    {"grad-op", "a share", "a share", "a share", "units, before forward", "units, after backward"},
    {"full", "a share", "a share", "a share", "units, before forward and before backward",
     "units, after forward and after backward"},
    {"hybrid-grad-op", "a share of a group", "a share of a group", "a share of a group",
     "units, before forward, within the group", "units, after backward"},
    {"hybrid", "a share of a group", "a share of a group", "a share of a group",
     "units, before forward and before backward, within the group",
     "units, after forward and after backward"},
};

static void append_size(GString *text, double bytes) {
    TraceScale scale = trace_scale_bytes(bytes);
    g_autofree char *size = g_strdup_printf("%.2f %s", bytes / scale.per_unit, scale.unit);
    g_string_append_printf(text, " %11s", size);
}

static double kept(const SimPrediction *prediction, unsigned category) {
    return (double)cli_predict_category_bytes(prediction->peak.by_sub, category);
}

static void append_figures(GString *text, const SimPrediction *prediction) {
    double bytes = 0, exposed_ns = 0;
    guint n = 0;
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        n += prediction->collectives[kind].count;
        bytes += prediction->collectives[kind].bytes;
        exposed_ns += (double)prediction->collectives[kind].exposed_ns;
    }
    append_size(text, kept(prediction, PLAN_CATEGORY_PARAMETERS));
    append_size(text, kept(prediction, PLAN_CATEGORY_GRADIENTS));
    append_size(text, kept(prediction, PLAN_CATEGORY_OPTIMIZER));
    append_size(text, (double)prediction->peak.at.allocated_bytes);
    g_string_append_printf(text, " %6u", n);
    append_size(text, bytes);
    g_string_append_printf(text, " %10.3f %10.3f  %s\n", exposed_ns / 1e6,
                           (double)prediction->median_step_ns / 1e6,
                           prediction->fits ? "fits" : "does not fit");
}

static bool append_strategy(GString *text, CliPlanSource *source, const char *network,
                            const char *sharding, const ModelCluster *cluster, GError **error) {
    g_autoptr(GError) refusal = NULL;
    if (!cli_plan_source_set(source, "sharding", sharding, error)) {
        return false;
    }
    g_string_append_printf(text, "%-15s", sharding);
    g_autoptr(Plan) plan = cli_plan_source_load(source, network, &refusal);
    g_autoptr(SimPrediction) prediction =
        plan != NULL ? cli_predict_play(plan, cluster, NULL, &refusal) : NULL;
    if (plan == NULL && !g_error_matches(refusal, PLAN_ERROR, PLAN_ERROR_VALUE)) {
        g_propagate_error(error, g_steal_pointer(&refusal));
        return false;
    }
    if (prediction == NULL) {
        g_string_append_printf(text, " not possible: %s\n", refusal->message);
    } else {
        append_figures(text, prediction);
    }
    return true;
}

GString *cli_explain_sharding(CliPlanSource *source, const char *network,
                              const ModelCluster *cluster, GError **error) {
    g_autofree char *settings = cli_plan_source_text(source);
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text, "%s%s%s, predicted on %s\n\n", network,
                           *settings != '\0' ? ", " : "", settings, cluster->name);
    g_string_append_printf(text, "%-15s %-18s %-18s %-18s gathered; dropped\n", "a rank keeps of",
                           "parameters", "gradients", "optimizer state");
    for (guint i = 0; i < G_N_ELEMENTS(strategies); i++) {
        g_string_append_printf(text, "%-15s %-18s %-18s %-18s %s; %s\n", strategies[i].sharding,
                               strategies[i].parameters, strategies[i].gradients,
                               strategies[i].state, strategies[i].gathered, strategies[i].dropped);
    }
    g_string_append(text, "\nat the peak of allocated, and in a steady step\n"
                          "                 parameters   gradients   optimizer        peak  calls "
                          "    tensors exposed ms    step ms\n");
    for (guint i = 0; i < G_N_ELEMENTS(strategies); i++) {
        if (!append_strategy(text, source, network, strategies[i].sharding, cluster, error)) {
            return NULL;
        }
    }
    return g_steal_pointer(&text);
}
