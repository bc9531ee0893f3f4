#include "cli/report/report.h"

#include <string.h>

#include "cli/report/private.h"
#include "sim/trains-well.h"
#include "trace/fullest.h"
#include "trace/scale.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>foreshard report</title>\n<style>\n"
    "body { font: 16px/1.5 sans-serif; color: #111; background: #fff; max-width: 70em; "
    "margin: 2em auto; padding: 0 1em; }\n"
    "h1, h2, h3 { line-height: 1.2; }\n"
    "table { border-collapse: collapse; margin: 1em 0; display: block; overflow-x: auto; }\n"
    "th, td { padding: 0.15em 0.9em 0.15em 0; text-align: right; border-bottom: 1px solid #ddd; "
    "white-space: nowrap; }\n"
    "th:first-child, td:first-child { text-align: left; }\n"
    ".words td { text-align: left; white-space: normal; overflow-wrap: anywhere; }\n"
    "pre { background: #f5f5f5; padding: 1em; overflow-x: auto; font-size: 13px; }\n"
    "figure { margin: 1.5em 0; overflow-x: auto; }\n"
    "figure svg { width: 100%; min-width: 44em; height: auto; }\n"
    "figcaption { max-width: 40em; }\n"
    ":focus-visible { outline: 3px solid #0072B2; }\n"
    ".verdict { border-left: 4px solid #0072B2; padding-left: 1em; }\n"
    "@media print { body { max-width: none; } }\n"
    "</style>\n</head>\n<body>\n<h1>foreshard report</h1>\n";

/* Both verdicts, as predict gives them, and what they rest on. */
static void append_prediction(GString *page, const SimPrediction *prediction,
                              const ModelCluster *machine) {
    const char *cluster = machine->name;
    g_autofree char *reserved = trace_bytes_text((double)prediction->peak_reserved_bytes);
    g_autofree char *room = trace_bytes_text((double)prediction->allocator_bytes);
    double step_ms = (double)prediction->median_step_ns / 1e6;
    if (!prediction->fits) {
        g_string_append_printf(page, "Does not fit on %s: a whole step would need %s of %s. ",
                               cluster, reserved, room);
        return;
    }
    g_string_append_printf(page, "Fits on %s: %s reserved of %s. ", cluster, reserved, room);
    if (sim_keeps_retrying(prediction)) {
        g_string_append_printf(page,
                               "Trains badly: the allocator gives memory back and asks for it "
                               "again; a step takes %.3f ms. ",
                               step_ms);
        return;
    }
    g_string_append_printf(page, "Trains %s: the %s works for %.1f %% of a step of %.3f ms. ",
                           sim_trains_well(prediction) ? "well" : "badly",
                           model_cluster_device_word(machine), 100 * sim_working_share(prediction),
                           step_ms);
}

static void append_verdicts(GString *page, const ReportPart *part) {
    if (part->comparison != NULL) {
        g_autofree char *verdict = trace_comparison_verdict(part->comparison);
        g_string_append(page, "<p class=\"verdict\">Predicted and measured: ");
        report_append_text(page, verdict);
        g_string_append(page, ".</p>\n");
    }
    if (part->diagnosis != NULL) {
        g_autofree char *verdict = cli_diagnosis_verdict(part->diagnosis);
        g_string_append(page, "<p class=\"verdict\">");
        append_prediction(page, part->diagnosis->base, part->diagnosis->what_if->cluster);
        g_string_append(page, "Bottleneck: ");
        report_append_text(page, verdict);
        g_string_append(page, ".</p>\n");
    }
}

static void append_diagnosis(GString *page, const ReportPart *part) {
    g_string_append(page, "<h3>Diagnosis</h3>\n");
    if (part->diagnosis == NULL) {
        g_string_append(page, "<p>");
        report_append_text(page, part->refusal->message);
        g_string_append(page, "</p>\n");
        return;
    }
    g_autofree char *text = cli_diagnosis_text(part->diagnosis);
    g_string_append(page, "<pre tabindex=\"0\">");
    report_append_text(page, text);
    g_string_append(page, "</pre>\n");
}

static bool append_part(GString *page, const ReportPart *part, GError **error) {
    const Trace *trace = part->panels[0].trace;
    const char *title = trace_get(trace, "title");
    g_string_append_printf(page, "<section id=\"plan-%u\">\n<h2>", part->number);
    report_append_text(page, title != NULL ? title : trace_get(trace, "digest"));
    g_string_append(page, "</h2>\n");
    append_verdicts(page, part);
    if (!report_append_pictures(page, part, error)) {
        return false;
    }
    report_append_peaks(page, part);
    if (part->comparison != NULL) {
        report_append_comparison(page, part->comparison);
    }
    append_diagnosis(page, part);
    report_append_units(page, part);
    report_append_settings(page, part);
    report_append_repeat(page, part);
    g_string_append(page, "</section>\n");
    return true;
}

/* The runs of a plan: those whose digest is the first's. */
static bool gather_part(const GPtrArray *traces, const char *digest, ReportPart *part,
                        GError **error) {
    static const char *const sides[] = {"predicted", "measured"};
    for (guint side = 0; side < G_N_ELEMENTS(sides); side++) {
        guint n = 0;
        for (guint i = 0; i < traces->len; i++) {
            const Trace *trace = traces->pdata[i];
            if (!g_str_equal(trace_get(trace, "digest"), digest) ||
                !g_str_equal(trace_get(trace, "side"), sides[side])) {
                continue;
            }
            if (n++ > 0) {
                g_set_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH,
                            "two %s traces are of the same plan (%s); report one of them",
                            sides[side], digest);
                return false;
            }
            uint32_t rank = part->n_panels == 0 ? trace_fullest_rank(trace)
                                                : trace_rank_beside(trace, part->panels[0].rank);
            part->panels[part->n_panels++] = (PlotPanel){trace, rank};
        }
    }
    return true;
}

static void clear_part(gpointer data) {
    ReportPart *part = data;
    g_clear_pointer(&part->comparison, trace_comparison_free);
    cli_diagnosis_free(part->diagnosis);
    g_clear_error(&part->refusal);
}

/* That a plan cannot be diagnosed is said in its part, that its runs cannot be compared at once. */
static bool judge_part(ReportPart *part, const char *cluster, GError **error) {
    const PlotPanel *first = &part->panels[0];
    if (part->n_panels == 2) {
        part->comparison = trace_compare(first->trace, part->panels[1].trace, error);
        if (part->comparison == NULL) {
            return false;
        }
    }
    part->diagnosis = cli_diagnose(first->trace, TRACE_NONE, cluster, &part->refusal);
    return true;
}

GArray *report_parts(const GPtrArray *traces, const char *cluster, GError **error) {
    g_autoptr(GHashTable) done = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(ReportPart));
    g_array_set_clear_func(parts, clear_part);
    for (guint i = 0; i < traces->len; i++) {
        const char *digest = trace_get(traces->pdata[i], "digest");
        ReportPart part = {.number = parts->len + 1};
        if (!g_hash_table_add(done, (gpointer)digest)) {
            continue;
        }
        if (!gather_part(traces, digest, &part, error) || !judge_part(&part, cluster, error)) {
            return NULL;
        }
        g_array_append_val(parts, part);
    }
    return g_steal_pointer(&parts);
}

GString *cli_report(const GPtrArray *traces, const char *cluster, GError **error) {
    g_autoptr(GArray) parts = report_parts(traces, cluster, error);
    if (parts == NULL) {
        return NULL;
    }
    GString *page = g_string_new(head);
    for (guint i = 0; i < parts->len; i++) {
        if (!append_part(page, &g_array_index(parts, ReportPart, i), error)) {
            g_string_free(page, TRUE);
            return NULL;
        }
    }
    g_string_append_printf(page,
                           "<footer><p>Written by foreshard %s.</p></footer>\n"
                           "</body>\n</html>\n",
                           FORESHARD_VERSION);
    return page;
}
