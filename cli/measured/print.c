/* cli/measured/print.c - what was held against a real run, as text and as JSON. */
#include <math.h>
#include <string.h>

#include "cli/measured/measured.h"
#include "trace/json.h"
#include "trace/scale.h"

static const char *const side_keys[] = {"predicted", "measured"};

static const struct {
    const char *key, *words;
} lives[MEASURED_N_LIVES] = {
    [MEASURED_HELD] = {"held", "held throughout the step"},
    [MEASURED_ASKED] = {"asked", "requested in the step"},
    [MEASURED_AT_OOM] = {"at_oom", "held when the run was out of memory"},
};

static double largest(const Measured *measured, MeasuredUnit unit) {
    double most = 0;
    for (guint i = 0; i < measured->rows->len; i++) {
        const MeasuredRow *row = &g_array_index(measured->rows, MeasuredRow, i);
        for (guint side = 0; side < 2 && row->unit == unit; side++) {
            most = isnan(row->value[side]) ? most : MAX(most, row->value[side]);
        }
    }
    return most;
}

static void append_value(GString *text, const MeasuredRow *row, guint side,
                         const TraceScale *scales) {
    double value = row->value[side];
    g_autofree char *word = isnan(value) ? g_strdup("-")
                            : row->unit == MEASURED_COUNT
                                ? g_strdup_printf("%.10g", round(value * 10) / 10)
                                : g_strdup_printf("%.3f %s", value / scales[row->unit].per_unit,
                                                  scales[row->unit].unit);
    g_string_append_printf(text, " %14s", word);
}

/* "equal", "+1.2 %", "-" where one side is not known or 0. */
static void append_error(GString *text, const MeasuredRow *row) {
    double error = (row->value[0] - row->value[1]) / row->value[1];
    if (row->value[0] == row->value[1]) {
        g_string_append_printf(text, " %10s\n", "equal");
    } else if (!isfinite(error)) {
        g_string_append_printf(text, " %10s\n", "-");
    } else {
        double rounded = round(error * 1000) / 10;
        g_string_append_printf(text, " %+8.1f %%\n", rounded == 0 ? 0.0 : rounded);
    }
}

static void append_rows(GString *text, const Measured *measured) {
    const TraceScale scales[] = {[MEASURED_BYTES] =
                                     trace_scale_bytes(largest(measured, MEASURED_BYTES)),
                                 [MEASURED_NS] = trace_scale_time(largest(measured, MEASURED_NS))};
    g_string_append_printf(text, "\n%-34s %14s %14s %10s\n", measured->what, side_keys[0],
                           side_keys[1], "error");
    for (guint i = 0; i < measured->rows->len; i++) {
        const MeasuredRow *row = &g_array_index(measured->rows, MeasuredRow, i);
        g_string_append_printf(text, "  %-32s", row->name);
        append_value(text, row, 0, scales);
        append_value(text, row, 1, scales);
        append_error(text, row);
    }
}

static void append_surpluses(GString *text, const Measured *measured, guint side,
                             MeasuredLife life) {
    bool any = false;
    for (guint i = 0; i < measured->surpluses->len; i++) {
        const MeasuredSurplus *surplus = &g_array_index(measured->surpluses, MeasuredSurplus, i);
        if (surplus->side != side || surplus->life != life) {
            continue;
        }
        if (!any) {
            g_string_append_printf(text, "\n%s, %s\n  %9s %9s %14s   %s\n", lives[life].words,
                                   side == 0 ? "missing from the run"
                                             : "missing from the prediction",
                                   side_keys[0], side_keys[1], "bytes each", "most of them");
            any = true;
        }
        g_string_append_printf(text, "  %9u %9u %14" G_GUINT64_FORMAT "   %s", surplus->counts[0],
                               surplus->counts[1], (guint64)surplus->bytes, surplus->place);
        if (surplus->n_places > 0) {
            g_string_append_printf(text, " (and %u other place%s)", surplus->n_places,
                                   surplus->n_places == 1 ? "" : "s");
        }
        g_string_append_c(text, '\n');
    }
}

/* What it comes to, where both sides know it. */
static void append_verdict(GString *text, const Measured *measured) {
    static const char *const names[] = {"step time", "peak allocated in a step",
                                        "peak reserved in a step", NULL};
    g_autoptr(GString) said = g_string_new(NULL);
    for (guint i = 0; i < measured->rows->len; i++) {
        const MeasuredRow *row = &g_array_index(measured->rows, MeasuredRow, i);
        double error = row->value[0] / row->value[1] - 1;
        if (g_strv_contains(names, row->name) && isfinite(error)) {
            bool is_equal = row->value[0] == row->value[1];
            double percent = round(error * 1000) / 10;
            g_string_append_printf(said, "%s%s ", said->len > 0 ? ", " : "", row->name);
            g_string_append_printf(said, is_equal ? "equal" : "%+.1f %%",
                                   percent == 0 ? 0.0 : percent);
        }
    }
    if (said->len > 0) {
        g_string_append_printf(text, "verdict: %s\n", said->str);
    }
}

char *measured_text(const Measured *measured) {
    GString *text = g_string_new(NULL);
    for (guint side = 0; side < 2; side++) {
        g_string_append_printf(text, "%-10s %s\n", side_keys[side], measured->sources[side]);
    }
    append_rows(text, measured);
    for (guint life = 0; life < MEASURED_N_LIVES; life++) {
        append_surpluses(text, measured, 1, life);
        append_surpluses(text, measured, 0, life);
    }
    if (!isnan(measured->paired)) {
        g_string_append_printf(
            text,
            "\n%.1f %% of the bytes that the run requests in that step have a predicted "
            "counterpart of the same size\n",
            100 * measured->paired);
    }
    for (guint i = 0; i < measured->notes->len; i++) {
        g_string_append_printf(text, "note: %s\n", (char *)measured->notes->pdata[i]);
    }
    append_verdict(text, measured);
    return g_string_free(text, FALSE);
}

static void build_rows(JsonBuilder *json, const Measured *measured) {
    static const char *const units[] = {"bytes", "ns", "count"};
    trace_json_begin_array(json, "rows");
    for (guint i = 0; i < measured->rows->len; i++) {
        const MeasuredRow *row = &g_array_index(measured->rows, MeasuredRow, i);
        json_builder_begin_object(json);
        trace_json_add_text(json, "name", row->name);
        trace_json_add_text(json, "unit", units[row->unit]);
        trace_json_add_number(json, side_keys[0], row->value[0]);
        trace_json_add_number(json, side_keys[1], row->value[1]);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

static void build_surpluses(JsonBuilder *json, const Measured *measured) {
    trace_json_begin_array(json, "surpluses");
    for (guint i = 0; i < measured->surpluses->len; i++) {
        const MeasuredSurplus *surplus = &g_array_index(measured->surpluses, MeasuredSurplus, i);
        json_builder_begin_object(json);
        trace_json_add_text(json, "side", side_keys[surplus->side]);
        trace_json_add_text(json, "life", lives[surplus->life].key);
        trace_json_add_int(json, "bytes", surplus->bytes);
        trace_json_add_int(json, side_keys[0], surplus->counts[0]);
        trace_json_add_int(json, side_keys[1], surplus->counts[1]);
        trace_json_add_text(json, "place", surplus->place);
        trace_json_add_int(json, "other_places", surplus->n_places);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

char *measured_json(const Measured *measured) {
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    trace_json_add_text(json, "compared", measured->what);
    trace_json_add_text(json, "first", measured->sources[0]);
    trace_json_add_text(json, "second", measured->sources[1]);
    build_rows(json, measured);
    build_surpluses(json, measured);
    trace_json_add_number(json, "paired", measured->paired);
    trace_json_begin_array(json, "notes");
    for (guint i = 0; i < measured->notes->len; i++) {
        g_autofree char *note = g_utf8_make_valid(measured->notes->pdata[i], -1);
        json_builder_add_string_value(json, note);
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
    g_autofree char *text = trace_json_text(json);
    return g_strconcat(text, "\n", NULL);
}
