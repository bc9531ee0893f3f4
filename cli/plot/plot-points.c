#include "cli/plot/plot-points.h"

#include <string.h>

#include "cli/options/command.h"
#include "cli/plot/pictures.h"
#include "cli/plot/points.h"
#include "cli/say/output.h"
#include "cli/say/rows-csv.h"
#include "cli/source/cluster.h"
#include "trace/text.h"

static bool predict(CliPoints *points, const char *network, const CliPointsPlot *options,
                    CliPlanSource *source, GError **error) {
    if (options->cluster == NULL) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "give the cluster to predict %s on, as in: --cluster a100-node", network);
        return false;
    }
    g_autoptr(ModelCluster) cluster = cli_cluster_read(options->cluster, error);
    if (cluster != NULL) {
        cli_cluster_note(cluster);
    }
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
