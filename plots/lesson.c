/* What a panel shows, in words: the line above it says its outcome, not only its origin. */
#include "plots/private.h"
#include "trace/ended.h"
#include "trace/summary.h"

static bool shows(const PlotOptions *options, int32_t step) {
    return step >= options->first_step && step <= options->last_step;
}

static void append_bytes(GString *text, uint64_t bytes) {
    TraceScale scale = trace_scale_bytes((double)bytes);
    g_string_append_printf(text, "%.2f %s", (double)bytes / scale.per_unit, scale.unit);
}

/* The peaks of the steps shown, and what there is. */
static void append_memory(GString *text, const PlotPanel *panel, const PlotOptions *options) {
    g_autoptr(TraceSummary) summary = trace_summary_new(panel->trace, panel->rank);
    uint64_t peaks[TRACE_N_STATISTICS] = {0};
    for (guint i = 0; i < summary->n_steps; i++) {
        const TraceStepSummary *step = &summary->steps[i];
        for (guint k = 0; k < TRACE_N_STATISTICS && shows(options, step->step); k++) {
            peaks[k] = MAX(peaks[k], step->peaks[k].bytes);
        }
    }
    g_string_append(text, "peak ");
    append_bytes(text, peaks[TRACE_ALLOCATED]);
    g_string_append(text, " allocated, ");
    append_bytes(text, peaks[TRACE_RESERVED]);
    g_string_append(text, " reserved");
    uint64_t limit = trace_limit_bytes(panel->trace);
    if (limit > 0) {
        g_string_append(text, " of ");
        append_bytes(text, limit);
    }
}

/* How long the steps shown are, and what of them the compute lane works and waits. */
static void append_lanes(GString *text, const PlotPanel *panel, const PlotOptions *options) {
    g_autoptr(TraceSummary) summary = trace_summary_new(panel->trace, panel->rank);
    uint32_t compute = trace_compute_lane(panel->trace);
    double step_ns = 0, busy_ns = 0, total_ns = 0, exposed_ns = 0;
    guint n = 0;
    for (guint i = 0; i < summary->n_steps; i++) {
        const TraceStepSummary *step = &summary->steps[i];
        if (shows(options, step->step)) {
            step_ns += (double)trace_step_time_ns(step);
            busy_ns += (double)step->lane_ns[compute];
            total_ns += (double)step->communication_ns;
            exposed_ns += (double)step->exposed_ns;
            n++;
        }
    }
    if (step_ns <= 0) {
        g_string_append(text, "no step has ended");
        return;
    }
    TraceScale scale = trace_scale_time(step_ns / n);
    g_string_append_printf(text, "step %.3f %s%s, compute busy %.1f %%",
                           step_ns / n / scale.per_unit, scale.unit, n > 1 ? " on average" : "",
                           100 * busy_ns / step_ns);
    if (total_ns > 0) {
        g_string_append_printf(text, ", communication exposed %.1f %% (%.0f %% of it is hidden)",
                               100 * exposed_ns / step_ns, 100 * (1 - exposed_ns / total_ns));
    }
}

char *plot_lesson(PlotPicture picture, const PlotPanel *panel, const PlotOptions *options) {
    GString *text = g_string_new(NULL);
    g_autofree char *oom = trace_oom_text(panel->trace);
    if (picture != PLOT_PICTURE_JITTER && oom != NULL) {
        return g_string_free(g_string_append(text, oom), FALSE);
    }
    switch (picture) {
    case PLOT_PICTURE_MEMORY:
        append_memory(text, panel, options);
        break;
    case PLOT_PICTURE_LANES:
        append_lanes(text, panel, options);
        break;
    case PLOT_PICTURE_JITTER: /* its key says it, with the numbers that it draws */
        break;
    }
    return g_string_free(text, FALSE);
}
