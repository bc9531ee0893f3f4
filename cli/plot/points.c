#include "cli/plot/points.h"

#include <math.h>
#include <string.h>

#include "cli/options/setting.h"
#include "cli/predict/precision.h"
#include "cli/predict/predict.h"
#include "cli/published/csv.h"
#include "cli/say/progress.h"
#include "cli/source/cluster.h"
#include "cli/validate/validate.h"
#include "plan/files/ini.h"
#include "trace/summary.h"

CliPoints *cli_points_new(bool one_series) {
    CliPoints *points = g_new0(CliPoints, 1);
    points->knobs = cli_knobs_new();
    points->points = g_array_new(FALSE, FALSE, sizeof(PlotPoint));
    points->values = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    points->refused = g_ptr_array_new_with_free_func(g_free);
    points->strings = g_string_chunk_new(1024);
    points->limit_bytes = NAN;
    points->one_series = one_series;
    return points;
}

void cli_points_free(CliPoints *points) {
    if (points == NULL) {
        return;
    }
    g_array_unref(points->knobs);
    g_array_unref(points->points);
    g_ptr_array_unref(points->values);
    g_ptr_array_unref(points->refused);
    g_string_chunk_free(points->strings);
    g_free(points->title);
    g_free(points);
}

static const CliKnob *knob_at(const CliPoints *points, guint i) {
    return &g_array_index(points->knobs, CliKnob, i);
}

bool cli_points_add_knob(CliPoints *points, const char *text, GError **error) {
    CliKnob knob;
    if (!cli_knob_read(text, &knob, error)) {
        return false;
    }
    return cli_knobs_add(points->knobs, knob, error);
}

/* What holds at all points. Transfer full. */
static char *title_of(const Plan *plan, const ModelCluster *cluster, char **given) {
    g_autofree char *name = cli_plan_network_of(plan->title);
    GString *title = g_string_new(name);
    g_string_append_printf(title, " on %s", cluster->name);
    for (char **setting = given; *setting != NULL; setting++) {
        g_string_append_printf(title, ", %s", *setting);
    }
    return g_string_free(title, FALSE);
}

bool cli_points_x_is_number(const CliPoints *points) {
    char **values = knob_at(points, 0)->values;
    double ignored;
    for (guint i = 0; values[i] != NULL; i++) {
        if (!plan_parse_double(values[i], &ignored)) {
            return false;
        }
    }
    return true;
}

/* Where a value of the first knob stands on the axis; one that the knob does not list comes behind
 * all that it does. */
static double place_of(const CliPoints *points, const char *value) {
    char **values = knob_at(points, 0)->values;
    double x;
    if (cli_points_x_is_number(points)) {
        return plan_parse_double(value, &x) ? x : NAN;
    }
    guint i = 0;
    while (values[i] != NULL && !g_str_equal(values[i], value)) {
        i++;
    }
    return i;
}

/* "wrap=block, checkpointing=full" of the knobs from the first one on. */
static const char *label_of(CliPoints *points, char **values, guint first) {
    g_autoptr(GString) label = g_string_new(NULL);
    for (guint i = first; i < points->knobs->len; i++) {
        g_string_append_printf(label, "%s%s=%s", label->len > 0 ? ", " : "",
                               knob_at(points, i)->key, values[i]);
    }
    return g_string_chunk_insert_const(points->strings, label->str);
}

/* values: one a knob. */
static PlotPoint new_point(CliPoints *points, char **values) {
    return (PlotPoint){
        .series = points->one_series ? "" : label_of(points, values, 1),
        .label = points->one_series ? label_of(points, values, 0)
                                    : g_string_chunk_insert_const(points->strings, values[0]),
        .x = place_of(points, values[0]),
        .fits = true,
        .step_ns = NAN,
        .least_ns = NAN,
        .most_ns = NAN,
        .cost_ns = NAN,
        .allocated_bytes = NAN,
        .reserved_bytes = NAN,
        .flops_per_s = NAN,
    };
}

static void add_point(CliPoints *points, const PlotPoint *point, char **values) {
    g_array_append_val(points->points, *point);
    g_ptr_array_add(points->values, g_strdupv(values));
}

/* ---- predicted ---- */

static void add_prediction(CliPoints *points, char **values, const SimPrediction *prediction,
                           uint64_t tokens) {
    PlotPoint point = new_point(points, values);
    double step_ns = (double)prediction->median_step_ns;
    points->tokens_differ |= points->tokens != 0 && points->tokens != tokens;
    points->tokens = tokens;
    point.fits = prediction->fits;
    point.retries = prediction->alloc_retries;
    point.n_steps = prediction->n_steps;
    point.cost_ns = tokens > 0 ? step_ns / (double)tokens : NAN; /* settled in the end */
    point.step_ns = step_ns;
    point.least_ns = (double)prediction->least_step_ns;
    point.most_ns = (double)prediction->most_step_ns;
    point.allocated_bytes = (double)prediction->peak.at.allocated_bytes;
    point.reserved_bytes = (double)prediction->peak_reserved_bytes;
    point.flops_per_s = step_ns > 0 ? prediction->flops / (step_ns / 1e9) : NAN;
    add_point(points, &point, values);
    points->limit_bytes = (double)prediction->allocator_bytes;
}

/* A key of the strategy or, as "cluster.SECTION.KEY", of the cluster. */
static bool set_key(CliPlanSource *source, ModelCluster *cluster, const char *key,
                    const char *value, GError **error) {
    const char *of_cluster = cli_knob_of_cluster(key);
    if (of_cluster == NULL) {
        return cli_plan_source_set(source, key, value, error);
    }
    g_autofree char *change = g_strdup_printf("%s=%s", of_cluster, value);
    return cli_cluster_change(cluster, change, error);
}

static bool predict_one(CliPoints *points, CliPlanSource *source, const char *network,
                        const ModelCluster *cluster, char **given, char **values, GError **error) {
    g_autoptr(ModelCluster) machine = model_cluster_copy(cluster);
    for (guint i = 0; i < points->knobs->len; i++) {
        if (!set_key(source, machine, knob_at(points, i)->key, values[i], error)) {
            return false;
        }
    }
    g_autoptr(Plan) plan = NULL;
    g_autoptr(SimPrediction) prediction =
        cli_predict_play(source, network, &plan, machine, NULL, error);
    if (prediction == NULL) {
        g_prefix_error(error, "%s: ", label_of(points, values, 0));
        return false;
    }
    add_prediction(points, values, prediction, plan->tokens_per_rank);
    if (points->title == NULL) {
        points->title = title_of(plan, cluster, given);
        cli_precision_note(source, plan, cluster);
    }
    return true;
}

/* Settings that do more work take longer, so then a token's time is what is held against memory. */
static void settle_costs(CliPoints *points) {
    for (guint i = 0; i < points->points->len; i++) {
        PlotPoint *point = &g_array_index(points->points, PlotPoint, i);
        if (!points->tokens_differ) {
            point->cost_ns = point->step_ns;
        }
    }
}

bool cli_points_predict(CliPoints *points, CliPlanSource *source, const char *network,
                        const ModelCluster *cluster, GError **error) {
    g_autofree char *settings = cli_plan_source_text(source);
    g_auto(GStrv) given = g_strsplit(settings, ", ", -1);
    guint n = points->knobs->len, n_settings = 1;
    for (guint i = 0; i < n; i++) {
        const CliKnob *knob = knob_at(points, i);
        n_settings *= g_strv_length(knob->values);
        if (!cli_knob_is_free(knob, cli_plan_source_is_given(source, knob->key), error)) {
            return false;
        }
    }
    g_autofree guint *at = g_new0(guint, n);
    g_autofree char **values = g_new0(char *, n + 1);
    g_autoptr(CliProgress) progress = cli_progress_new("predicting settings");
    for (;;) {
        for (guint i = 0; i < n; i++) {
            values[i] = knob_at(points, i)->values[at[i]];
        }
        g_autoptr(GError) refusal = NULL;
        if (!predict_one(points, source, network, cluster, given, values, &refusal)) {
            if (n == 1 || !g_error_matches(refusal, PLAN_ERROR, PLAN_ERROR_VALUE)) {
                g_propagate_error(error, g_steal_pointer(&refusal));
                return false;
            }
            g_ptr_array_add(points->refused, g_strdup(refusal->message));
        }
        cli_progress_show(progress,
                          (points->points->len + points->refused->len) / (double)n_settings);
        guint turn = 0;
        while (turn < n && knob_at(points, turn)->values[++at[turn]] == NULL) {
            at[turn++] = 0;
        }
        if (turn == n) {
            break;
        }
    }
    if (points->points->len == 0) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "every setting is refused; the last: %s",
                    (char *)points->refused->pdata[points->refused->len - 1]);
        return false;
    }
    settle_costs(points);
    return true;
}

const char *cli_points_cost_name(const CliPoints *points) {
    return points->tokens_differ ? "GPU time per token" : "step time";
}

/* ---- measured ---- */

bool cli_points_add_trace(CliPoints *points, const Trace *trace, GError **error) {
    g_auto(GStrv) settings = cli_settings_split(trace_get(trace, "strategy"));
    g_autofree char **values = g_new0(char *, points->knobs->len + 1);
    for (guint i = 0; i < points->knobs->len; i++) {
        const char *key = knob_at(points, i)->key;
        values[i] = (char *)cli_settings_value(settings, key);
        if (values[i] == NULL) {
            g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                        "the trace's strategy has no %s; choose a knob that it knows", key);
            return false;
        }
    }
    uint32_t rank = trace_lowest_rank(trace);
    g_autoptr(TraceSummary) summary = trace_summary_new(trace, rank);
    if (summary == NULL) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE, "the trace has recorded no rank");
        return false;
    }
    PlotPoint point = new_point(points, values);
    point.measured = g_strcmp0(trace_get(trace, "side"), "measured") == 0;
    TraceSpread spread = trace_summary_spread(summary);
    point.step_ns = spread.median_ns;
    point.least_ns = spread.least_ns;
    point.most_ns = spread.most_ns;
    point.allocated_bytes = (double)summary->peaks[TRACE_ALLOCATED].bytes;
    point.reserved_bytes = (double)summary->peaks[TRACE_RESERVED].bytes;
    /* A trace does not say its tokens; where they differ it has no place against them. */
    point.cost_ns = points->tokens_differ ? NAN : point.step_ns;
    add_point(points, &point, values);
    if (points->title == NULL) {
        points->title = g_strdup(trace_get(trace, "title"));
    }
    return true;
}

/* ---- published ---- */

/* Whether the row's fields are what every "COLUMN=VALUE" says. */
static bool row_is_meant(const CliCsv *csv, const CliCsvRow *row, char **where) {
    for (guint i = 0; where != NULL && where[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(where[i], "=", 2);
        if (!g_str_equal(cli_csv_text(csv, row, parts[0]), parts[1])) {
            return false;
        }
    }
    return true;
}

static bool check_where(const CliCsv *csv, char **where, GError **error) {
    for (guint i = 0; where != NULL && where[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(where[i], "=", 2);
        if (parts[0] == NULL || parts[1] == NULL || !cli_csv_has(csv, parts[0])) {
            g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                        "--where %s: give a column of %s and its value, as in --where model=T5-11B",
                        where[i], csv->name);
            return false;
        }
    }
    return true;
}

/* Operations of a step of a GPU in a series: those of any plan predicted for it, for ranks do the
 * same work however many there are. NAN: none was predicted. */
static double flops_of_series(const CliPoints *points, const char *series) {
    for (guint i = 0; i < points->points->len; i++) {
        const PlotPoint *point = &g_array_index(points->points, PlotPoint, i);
        if (!point->measured && g_str_equal(point->series, series)) {
            return point->flops_per_s * point->step_ns / 1e9;
        }
    }
    return NAN;
}

/* A published run's step time as foreshard validate reads it, by the line it stands in; 0: it is
 * none that can be predicted. */
static double measured_ms(const CliValidatedTable *table, unsigned line) {
    for (guint i = 0; i < table->rows->len; i++) {
        const CliValidatedRow *row = &g_array_index(table->rows, CliValidatedRow, i);
        if (row->line == line && row->skipped == NULL && row->measured > 0) {
            return row->measured;
        }
    }
    return 0;
}

static bool add_published_row(CliPoints *points, const CliCsv *csv, const CliCsvRow *row,
                              double step_ms, GError **error) {
    double gpus;
    if (!cli_csv_number(csv, row, "gpus", &gpus, error)) {
        return false;
    }
    g_autofree char **values = g_new0(char *, points->knobs->len + 1);
    values[0] = (char *)cli_csv_text(csv, row, "gpus");
    for (guint k = 1; k < points->knobs->len; k++) {
        values[k] = (char *)cli_csv_text(csv, row, knob_at(points, k)->key);
    }
    PlotPoint point = new_point(points, values);
    point.measured = true;
    point.x = gpus;
    point.step_ns = step_ms * 1e6;
    point.flops_per_s = flops_of_series(points, point.series) / (point.step_ns / 1e9);
    add_point(points, &point, values);
    return true;
}

bool cli_points_add_published(CliPoints *points, const char *path, char **where, GError **error) {
    g_autoptr(CliCsv) csv = cli_csv_read(path, error);
    if (csv == NULL || !check_where(csv, where, error)) {
        return false;
    }
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    if (!cli_validation_add(validation, path, error)) {
        return false;
    }
    guint n_before = points->points->len;
    for (unsigned i = 0; i < csv->n_rows; i++) {
        const CliCsvRow *row = &csv->rows[i];
        double step_ms = measured_ms(validation->tables->pdata[0], row->line);
        if (step_ms > 0 && row_is_meant(csv, row, where) &&
            !add_published_row(points, csv, row, step_ms, error)) {
            return false;
        }
    }
    if (points->points->len == n_before) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "%s has no row for which --where holds and that foreshard validate can predict",
                    path);
        return false;
    }
    return true;
}
