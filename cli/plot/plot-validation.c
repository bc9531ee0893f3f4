/* cli/plot/plot-validation.c - published runs, predicted, as a picture. */
#include <math.h>
#include <string.h>

#include "cli/options/command.h"
#include "cli/plot/pictures.h"
#include "cli/plot/plot-points.h"
#include "cli/say/output.h"
#include "cli/validate/validate.h"

enum {
    COLOURS = 8 /* plots/scripts/colours.gp */
};

static bool draw(const GArray *points, const char *output, char **ret_text, GError **error) {
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

static PlotPoint point_of(const CliValidatedTable *table, const CliValidatedRow *row,
                          const char *series) {
    double ns_per_unit = g_str_equal(table->unit, "ms") ? 1e6 : 1e3;
    double published_gib = isnan(row->measured_gib) ? 0 : row->measured_gib;
    return (PlotPoint){.series = series,
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
                       .published_bytes = published_gib * CLI_BYTES_PER_GIB};
}

/* Appends a point a row that could be predicted: of one kind of runs, or of any (CLI_N_RUN_KINDS),
 * each table then a series. */
static void append_points(GArray *points, const CliValidation *validation, CliRunKind kind) {
    for (guint i = 0; i < validation->tables->len; i++) {
        const CliValidatedTable *table = validation->tables->pdata[i];
        const char *series = kind == CLI_N_RUN_KINDS ? series_of(table) : cli_run_kind_words(kind);
        for (guint k = 0; k < table->rows->len; k++) {
            const CliValidatedRow *row = &g_array_index(table->rows, CliValidatedRow, k);
            if (is_predicted(row) && (kind == CLI_N_RUN_KINDS || row->kind == kind)) {
                PlotPoint point = point_of(table, row, series);
                g_array_append_val(points, point);
            }
        }
    }
}

/* Tables tell each other apart as long as there are colours; of more, what limits a run says more
 * than who published it. */
static GArray *points_of(const CliValidation *validation) {
    GArray *points = g_array_new(FALSE, FALSE, sizeof(PlotPoint));
    bool are_runs = true;
    for (guint i = 0; i < validation->tables->len; i++) {
        const CliValidatedTable *table = validation->tables->pdata[i];
        are_runs = are_runs && g_str_equal(table->unit, "ms");
    }
    if (!are_runs || validation->tables->len <= COLOURS) {
        append_points(points, validation, CLI_N_RUN_KINDS);
        return points;
    }
    for (CliRunKind kind = 0; kind < CLI_N_RUN_KINDS; kind++) {
        append_points(points, validation, kind);
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
    g_autoptr(GArray) points = points_of(validation);
    g_autofree char *text = NULL;
    if (!draw(points, output, &text, &error)) {
        return cli_complain(cli_picture_status(error), "%s", error->message);
    }
    cli_print_picture(text);
    return CLI_OK;
}
