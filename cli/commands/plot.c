/* cli/commands/plot.c - foreshard plot: pictures of one trace, or of two on the same axes. */
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/measured/measured.h"
#include "cli/options/command.h"
#include "cli/plot/pictures.h"
#include "cli/plot/plot-points.h"
#include "cli/predict/trace-source.h"
#include "cli/say/rows-csv.h"
#include "cli/source/cluster.h"
#include "plots/plot.h"
#include "trace/fullest.h"
#include "trace/import/file.h"
#include "trace/text.h"

static const CliCommand command = {
    .words = "TRACE [TRACE] | NETWORK [TRACE...]",
    .most = G_MAXINT,
    .summary =
        "Draws memory over time, or the lanes, of one trace or of two on the same axes; a network "
        "or plan is predicted on --cluster first. With --knob it draws step time and peak memory "
        "for several values of a setting. The picture goes to a file (.png, .svg, .pdf or .html), "
        "or to the terminal if none is named.",
    .examples =
        "Examples:\n"
        "  foreshard plot predicted.trace measured.trace -o memory.png\n"
        "  foreshard plot gpt2 -n 8 --cluster a100-node -o memory.png\n"
        "  foreshard plot predicted.trace snapshot.pickle          PyTorch's own memory snapshot\n"
        "  foreshard plot --picture lanes --steps 3 predicted.trace measured.trace -o lanes.svg\n"
        "  foreshard plot gpt-toy -n 2 --cluster this-machine --knob wrap=block,whole\n"
        "  foreshard plot gpt-toy -n 8 --cluster a100-node --picture pareto \\\n"
        "      --knob micro_batch=1,2,4,8 --knob checkpointing=none,full -o trade.svg\n"
        "  foreshard plot t5-11b --cluster a100-roce --picture scale \\\n"
        "      --knob ranks=8,64,512 -o scale.pdf\n\n"
        "Exit status: 0 drawn; 1 gnuplot is missing or failed, or the file cannot be written; 2 a "
        "trace cannot be read, the traces do not go together, or a setting is refused.",
};

typedef struct {
    char *picture, *steps;
    int rank; /* -1: the lowest that the trace recorded */
    CliPointsPlot points;
} Options;

/* "3" or "2-5". */
static bool parse_steps(const char *text, int32_t *ret_first, int32_t *ret_last) {
    g_auto(GStrv) parts = g_strsplit(text, "-", 2);
    guint64 first, last;
    if (parts[0] == NULL ||
        !g_ascii_string_to_unsigned(parts[0], 10, 0, G_MAXINT32, &first, NULL)) {
        return false;
    }
    last = first;
    if (parts[1] != NULL &&
        !g_ascii_string_to_unsigned(parts[1], 10, first, G_MAXINT32, &last, NULL)) {
        return false;
    }
    *ret_first = (int32_t)first;
    *ret_last = (int32_t)last;
    return true;
}

static int draw(PlotPicture picture, const PlotPanel *panels, guint n_panels,
                const Options *options) {
    g_autoptr(GError) error = NULL;
    PlotOptions plot = {.output = options->points.output,
                        .columns = cli_terminal_columns(),
                        .characters = cli_terminal_characters()};
    cli_choose_steps(picture, panels, n_panels, &plot);
    if (options->steps != NULL && !parse_steps(options->steps, &plot.first_step, &plot.last_step)) {
        return cli_complain(CLI_BAD_INPUT, "--steps %s: give a step (3) or a range (2-5)",
                            options->steps);
    }
    g_autofree char *name = plot_script(picture, plot.output);
    g_autofree char *folder = cli_plots_folder(name, &error);
    if (folder == NULL) {
        return cli_complain(CLI_FAILED, "%s", error->message);
    }
    plot.scripts = folder;
    g_autofree char *text = NULL;
    if (!plot_panels(picture, panels, n_panels, &plot, &text, &error)) {
        return cli_complain(cli_picture_status(error), "%s", error->message);
    }
    cli_print_picture(text);
    return CLI_OK;
}

/* What PyTorch recorded of a run of its own; the other trace is what it is laid beside, or NULL. */
static Trace *load_run(PlotPicture picture, const char *path, Trace *other, GError **error) {
    if (picture != PLOT_PICTURE_MEMORY) {
        g_set_error(
            error, TRACE_ERROR, TRACE_ERROR_VALUE,
            "%s is no trace: of a real run of PyTorch's only memory is drawn, from a memory "
            "snapshot; leave --picture, or say foreshard compare",
            path);
        return NULL;
    }
    return measured_trace(path, other, error);
}

/* A file of PyTorch's. JSON beside a cluster or a strategy is a network's config.json, for a
 * profile's memory cannot be drawn. */
static bool is_run(const char *file, const Options *options, const CliPlanSource *source) {
    ImportKind kind = import_kind_of_file(file);
    bool is_network = kind == IMPORT_PROFILE &&
                      (options->points.cluster != NULL || cli_plan_source_is_set(source));
    return kind != IMPORT_OTHER && !is_network;
}

/* What has been played is not played again on another machine. */
static bool any_is_predicted(int n_files, char **files, const Options *options,
                             const CliPlanSource *source) {
    bool any = false;
    for (int i = 0; i < n_files; i++) {
        any = any || (!is_run(files[i], options, source) && !trace_is_file(files[i]));
    }
    return any;
}

static int plot_traces(PlotPicture picture, int n_files, char **files, const Options *options,
                       CliPlanSource *source) {
    if (n_files < 1 || n_files > PLOT_MAX_PANELS) {
        return cli_complain(CLI_BAD_INPUT,
                            "give one trace or two, or a network and a cluster; --help says more");
    }
    g_autoptr(GError) refusal = NULL;
    if (!cli_trace_check_settings(source, n_files, files, &refusal)) {
        return cli_complain(CLI_BAD_INPUT, "%s", refusal->message);
    }
    if (options->points.cluster != NULL && !any_is_predicted(n_files, files, options, source)) {
        return cli_complain(CLI_BAD_INPUT,
                            "--cluster is for a plan or a network, and %s has been played; leave "
                            "--cluster away",
                            files[0]);
    }
    Trace *traces[PLOT_MAX_PANELS] = {NULL, NULL};
    PlotPanel panels[PLOT_MAX_PANELS];
    int status = CLI_OK;
    for (int i = 0; i < n_files && status == CLI_OK; i++) {
        g_autoptr(GError) error = NULL;
        traces[i] = is_run(files[i], options, source)
                        ? load_run(picture, files[i], i > 0 ? traces[0] : NULL, &error)
                        : cli_trace_load(source, files[i], options->points.cluster, &error);
        if (traces[i] == NULL) {
            status = cli_complain(CLI_BAD_INPUT, "%s", error->message);
            break;
        }
        uint32_t rank = options->rank >= 0 ? (uint32_t)options->rank
                        : i > 0            ? trace_rank_beside(traces[i], panels[0].rank)
                                           : trace_fullest_rank(traces[i]);
        panels[i] = (PlotPanel){traces[i], rank};
    }
    if (status == CLI_OK) {
        status = draw(picture, panels, (guint)n_files, options);
    }
    for (guint i = 0; i < PLOT_MAX_PANELS; i++) {
        trace_free(traces[i]);
    }
    return status;
}

typedef enum {
    OF_TRACES,
    OF_POINTS,
    OF_TABLES
} PictureKind;

/* What another picture than this kind takes. */
static bool options_suit(PictureKind kind, const char *name, const Options *options) {
    const CliPointsPlot *points = &options->points;
    const char *other = options->steps != NULL && kind != OF_TRACES      ? "--steps"
                        : options->rank >= 0 && kind != OF_TRACES        ? "--rank"
                        : points->knobs != NULL && kind != OF_POINTS     ? "--knob"
                        : points->published != NULL && kind != OF_POINTS ? "--published"
                        : points->where != NULL && kind != OF_POINTS     ? "--where"
                        : points->json && kind != OF_POINTS              ? "--json"
                        : points->csv && kind != OF_POINTS               ? "--csv"
                        : points->cluster != NULL && kind == OF_TABLES   ? "--cluster"
                                                                         : NULL;
    if (other != NULL) {
        cli_complain(CLI_BAD_INPUT,
                     "%s is nothing to --picture %s; leave it away, or choose "
                     "another picture",
                     other, name);
        return false;
    }
    if (points->json && points->csv) {
        cli_complain(CLI_BAD_INPUT, CLI_ROWS_CSV_OR_JSON);
        return false;
    }
    bool lacks_table = points->where != NULL && points->published == NULL;
    if (lacks_table) {
        cli_complain(CLI_BAD_INPUT,
                     "--where chooses rows of a table of published runs; add --published FILE.csv");
    }
    return !lacks_table;
}

/* The picture's name; without one, memory, or sweep when a knob is given. */
static int plot(int n_words, char **words, const Options *options, CliPlanSource *source) {
    static const struct {
        const char *name;
        PictureKind kind;
        int picture;
    } pictures[] = {
        {"memory", OF_TRACES, PLOT_PICTURE_MEMORY},
        {"lanes", OF_TRACES, PLOT_PICTURE_LANES},
        {"jitter", OF_TRACES, PLOT_PICTURE_JITTER},
        {"sweep", OF_POINTS, PLOT_POINTS_SWEEP},
        {"pareto", OF_POINTS, PLOT_POINTS_PARETO},
        {"scale", OF_POINTS, PLOT_POINTS_SCALE},
        {"validation", OF_TABLES, 0},
    };
    const char *name = options->picture                ? options->picture
                       : options->points.knobs != NULL ? "sweep"
                                                       : "memory";
    for (guint i = 0; i < G_N_ELEMENTS(pictures); i++) {
        int picture = pictures[i].picture;
        if (!g_str_equal(pictures[i].name, name)) {
            continue;
        }
        if (!options_suit(pictures[i].kind, name, options)) {
            return CLI_BAD_INPUT;
        }
        switch (pictures[i].kind) {
        case OF_TRACES:
            return plot_traces((PlotPicture)picture, n_words, words, options, source);
        case OF_POINTS:
            return cli_plot_points((PlotPointsPicture)picture, n_words, words, &options->points,
                                   source);
        case OF_TABLES:
            return cli_plot_validation(n_words, words, options->points.output, source);
        }
    }
    return cli_complain(CLI_BAD_INPUT,
                        "--picture %s: choose memory, lanes, jitter, sweep, pareto, scale or "
                        "validation",
                        name);
}

int cmd_plot(int argc, char **argv) {
    Options options = {.rank = CLI_NOT_GIVEN};
    CliPointsPlot *points = &options.points;
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &points->output,
         "the picture's file: .png, .svg, .pdf or .html (default: draw on the terminal)", "FILE"},
        {"picture", 'p', 0, G_OPTION_ARG_STRING, &options.picture,
         "memory (default), lanes or jitter of traces; sweep (default), pareto or scale with "
         "--knob; validation of tables of published runs",
         "NAME"},
        {"steps", 's', 0, G_OPTION_ARG_STRING, &options.steps,
         "one step or a range of steps (default: the last for lanes; for memory all, but of more "
         "than ten the first four, or the last four if it ran out)",
         "A[-B]"},
        {"rank", 'r', 0, G_OPTION_ARG_INT, &options.rank,
         "the rank of the traces (default: the fullest recorded)", "N"},
        {"knob", 'k', 0, G_OPTION_ARG_STRING_ARRAY, &points->knobs,
         "a strategy key (or network.KEY, or cluster.SECTION.KEY) and values to predict; may be "
         "repeated: the first is the x axis, others make lines",
         "KEY=V,V"},
        {"cluster", 'c', 0, G_OPTION_ARG_STRING, &points->cluster,
         "the machine to predict on: " CLI_CLUSTER_NAMED, "C"},
        {"published", 0, 0, G_OPTION_ARG_FILENAME, &points->published,
         "with scale: a table of published runs to draw as marks", "FILE.csv"},
        {"where", 0, 0, G_OPTION_ARG_STRING_ARRAY, &points->where,
         "only the rows of --published with this value in this column; may be repeated",
         "COLUMN=VALUE"},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &points->json,
         "with --knob: print the points as one JSON object; a picture is drawn only with --output",
         NULL},
        {"csv", 0, 0, G_OPTION_ARG_NONE, &points->csv,
         "the same as CSV, a line a point, for a spreadsheet", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    return cli_command_read(&command, entries, context, &argc, &argv) &&
                   cli_number_is_sound("--rank", &options.rank)
               ? plot(argc - 1, argv + 1, &options, source)
               : CLI_BAD_INPUT;
}
