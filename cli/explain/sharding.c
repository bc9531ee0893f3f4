/* Every sharding strategy over one network: who keeps what, what goes over the wires, its cost. */
#include "cli/explain/explain.h"
#include "cli/plan/trained.h"
#include "cli/predict/precision.h"
#include "cli/predict/predict.h"
#include "cli/source/plan-source.h"
#include "sim/figures.h"
#include "trace/json.h"
#include "trace/scale.h"

static const struct {
    const char *sharding;
    /* What a rank keeps of parameters, gradients and the optimizer's state. */
    const char *parameters, *gradients, *state;
    const char *gathered; /* and when that is dropped */
} strategies[] = {
    {"none", "whole", "whole", "whole", "nothing"},
    {"optimizer-only", "whole", "whole", "a share",
     "parameters, after the optimizer's step; they stay whole"},
    {"grad-op", "a share", "a share", "a share",
     "units, before forward; they stay whole until their backward is through"},
    {"full", "a share", "a share", "a share",
     "units, before forward and before backward; dropped after each"},
    {"hybrid-grad-op", "a share of a group", "a share of a group", "a share of a group",
     "as grad-op, within the group; gradients are reduced between groups too"},
    {"hybrid", "a share of a group", "a share of a group", "a share of a group",
     "as full, within the group; gradients are reduced between groups too"},
};

static void append_size(GString *text, double bytes) {
    g_autofree char *size = trace_bytes_text(bytes);
    g_string_append_printf(text, " %11s", size);
}

static double kept(const SimPrediction *prediction, unsigned category) {
    return (double)sim_category_bytes(prediction->peak.by_sub, category);
}

typedef struct {
    guint calls; /* of collectives */
    double bytes, exposed_ns;
} Traffic;

static Traffic traffic_of(const SimPrediction *prediction) {
    Traffic traffic = {0};
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        traffic.calls += prediction->collectives[kind].count;
        traffic.bytes += prediction->collectives[kind].bytes;
        traffic.exposed_ns += (double)prediction->collectives[kind].exposed_ns;
    }
    return traffic;
}

static void append_peak(GString *text, const char *sharding, const SimPrediction *prediction) {
    g_string_append_printf(text, "%-15s", sharding);
    append_size(text, kept(prediction, PLAN_CATEGORY_PARAMETERS));
    append_size(text, kept(prediction, PLAN_CATEGORY_GRADIENTS));
    append_size(text, kept(prediction, PLAN_CATEGORY_OPTIMIZER));
    append_size(text, (double)prediction->peak.at.allocated_bytes);
    g_string_append_printf(text, "  %s\n", prediction->fits ? "fits" : "does not fit");
}

static void append_step(GString *text, const char *sharding, const SimPrediction *prediction) {
    Traffic traffic = traffic_of(prediction);
    g_string_append_printf(text, "%-15s %6u", sharding, traffic.calls);
    append_size(text, traffic.bytes);
    g_string_append_printf(text, " %10.3f %10.3f\n", traffic.exposed_ns / 1e6,
                           (double)prediction->median_step_ns / 1e6);
}

/* NULL with ret_refusal: PyTorch or the machine refuses it. NULL with error: it cannot be read. */
static SimPrediction *predict(CliPlanSource *source, const char *network, const char *sharding,
                              const ModelCluster *cluster, Plan **ret_plan, char **ret_refusal,
                              GError **error) {
    g_autoptr(GError) refusal = NULL;
    if (!cli_plan_source_set(source, "sharding", sharding, error)) {
        return NULL;
    }
    g_autoptr(Plan) plan = NULL;
    g_autoptr(SimPrediction) prediction =
        cli_predict_play(source, network, &plan, cluster, NULL, &refusal);
    if (plan == NULL && !g_error_matches(refusal, PLAN_ERROR, PLAN_ERROR_VALUE)) {
        g_propagate_error(error, g_steal_pointer(&refusal));
    } else if (prediction == NULL) {
        *ret_refusal = g_strdup(refusal->message);
    }
    *ret_plan = g_steal_pointer(&plan);
    return g_steal_pointer(&prediction);
}

enum {
    WHOLE_STAGES = 3 /* of a rank, at once: plan/autograd/stages/schedule.h */
};

/* Of full and grad-op (hybrids say that they are as these) where the table's words are not
 * true; NULL where they are. */
static const char *gathered_instead(const char *sharding, const Plan *plan) {
    PlanStrategy strategy;
    bool is_full = g_str_equal(sharding, "full");
    if (plan == NULL || !(is_full || g_str_equal(sharding, "grad-op")) ||
        !plan_strategy_of_text(&strategy, plan->strategy, NULL)) {
        return NULL;
    }
    PlanReshard reshard = (PlanReshard)strategy.reshard_after_forward.choice;
    if (is_full && reshard == PLAN_RESHARD_RANKS) {
        return "units, before forward and before backward; kept by fewer ranks between them";
    }
    if (is_full && reshard != PLAN_RESHARD_NO) {
        return NULL;
    }
    return strategy.pipeline_stages > WHOLE_STAGES
               ? "units of the three stages that are needed next; dropped where others are"
           : strategy.pipeline > 1
               ? "units, before a step's first forward; whole until its last backward is through"
               : "units, before forward; they stay whole until their backward is through";
}

typedef struct {
    GString *gathered, *peaks, *steps;
} Tables;

/* A row of each table, or in that of peaks the one line that says why there is none. */
static bool append_strategy(Tables *tables, guint i, CliPlanSource *source, const char *network,
                            const ModelCluster *cluster, GError **error) {
    const char *sharding = strategies[i].sharding;
    g_autofree char *refusal = NULL;
    g_autoptr(Plan) plan = NULL;
    g_autoptr(SimPrediction) prediction =
        predict(source, network, sharding, cluster, &plan, &refusal, error);
    if (prediction == NULL && refusal == NULL) {
        return false;
    }
    const char *instead = gathered_instead(sharding, plan);
    g_string_append_printf(tables->gathered, "%-15s %s\n", sharding,
                           instead != NULL ? instead : strategies[i].gathered);
    if (prediction == NULL) {
        g_string_append_printf(tables->peaks, "%-15s not possible: %s\n", sharding, refusal);
    } else {
        append_peak(tables->peaks, sharding, prediction);
        append_step(tables->steps, sharding, prediction);
    }
    return true;
}

/* Of which the table speaks: gradients and state are of what is trained alone, and of a rank's part
 * where layers are shared. A strategy that is no plan is refused below, with the others. */
static bool append_what_is_sharded(GString *text, CliPlanSource *source, const char *network,
                                   const ModelCluster *cluster, GError **error) {
    g_autoptr(GError) refusal = NULL;
    g_autoptr(Plan) plan = cli_plan_source_load(source, network, PLAN_FORM_FOR_ONE, &refusal);
    if (plan == NULL && !g_error_matches(refusal, PLAN_ERROR, PLAN_ERROR_VALUE)) {
        g_propagate_error(error, g_steal_pointer(&refusal));
        return false;
    }
    g_autofree char *precision = plan != NULL ? cli_precision_text(source, plan, cluster) : NULL;
    if (precision != NULL) {
        g_string_append_printf(text, "%s\n\n", precision);
    }
    g_autofree char *trained = plan != NULL ? cli_trained_text(plan) : NULL;
    if (trained != NULL) {
        g_string_append_printf(text, "%s, and have no gradient and no state\n\n", trained);
    }
    if (plan != NULL && plan->axes[PLAN_AXIS_PIPELINE] > 1) {
        g_string_append_printf(
            text,
            "%u stages share the blocks: the tables below are of one rank's stage, or "
            "stages\n\n",
            plan->axes[PLAN_AXIS_PIPELINE]);
    }
    if (plan != NULL && plan->axes[PLAN_AXIS_TENSOR] > 1) {
        g_string_append_printf(
            text,
            "%u ranks share each layer (tensor parallel): the tables below are of one "
            "rank's part\n\n",
            plan->axes[PLAN_AXIS_TENSOR]);
    }
    return true;
}

GString *cli_explain_sharding(CliPlanSource *source, const char *network,
                              const ModelCluster *cluster, GError **error) {
    g_autofree char *settings = cli_plan_source_text(source);
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text, "%s%s%s, predicted on %s\n\n", network,
                           *settings != '\0' ? ", " : "", settings, cluster->name);
    if (!append_what_is_sharded(text, source, network, cluster, error)) {
        return NULL;
    }
    g_string_append_printf(text, "%-15s %-18s %-18s %s\n", "a rank keeps", "parameters",
                           "gradients", "optimizer state");
    for (guint i = 0; i < G_N_ELEMENTS(strategies); i++) {
        g_string_append_printf(text, "%-15s %-18s %-18s %s\n", strategies[i].sharding,
                               strategies[i].parameters, strategies[i].gradients,
                               strategies[i].state);
    }
    g_autoptr(GString) gathered = g_string_new("\nwhat is gathered, and when\n");
    g_autoptr(GString) peaks =
        g_string_new("\nheld at the peak of allocated memory\n"
                     "                 parameters   gradients   optimizer  everything\n");
    g_autoptr(GString) steps =
        g_string_new("\nin a steady step\n"
                     "           collectives     tensors exposed ms    step ms\n");
    Tables tables = {gathered, peaks, steps};
    for (guint i = 0; i < G_N_ELEMENTS(strategies); i++) {
        if (!append_strategy(&tables, i, source, network, cluster, error)) {
            return NULL;
        }
    }
    g_string_append_printf(text, "%s%s%s", gathered->str, peaks->str, steps->str);
    return g_steal_pointer(&text);
}

static void add_figures(JsonBuilder *json, const SimPrediction *prediction) {
    Traffic traffic = traffic_of(prediction);
    trace_json_add_bool(json, "fits", prediction->fits);
    trace_json_add_real(json, "step_ms", sim_ms(prediction->median_step_ns));
    trace_json_add_int(json, "peak_allocated_bytes", prediction->peak.at.allocated_bytes);
    trace_json_add_int(json, "peak_reserved_bytes", prediction->peak_reserved_bytes);
    trace_json_begin_object(json, "peak_by_category");
    for (unsigned category = 0; category < PLAN_N_CATEGORIES; category++) {
        trace_json_add_number(json, plan_category_name(category), kept(prediction, category));
    }
    json_builder_end_object(json);
    trace_json_add_int(json, "collectives", traffic.calls);
    trace_json_add_number(json, "collective_bytes", traffic.bytes);
    trace_json_add_real(json, "exposed_ms", traffic.exposed_ns / 1e6);
}

JsonBuilder *cli_explain_sharding_json(CliPlanSource *source, const char *network,
                                       const ModelCluster *cluster, GError **error) {
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    trace_json_add_text(json, "network", network);
    trace_json_add_text(json, "cluster", cluster->name);
    trace_json_begin_array(json, "shardings");
    for (guint i = 0; i < G_N_ELEMENTS(strategies); i++) {
        g_autofree char *refusal = NULL;
        g_autoptr(Plan) plan = NULL;
        g_autoptr(SimPrediction) prediction =
            predict(source, network, strategies[i].sharding, cluster, &plan, &refusal, error);
        if (prediction == NULL && refusal == NULL) {
            return NULL;
        }
        json_builder_begin_object(json);
        trace_json_add_text(json, "sharding", strategies[i].sharding);
        if (prediction == NULL) {
            trace_json_add_text(json, "refusal", refusal);
        } else {
            add_figures(json, prediction);
        }
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
    return g_steal_pointer(&json);
}
