#include "cli/predict/edge.h"

#include "plan/strategy/strategy.h"
#include "sim/settled.h"
#include "trace/json.h"
#include "trace/scale.h"

static double percent_left(uint64_t reserved, const SimPrediction *prediction) {
    double have = (double)prediction->allocator_bytes;
    return 100 * (have - (double)reserved) / have;
}

/* Where it does not fit, peaks are as though there were no limit. */
static bool is_near(const SimPrediction *prediction) {
    return prediction->fits
               ? percent_left(prediction->peak_reserved_bytes, prediction) < 100 * CLI_EDGE_SHARE
               : prediction->peak_active_bytes <= prediction->allocator_bytes;
}

/* Of a plan whose allocator is PyTorch's as it comes. */
static bool may_expand(const Plan *plan, const ModelCluster *cluster, const SimOptions *asked) {
    const char *conf;
    return cluster->device_kind == MODEL_DEVICE_GPU && !asked->every_rank &&
           plan_allocator_conf(plan->strategy, &conf, NULL) && conf != NULL && *conf == '\0';
}

static void try_expandable(CliEdge *edge, const Plan *plan, const ModelCluster *cluster,
                           const SimOptions *asked) {
    MemoryOptions expandable;
    SimOptions options = *asked;
    if (!may_expand(plan, cluster, asked) ||
        !memory_options_parse("expandable_segments:True", &expandable, NULL)) {
        return;
    }
    options.allocator = &expandable;
    options.steps = SIM_STEPS_IT_TAKES;
    options.wanted = SIM_WANTED_FIT;
    g_autoptr(SimPrediction) with = sim_predict_settled(plan, cluster, &options, NULL, NULL);
    edge->is_known = with != NULL;
    edge->fits = with != NULL && with->fits;
    if (edge->fits) {
        edge->expandable_bytes = with->peak_reserved_bytes;
        edge->n_retries = with->alloc_retries;
        edge->n_steps = with->n_steps;
    }
}

CliEdge cli_edge_of(const Plan *plan, const ModelCluster *cluster, const SimOptions *asked,
                    const SimPrediction *prediction) {
    CliEdge edge = {.is_near = is_near(prediction)};
    if (edge.is_near) {
        uint64_t reserved = prediction->peak_reserved_bytes;
        edge.lost_bytes = reserved - MIN(reserved, prediction->peak_active_bytes);
    }
    if (edge.is_near && prediction->fits) { /* else it is a way to fit, or none */
        edge.left_percent = percent_left(prediction->peak_reserved_bytes, prediction);
        try_expandable(&edge, plan, cluster, asked);
    }
    return edge;
}

char *cli_edge_text(const CliEdge *edge, const SimPrediction *prediction) {
    GString *text = g_string_new(NULL);
    g_autofree char *lost = trace_bytes_text((double)edge->lost_bytes);
    g_autofree char *active = trace_bytes_text((double)prediction->peak_active_bytes);
    if (edge->is_near && prediction->fits) {
        g_string_append_printf(text,
                               "  near the edge: %.1f %% left; %s of what is reserved is "
                               "fragmentation, which a little more of anything changes\n",
                               edge->left_percent, lost);
    } else if (edge->is_near) {
        g_string_append_printf(text,
                               "  near the edge: tensors alone (%s at most) would fit; "
                               "fragmentation decides, which a little more of anything changes\n",
                               active);
    }
    if (edge->fits) {
        g_autofree char *with = trace_bytes_text((double)edge->expandable_bytes);
        g_autofree char *retries = trace_retries_text(edge->n_retries, edge->n_steps);
        g_string_append_printf(text,
                               "  with --allocator expandable: %s reserved, %.1f %% left, %s\n",
                               with, percent_left(edge->expandable_bytes, prediction),
                               edge->n_retries > 0 ? retries : "no allocation retries");
    } else if (edge->is_known) {
        g_string_append(text, "  with --allocator expandable it does not fit\n");
    }
    return g_string_free(text, FALSE);
}

void cli_edge_add_json(const CliEdge *edge, const SimPrediction *prediction, JsonBuilder *json) {
    if (!edge->is_near) {
        return;
    }
    trace_json_begin_object(json, "near_edge");
    trace_json_add_int(json, "fragmentation_bytes", edge->lost_bytes);
    if (prediction->fits) {
        trace_json_add_real(json, "left_percent", edge->left_percent);
    }
    if (edge->is_known) {
        trace_json_add_bool(json, "expandable_fits", edge->fits);
    }
    if (edge->fits) {
        trace_json_add_int(json, "expandable_peak_reserved_bytes", edge->expandable_bytes);
        trace_json_add_int(json, "expandable_alloc_retries", edge->n_retries);
    }
    json_builder_end_object(json);
}
