/* cli/diagnose/json.c - a diagnosis for programs: times in ms, sizes in bytes, shares of 1. */
#include <math.h>

#include "cli/diagnose/diagnose.h"
#include "trace/ended.h"
#include "trace/json.h"

static double ms(double ns) {
    return ns / 1e6;
}

static const CliRemedy *remedy_at(const CliDiagnosis *diagnosis, guint i) {
    return &g_array_index(diagnosis->remedies, CliRemedy, i);
}

/* ---- what there is ---- */

static void add_memory(JsonBuilder *json, const CliDiagnosis *diagnosis) {
    const Trace *trace = diagnosis->trace;
    const TracePeak *peak = &diagnosis->memory->peaks[TRACE_ALLOCATED];
    trace_json_begin_object(json, "memory");
    if (peak->known) {
        g_autofree char *place = trace_place_name(trace, peak->phase, peak->unit);
        trace_json_add_int(json, "peak_allocated_bytes", peak->bytes);
        trace_json_add_number(json, "peak_step", peak->step);
        trace_json_add_text(json, "peak_at", place);
        trace_json_begin_object(json, "peak_by_category");
        for (unsigned category = 0; category < PLAN_N_CATEGORIES; category++) {
            const char *name = plan_category_name(category);
            trace_json_add_int(json, name, trace_peak_category(trace, peak, name));
        }
        json_builder_end_object(json);
    }
    trace_json_add_int(json, "predicted_peak_reserved_bytes", diagnosis->base->peak_reserved_bytes);
    trace_json_add_int(json, "allocator_bytes", diagnosis->base->allocator_bytes);
    trace_json_add_int(json, "predicted_alloc_retries", diagnosis->base->alloc_retries);
    trace_json_add_int(json, "recorded_returns", diagnosis->idle.n_returns);
    json_builder_end_object(json);
}

static void add_communication(JsonBuilder *json, const CliDiagnosis *diagnosis) {
    const Trace *trace = diagnosis->trace;
    trace_json_begin_object(json, "comm");
    for (guint kind = 0; kind < trace->kinds->len; kind++) {
        TraceKindTime time = trace_summary_kind(diagnosis->summary, kind);
        if (trace_kind(trace, kind)->kind_class == TRACE_KIND_COLLECTIVE && time.total_ns > 0) {
            double n = MAX(1, diagnosis->idle.n_steps);
            trace_json_begin_object(json, trace_kind(trace, kind)->name);
            trace_json_add_real(json, "total_ms", ms((double)time.total_ns) / n);
            trace_json_add_real(json, "exposed_ms", ms((double)time.exposed_ns) / n);
            json_builder_end_object(json);
        }
    }
    json_builder_end_object(json);
}

static void add_steps(JsonBuilder *json, const CliDiagnosis *diagnosis) {
    TraceSpread spread = trace_summary_spread(diagnosis->summary);
    trace_json_begin_object(json, "steady_steps");
    trace_json_add_int(json, "count", spread.n);
    trace_json_add_real(json, "median_ms", ms(spread.n > 0 ? spread.median_ns : NAN));
    trace_json_add_real(json, "least_ms", ms(spread.n > 0 ? spread.least_ns : NAN));
    trace_json_add_real(json, "most_ms", ms(spread.n > 0 ? spread.most_ns : NAN));
    json_builder_end_object(json);
}

static void add_compute_lane(JsonBuilder *json, const CliDiagnosis *diagnosis) {
    static const char *const names[TRACE_N_IDLES] = {
        [TRACE_IDLE_COLLECTIVE] = "waits_for_collectives",
        [TRACE_IDLE_COPY] = "waits_for_copies",
        [TRACE_IDLE_HOST] = "waits_for_host",
        [TRACE_IDLE_OTHER] = "gaps",
    };
    const TraceIdleBook *idle = &diagnosis->idle;
    double all_ns = (double)idle->busy_ns;
    for (guint i = 0; i < TRACE_N_IDLES; i++) {
        all_ns += (double)idle->idle_ns[i];
    }
    trace_json_begin_object(json, "compute_lane"); /* shares; null where no step was recorded */
    trace_json_add_real(json, "busy", (double)idle->busy_ns / all_ns);
    for (guint i = 0; i < TRACE_N_IDLES; i++) {
        trace_json_add_real(json, names[i], (double)idle->idle_ns[i] / all_ns);
    }
    trace_json_add_int(json, "kernels_per_step", idle->n_ops / MAX(1, idle->n_steps));
    json_builder_end_object(json);
}

/* ---- what would change it ---- */

static const char *const prices[] = {
    [CLI_PRICE_NONE] = "none",           [CLI_PRICE_MEMORY] = "memory",
    [CLI_PRICE_PRECISION] = "precision", [CLI_PRICE_PROGRAM] = "program",
    [CLI_PRICE_MACHINE] = "machine",
};

static void add_remedy(JsonBuilder *json, const CliRemedy *remedy) {
    json_builder_begin_object(json);
    trace_json_add_text(json, "settings", remedy->changes);
    trace_json_add_text(json, "cause", remedy->cause);
    trace_json_add_text(json, "remedy", remedy->remedy);
    trace_json_add_text(json, "costs", prices[remedy->price]);
    trace_json_add_bool(json, "fits", remedy->fits);
    trace_json_add_real(json, "step_ms_change", ms(remedy->step_ns));
    trace_json_add_number(json, "peak_reserved_bytes_change", remedy->reserved_bytes);
    trace_json_begin_object(json, "peak_by_category_change");
    for (unsigned category = 0; category < PLAN_N_CATEGORIES; category++) {
        trace_json_add_number(json, plan_category_name(category), remedy->category_bytes[category]);
    }
    json_builder_end_object(json);
    trace_json_add_int(json, "alloc_retries", remedy->retries);
    json_builder_end_object(json);
}

static void add_remedies(JsonBuilder *json, const CliDiagnosis *diagnosis) {
    trace_json_begin_array(json, "remedies"); /* in the order of remedies.def */
    for (guint i = 0; i < diagnosis->remedies->len; i++) {
        add_remedy(json, remedy_at(diagnosis, i));
    }
    json_builder_end_array(json);
    if (diagnosis->uneven.changes != NULL) {
        json_builder_set_member_name(json, "uneven_routing"); /* no remedy, a risk */
        add_remedy(json, &diagnosis->uneven);
    }
    trace_json_begin_array(json, "causes"); /* what costs most first */
    for (guint i = 0; i < diagnosis->causes->len; i++) {
        add_remedy(json, remedy_at(diagnosis, g_array_index(diagnosis->causes, guint, i)));
    }
    json_builder_end_array(json);
}

static void add_batch(JsonBuilder *json, const CliDiagnosis *diagnosis) {
    if (diagnosis->larger_batch > 0) {
        trace_json_begin_object(json, "larger_batch");
        trace_json_add_int(json, "micro_batch", diagnosis->larger_batch);
        trace_json_add_real(json, "time_per_token", diagnosis->larger_batch_share);
        trace_json_add_number(json, "peak_reserved_bytes", diagnosis->larger_batch_bytes);
        json_builder_end_object(json);
    }
}

static void add_baselines(JsonBuilder *json, const CliDiagnosis *diagnosis) {
    const CliBaseline *best = cli_diagnosis_baseline(diagnosis);
    trace_json_begin_array(json, "baselines");
    for (guint i = 0; i < CLI_N_BASELINES; i++) {
        const CliBaseline *baseline = &diagnosis->baselines[i];
        json_builder_begin_object(json);
        trace_json_add_text(json, "name", baseline->name);
        if (baseline->refusal != NULL) {
            trace_json_add_text(json, "refusal", baseline->refusal);
        } else {
            trace_json_add_bool(json, "fits", baseline->fits);
            trace_json_add_bool(json, "less_precise", baseline->less_precise);
            trace_json_add_real(json, "step_ms", ms(baseline->step_ns));
            trace_json_add_number(json, "peak_reserved_bytes", baseline->reserved_bytes);
            trace_json_add_int(json, "alloc_retries", baseline->retries);
        }
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
    trace_json_add_text(json, "best_baseline", best != NULL ? best->name : NULL);
}

void cli_diagnosis_add_json(const CliDiagnosis *diagnosis, JsonBuilder *json) {
    g_autofree char *verdict = cli_diagnosis_verdict(diagnosis);
    g_autofree char *oom = trace_oom_text(diagnosis->trace);
    trace_json_add_text(json, "title", trace_get(diagnosis->trace, "title"));
    trace_json_add_text(json, "plan_digest", trace_get(diagnosis->trace, "digest"));
    trace_json_add_text(json, "side", trace_get(diagnosis->trace, "side"));
    trace_json_add_text(json, "cluster", diagnosis->what_if->cluster->name);
    if (diagnosis->what_if->unlike != NULL) {
        trace_json_add_text(json, "unlike", diagnosis->what_if->unlike);
    }
    trace_json_add_int(json, "rank", diagnosis->summary->rank);
    trace_json_add_int(json, "memory_of_rank", diagnosis->memory->rank);
    trace_json_add_bool(json, "fits", diagnosis->base->fits);
    if (oom != NULL) {
        trace_json_add_text(json, "oom", oom);
    }
    trace_json_add_real(json, "step_ms", ms((double)diagnosis->base->median_step_ns));
    trace_json_add_text(json, "bottleneck", verdict);
    add_memory(json, diagnosis);
    add_communication(json, diagnosis);
    add_steps(json, diagnosis);
    add_compute_lane(json, diagnosis);
    add_remedies(json, diagnosis);
    cli_ways_add_json(json, diagnosis->ways_to_fit, false);
    add_batch(json, diagnosis);
    add_baselines(json, diagnosis);
}
