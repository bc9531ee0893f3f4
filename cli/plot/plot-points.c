#include "cli/plot/plot-points.h"

#include <math.h>
#include <string.h>

#include "cli/options/command.h"
#include "cli/plot/pictures.h"
#include "cli/plot/points.h"
#include "cli/say/output.h"
#include "cli/say/rows-csv.h"
#include "cli/source/cluster.h"
#include "cli/validate/validate.h"
#include "trace/text.h"

static bool predict(CliPoints *points, const char *network, const CliPointsPlot *options,
                    CliPlanSource *source, GError **error) {
    if (options->cluster == NULL) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "give the cluster to predict %s on, as in: --cluster a100-node", network);
        return false;
    }
    g_autoptr(ModelCluster) cluster = cli_cluster_read(options->cluster, error);
    return cluster != NULL && cli_points_predict(points, source, network, cluster, error);
}

static bool gather(CliPoints *points, int n_words, char **words, const CliPointsPlot *options,
                   CliPlanSource *source, GError **error) {
    if (options->knobs == NULL || n_words < 1) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "give a network and a knob, as in: foreshard plot gpt-toy -n 2 --cluster "
                    "this-machine --knob wrap=block,whole");
        return false;
    }
    for (guint i = 0; options->knobs[i] != NULL; i++) {
        if (!cli_points_add_knob(points, options->knobs[i], error)) {
            return false;
        }
    }
    for (int i = 0; i < n_words; i++) {
        if (i == 0 && !trace_is_file(words[0])) {
            if (!predict(points, words[0], options, source, error)) {
                return false;
            }
            continue;
        }
        g_autoptr(Trace) trace = trace_read_file(words[i], error);
        if (trace == NULL) {
            return false;
        }
        if (!cli_points_add_trace(points, trace, error)) {
            g_prefix_error(error, "%s: ", words[i]);
            return false;
        }
    }
    return options->published == NULL ||
           cli_points_add_published(points, options->published, options->where, error);
}

static bool draw(PlotPointsPicture picture, const CliPoints *points, const CliPointsPlot *options,
                 char **ret_text, GError **error) {
    g_autofree char *name = plot_points_script(picture, options->output);
    g_autofree char *folder = cli_plots_folder(name, error);
    if (folder == NULL) {
        return false;
    }
    PlotPointsOptions plot = {
        .title = points->title != NULL ? points->title : "",
        .cost_name = cli_points_cost_name(points),
        .x_name = g_array_index(points->knobs, CliKnob, 0).key,
        .x_is_number = cli_points_x_is_number(points),
        .limit_bytes = points->limit_bytes,
        .marks_name = options->published != NULL ? "published" : "measured",
        .scripts = folder,
        .output = options->output,
        .columns = cli_terminal_columns(),
        .characters = cli_terminal_characters(),
    };
    if (!plot_points(picture, points->points, &plot, ret_text, error)) {
        return false;
    }
    if (options->output != NULL) { /* the picture is in a file; its numbers are said */
        *ret_text = g_string_free(plot_points_rows(points->points, &plot), FALSE);
    }
    return true;
}

static bool draw_validation(const GArray *points, const char *output, char **ret_text,
                            GError **error) {
    g_autofree char *name = plot_points_script(PLOT_POINTS_VALIDATION, output);
    g_autofree char *folder = cli_plots_folder(name, error);
    PlotPointsOptions plot = {
        .title = "published runs",
        .cost_name = "",
        .x_name = "measured",
        .x_is_number = true,
        .limit_bytes = NAN,
        .marks_name = "",
        .scripts = folder,
        .output = output,
        .columns = cli_terminal_columns(),
        .characters = cli_terminal_characters(),
    };
    return folder != NULL && plot_points(PLOT_POINTS_VALIDATION, points, &plot, ret_text, error);
}

static bool is_predicted(const CliValidatedRow *row) {
    return !row->skipped && !((isnan(row->measured) || isnan(row->predicted)) &&
                              (isnan(row->measured_gib) || isnan(row->predicted_gib)));
}

/* A table's name without ".csv"; interned. */
static const char *series_of(const CliValidatedTable *table) {
    g_autofree char *name = g_strdup(table->name);
    if (g_str_has_suffix(name, ".csv")) {
        name[strlen(name) - strlen(".csv")] = '\0';
    }
    return g_intern_string(name);
}

/* A point a row that could be predicted, a series a table. */
static GArray *validation_points(const CliValidation *validation) {
    GArray *points = g_array_new(FALSE, FALSE, sizeof(PlotPoint));
    for (guint i = 0; i < validation->tables->len; i++) {
        const CliValidatedTable *table = validation->tables->pdata[i];
        double ns_per_unit = g_str_equal(table->unit, "ms") ? 1e6 : 1e3;
        for (guint k = 0; k < table->rows->len; k++) {
            const CliValidatedRow *row = &g_array_index(table->rows, CliValidatedRow, k);
            if (!is_predicted(row)) {
                continue;
            }
            PlotPoint point = {.series = series_of(table),
                               .label = row->label != NULL ? row->label : "",
                               .x = row->measured * ns_per_unit,
                               .fits = true,
                               .step_ns = row->predicted * ns_per_unit,
                               .least_ns = NAN,
                               .most_ns = NAN,
                               .cost_ns = NAN,
                               .allocated_bytes = NAN,
                               .reserved_bytes = row->predicted_gib * CLI_BYTES_PER_GIB,
                               .flops_per_s = NAN,
                               .published_bytes = isnan(row->measured_gib)
                                                      ? 0
                                                      : row->measured_gib * CLI_BYTES_PER_GIB};
            g_array_append_val(points, point);
        }
    }
    return points;
}

#define TABLES                                                                                     \
    "tables of published runs, as foreshard validate takes them: "                                 \
    "--picture validation tests/validation/train_fsdp_paper.csv"

int cli_plot_validation(int n_words, char **words, const char *output,
                        const CliPlanSource *source) {
    g_autoptr(GError) error = NULL;
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    if (n_words == 0) {
        return cli_complain(CLI_BAD_INPUT, "give " TABLES);
    }
    for (int i = 0; i < n_words; i++) {
        if (!g_file_test(words[i], G_FILE_TEST_EXISTS)) {
            return cli_complain(CLI_BAD_INPUT, "%s: there is no such file; give " TABLES, words[i]);
        }
    }
    if (cli_plan_source_is_set(source)) {
        g_autofree char *given = cli_plan_source_text(source);
        return cli_complain(CLI_BAD_INPUT,
                            "%s: runs are predicted with the settings that their table has; leave "
                            "these away",
                            given);
    }
    for (int i = 0; i < n_words; i++) {
        if (!cli_validation_add(validation, words[i], &error)) {
            return cli_complain(CLI_BAD_INPUT, "%s", error->message);
        }
    }
    g_autoptr(GArray) points = validation_points(validation);
    g_autofree char *text = NULL;
    if (!draw_validation(points, output, &text, &error)) {
        return cli_complain(cli_picture_status(error), "%s", error->message);
    }
    cli_print_picture(text);
    return CLI_OK;
}

/* "wrap=block: why", of which "why". */
static const char *reason_of(const char *refusal) {
    const char *colon = strstr(refusal, ": ");
    return colon != NULL ? colon : refusal;
}

/* Each reason once, with the first setting that it is of. */
static void say_refused(const GPtrArray *refused) {
    for (guint i = 0; i < refused->len; i++) {
        const char *refusal = refused->pdata[i];
        guint n_before = 0, n_behind = 0;
        for (guint k = 0; k < refused->len; k++) {
            bool same = k != i && g_str_equal(reason_of(refused->pdata[k]), reason_of(refusal));
            n_before += same && k < i;
            n_behind += same && k > i;
        }
        if (n_before == 0 && n_behind == 0) {
            cli_complain(CLI_OK, "left out: %s", refusal);
        } else if (n_before == 0) {
            cli_complain(CLI_OK, "left out, with %u more for the same reason: %s", n_behind,
                         refusal);
        }
    }
}

/* A picture is drawn only into a file, for standard output is the program's. */
static int print_points(PlotPointsPicture picture, const CliPoints *points,
                        const CliPointsPlot *options) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    if (options->output != NULL && !draw(picture, points, options, &text, &error)) {
        return cli_complain(cli_picture_status(error), "%s", error->message);
    }
    g_autoptr(JsonBuilder) json = cli_points_json(points);
    if (options->json) {
        cli_output_print_json(json);
    } else {
        say_refused(points->refused);
        cli_rows_print_csv(json, "points");
    }
    return CLI_OK;
}

int cli_plot_points(PlotPointsPicture picture, int n_words, char **words,
                    const CliPointsPlot *options, CliPlanSource *source) {
    g_autoptr(GError) error = NULL;
    g_autoptr(CliPoints) points = cli_points_new(picture == PLOT_POINTS_PARETO);
    g_autofree char *text = NULL;
    if (!gather(points, n_words, words, options, source, &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    if (options->json || options->csv) {
        return print_points(picture, points, options);
    }
    say_refused(points->refused);
    if (!draw(picture, points, options, &text, &error)) {
        return cli_complain(cli_picture_status(error), "%s", error->message);
    }
    cli_print_picture(text);
    return CLI_OK;
}
