/* cli/report/json.c - a report's figures for programs: what its page says, without the pictures. */
#include <math.h>

#include "cli/report/private.h"
#include "cli/report/report.h"
#include "trace/json.h"

static void add_peaks(JsonBuilder *json, const TraceSummary *summary) {
    for (guint i = 0; i < TRACE_N_STATISTICS; i++) {
        if (summary->peaks[i].known) {
            g_autofree char *key = g_strdup_printf("peak_%s_bytes", trace_statistic_name(i));
            trace_json_add_int(json, key, summary->peaks[i].bytes);
        }
    }
}

static void add_trace(JsonBuilder *json, const PlotPanel *panel) {
    static const char *const facts[] = {"side", "device", "cluster", "paced", "rehearsed"};
    g_autoptr(TraceSummary) summary = trace_summary_new(panel->trace, panel->rank);
    json_builder_begin_object(json);
    for (guint i = 0; i < G_N_ELEMENTS(facts); i++) {
        trace_json_add_text(json, facts[i], trace_get(panel->trace, facts[i]));
    }
    if (summary != NULL) {
        TraceSpread spread = trace_summary_spread(summary);
        trace_json_add_int(json, "rank", summary->rank);
        trace_json_add_int(json, "steady_steps", spread.n);
        trace_json_add_real(json, "step_ms", spread.n > 0 ? spread.median_ns / 1e6 : NAN);
        add_peaks(json, summary);
    }
    json_builder_end_object(json);
}

static void add_part(JsonBuilder *json, const ReportPart *part) {
    const Trace *trace = part->panels[0].trace;
    json_builder_begin_object(json);
    trace_json_add_text(json, "title", trace_get(trace, "title"));
    trace_json_add_text(json, "plan_digest", trace_get(trace, "digest"));
    trace_json_begin_array(json, "traces");
    for (guint i = 0; i < part->n_panels; i++) {
        add_trace(json, &part->panels[i]);
    }
    json_builder_end_array(json);
    if (part->comparison != NULL) {
        json_builder_set_member_name(json, "comparison");
        json_builder_add_value(json, trace_comparison_json(part->comparison));
    }
    if (part->diagnosis != NULL) {
        trace_json_begin_object(json, "diagnosis");
        cli_diagnosis_add_json(part->diagnosis, json);
        json_builder_end_object(json);
    } else {
        trace_json_add_text(json, "diagnosis_refused", part->refusal->message);
    }
    json_builder_end_object(json);
}

GString *cli_report_json(const GPtrArray *traces, const char *cluster, GError **error) {
    g_autoptr(JsonBuilder) json = json_builder_new();
    g_autoptr(GArray) parts = report_parts(traces, cluster, error);
    if (parts == NULL) {
        return NULL;
    }
    json_builder_begin_object(json);
    trace_json_begin_array(json, "plans");
    for (guint i = 0; i < parts->len; i++) {
        add_part(json, &g_array_index(parts, ReportPart, i));
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
    g_autofree char *text = trace_json_text(json);
    GString *page = g_string_new(text);
    g_string_append_c(page, '\n');
    return page;
}
