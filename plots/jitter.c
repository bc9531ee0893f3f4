/* How long each step takes, side by side; the rule of a step is that of trace/summary.h. */
#include "plots/private.h"
#include "trace/summary.h"

GString *plot_jitter_table(const PlotPanel *panel, int32_t first_step, int32_t last_step) {
    GString *table = g_string_new("step\ttime_ns\tsteady\n");
    g_autoptr(TraceSummary) summary = trace_summary_new(panel->trace, panel->rank);
    for (guint i = 0; i < summary->n_steps; i++) {
        const TraceStepSummary *step = &summary->steps[i];
        if (step->step >= MAX(0, first_step) && step->step <= last_step) {
            g_string_append_printf(table, "%d\t%" G_GINT64_FORMAT "\t%d\n", step->step,
                                   (gint64)trace_step_time_ns(step),
                                   trace_summary_is_steady(summary, i));
        }
    }
    return table;
}

/* Of the steady steps, as settings. */
static void append_spread(GString *settings, const PlotPanel *panel, guint number) {
    g_autoptr(TraceSummary) summary = trace_summary_new(panel->trace, panel->rank);
    TraceSpread spread = trace_summary_spread(summary);
    if (spread.n == 0) {
        spread = (TraceSpread){0};
    }
    g_string_append_printf(settings,
                           "n_steady[%u] = %u\nmedian[%u] = %.1f\np95[%u] = %.1f\n"
                           "least[%u] = %.1f\nmost[%u] = %.1f\n",
                           number, spread.n, number, spread.median_ns, number, spread.p95_ns,
                           number, spread.least_ns, number, spread.most_ns);
}

static void widen(PlotExtent *extent, const PlotPanel *panel, const PlotOptions *options) {
    g_autoptr(TraceSummary) summary = trace_summary_new(panel->trace, panel->rank);
    for (guint i = 0; i < summary->n_steps; i++) {
        const TraceStepSummary *step = &summary->steps[i];
        if (step->step >= MAX(0, options->first_step) && step->step <= options->last_step) {
            extent->last_ns = MAX(extent->last_ns, trace_step_time_ns(step));
        }
    }
}

bool plot_write_jitter(PlotSheet *sheet, GError **error) {
    static const char *const arrays[] = {"n_steady", "median", "p95", "least", "most"};
    for (guint i = 0; i < G_N_ELEMENTS(arrays); i++) {
        g_string_append_printf(sheet->settings, "array %s[%u]\n", arrays[i], sheet->n_panels);
    }
    for (guint i = 0; i < sheet->n_panels; i++) {
        const PlotPanel *panel = &sheet->panels[i];
        widen(&sheet->extent, panel, sheet->options);
        append_spread(sheet->settings, panel, i + 1);
        g_autoptr(GString) table =
            plot_jitter_table(panel, sheet->options->first_step, sheet->options->last_step);
        g_autofree char *name = g_strdup_printf("jitter-%u.tsv", i + 1);
        if (!plot_write(sheet->folder, name, table, error)) {
            return false;
        }
    }
    return true;
}
