#include "cli/plot/pictures.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/options/command.h"
#include "cli/say/prose.h"
#include "cli/source/data-dir.h"
#include "trace/ended.h"
#include "trace/import/to-trace.h"
#include "trace/text.h"

guint cli_terminal_columns(void) {
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return 100;
}

void cli_print_picture(const char *text) {
    gsize most = MAX(cli_terminal_columns(), CLI_COLUMNS);
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        bool is_wide = cli_prose_width(*line, strlen(*line)) > most;
        bool is_row = strstr(*line + strspn(*line, " "), "  ") != NULL; /* of a table */
        g_autofree char *fit = is_wide && !is_row ? cli_prose_fit(*line) : NULL;
        printf("%s%s", fit != NULL ? fit : *line, line[1] != NULL ? "\n" : "");
    }
}

PlotCharacters cli_terminal_characters(void) {
    return isatty(STDOUT_FILENO) && g_get_charset(NULL) ? PLOT_BLOCKS : PLOT_ASCII;
}

static int32_t last_step_of_ops(const Trace *trace, uint32_t rank) {
    int32_t last = -1; /* construction */
    for (guint i = 0; i < trace->ops->len; i++) {
        if (trace_op(trace, i)->rank == rank) {
            last = MAX(last, trace_op(trace, i)->step);
        }
    }
    return last;
}

static int32_t last_step_of_memory(const Trace *trace, uint32_t rank) {
    int32_t last = -1;
    for (guint i = 0; i < trace->memory->len; i++) {
        if (trace_memory(trace, i)->rank == rank) {
            last = MAX(last, trace_memory(trace, i)->step);
        }
    }
    return last;
}

/* A play that ran out has a step more of one than of the other, if it did so as the step began. */
static int32_t last_step(PlotPicture picture, const PlotPanel *panel) {
    return picture == PLOT_PICTURE_MEMORY ? last_step_of_memory(panel->trace, panel->rank)
                                          : last_step_of_ops(panel->trace, panel->rank);
}

/* Of a real run of PyTorch's own it is not known where its first step begins; its last ones are as
 * long as a prediction's. */
static bool has_run(const PlotPanel *panels, guint n_panels) {
    bool found = false;
    for (guint i = 0; i < n_panels; i++) {
        found |= g_str_equal(trace_get(panels[i].trace, "digest"), SNAPSHOT_NO_PLAN);
    }
    return found;
}

static bool ran_out(const PlotPanel *panels, guint n_panels) {
    bool found = false;
    for (guint i = 0; i < n_panels; i++) {
        g_autofree char *said = trace_oom_text(panels[i].trace);
        found |= said != NULL;
    }
    return found;
}

/* Of more steps a picture of memory shows no shape. Where memory ran out, it did so in the last. */
static void show_few(PlotOptions *plot, bool shows_end) {
    enum {
        MOST = 10,
        FEW = 4
    };
    if (plot->last_step - plot->first_step < MOST) {
        return;
    }
    if (shows_end) {
        plot->first_step = plot->last_step - FEW + 1;
    } else {
        plot->last_step = plot->first_step + FEW - 1;
    }
}

void cli_choose_steps(PlotPicture picture, const PlotPanel *panels, guint n_panels,
                      PlotOptions *plot) {
    bool shows_all = picture == PLOT_PICTURE_JITTER; /* each step is a mark of its own */
    plot->last_step = last_step(picture, &panels[0]);
    for (guint i = 1; i < n_panels; i++) {
        int32_t last = last_step(picture, &panels[i]);
        plot->last_step = shows_all ? MAX(plot->last_step, last) : MIN(plot->last_step, last);
    }
    plot->first_step = picture == PLOT_PICTURE_LANES ? plot->last_step : MIN(0, plot->last_step);
    if (n_panels > 1 && picture == PLOT_PICTURE_MEMORY && has_run(panels, n_panels)) {
        plot->first_step = MAX(plot->first_step, plot->last_step - 1);
    }
    if (picture == PLOT_PICTURE_MEMORY) {
        show_few(plot, ran_out(panels, n_panels));
    }
}

int cli_picture_status(const GError *error) {
    bool failed = g_error_matches(error, TRACE_ERROR, TRACE_ERROR_TOOL) ||
                  g_error_matches(error, TRACE_ERROR, TRACE_ERROR_FILE);
    return failed ? CLI_FAILED : CLI_BAD_INPUT;
}

char *cli_plots_folder(const char *script, GError **error) {
    g_autofree char *name = g_strdup(script);
    *strrchr(name, '.') = '\0'; /* looked up by name: a file of the current folder is not meant */
    g_autofree char *path = cli_data_find(CLI_DATA_PLOTS, name, error);
    return path != NULL ? g_path_get_dirname(path) : NULL;
}
