/* cli/commands/calibrate.c - `foreshard calibrate`: measures this machine, writes it as a cluster.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <stdio.h>

#include "cli/calibrate/calibrate.h"
#include "cli/commands/commands.h"
#include "cli/launch/ranks.h"
#include "cli/options/command.h"
#include "cli/say/output.h"
#include "cli/source/cluster.h"
#include "exec/comm/fork.h"
#include "plan/files/leftovers.h"
#include "trace/text.h"

typedef struct {
    char *device, *output;
    gint ranks;
} Options;

static char *today(void) {
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    return g_date_time_format(now, "%Y-%m-%d");
}

/* What a part that failed leaves open is taken over from there. */
#define OTHER "this-machine"

/* What is measured, and what has been. */
typedef struct {
    const Options *options;
    const char *folder; /* for what is written on the way */
    FILE *say;
    unsigned n;
    bool gpu;
    GString *lines;    /* that were said of costs */
    const char *costs; /* the same; NULL: they failed */
    CliSamples samples;
    GArray *failures;
} Measuring;

static GString *fit_host(const Measuring *m, GError **error) {
    g_autofree char *date = today();
    g_autoptr(ModelCluster) other = cli_cluster_read(OTHER, error);
    g_autoptr(ModelCluster) cluster =
        other ? cli_calibrate_fit(&m->samples, m->costs, m->n, error) : NULL;
    return cluster
               ? cli_calibrate_text(&(CliMeasured){cluster, other, m->failures, m->n, date, NULL})
               : NULL;
}

static GString *fit_gpu(const Measuring *m, const char *unfinished, GError **error) {
    g_autofree char *date = today(), *name = NULL;
    g_autoptr(ModelCluster) cluster =
        cli_calibrate_fit_gpu(&m->samples, m->costs, m->n, unfinished != NULL, &name, error);
    return cluster ? cli_calibrate_text_gpu(
                         &(CliMeasured){cluster, NULL, m->failures, m->n, date, unfinished}, name)
                   : NULL;
}

/* Everything failed, of a GPU its costs or all plays: the first says why. */
static void fail(const GArray *failures, GError **error) {
    const CliFailure *first = &g_array_index(failures, CliFailure, 0);
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "nothing could be measured: %s: %s",
                first->what, first->why);
}

/* A device that this build does not have. */
static bool is_refused(const GError *error) {
    return g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE);
}

/* What cannot be read back is not written. */
static bool write_cluster(const GString *text, const char *path, GError **error) {
    g_autoptr(ModelCluster) cluster = model_cluster_read(text->str, text->len, path, error);
    return cluster && cli_output_write(path, text->str, text->len, error);
}

static char *unfinished_path(const char *output) {
    return g_strconcat(output, ".unfinished", NULL);
}

/* A GPU may be lent for minutes: what there is so far is left beside the file that is to be. The
 * file itself tells whether it can be written. */
static void keep_so_far(const Measuring *m, const char *words) {
    g_autofree char *path = unfinished_path(m->options->output);
    g_autoptr(GString) text = fit_gpu(m, words, NULL);
    if (text) {
        write_cluster(text, path, NULL);
    }
}

/* An output that is a file, or will be one; /dev/null has none beside it. */
static bool is_file(const char *path) {
    return !cli_output_is_standard(path) &&
           (g_file_test(path, G_FILE_TEST_IS_REGULAR) || !g_file_test(path, G_FILE_TEST_EXISTS));
}

static bool keeps(const Measuring *m) {
    return m->gpu && is_file(m->options->output);
}

static void keep_what_was_played(const Measuring *m, unsigned measured, unsigned all) {
    if (keeps(m) && m->costs) {
        g_autofree char *words =
            g_strdup_printf("ops were timed in %u of %u networks", measured, all);
        keep_so_far(m, words);
    }
}

/* How many networks were measured; those behind one that fails are played too. */
static unsigned play_all(Measuring *m) {
    const char *device = m->options->device;
    unsigned measured = 0, all = cli_calibrate_plays(device);
    keep_what_was_played(m, 0, all);
    for (unsigned i = 0; i < all; i++) {
        /* Ops are timed on one GPU; CPU ranks slow one another, and work at once. */
        bool ok = cli_calibrate_play(device, i, m->gpu ? 1 : m->n, m->folder, m->say, &m->samples,
                                     m->failures);
        measured += ok;
        if (ok && i + 1 < all) {
            keep_what_was_played(m, measured, all);
        }
    }
    return measured;
}

static void keep_costs(gpointer data) {
    Measuring *m = data;
    if (keeps(m)) {
        m->costs = m->lines->str;
        keep_so_far(m, "attention was still being timed");
        m->costs = NULL;
    }
}

/* Of a GPU what was said before it failed may be enough. */
static bool measure_costs(Measuring *m, GError **error) {
    GError *why = NULL;
    bool whole =
        cli_calibrate_costs(m->options->device, m->n, m->folder, m->lines, keep_costs, m, &why);
    if (is_refused(why)) {
        g_propagate_error(error, why);
        return false;
    }
    if (!whole) {
        cli_failures_add(m->failures, "costs", why, m->say);
    }
    m->costs = m->lines->str;
    g_autoptr(GString) enough = whole || !m->gpu ? NULL : fit_gpu(m, "", NULL);
    m->costs = whole || enough ? m->lines->str : NULL;
    return true;
}

/* The text of the cluster file. */
static GString *measure(Measuring *m, GError **error) {
    if (!measure_costs(m, error)) {
        return NULL;
    }
    unsigned measured = m->costs || !m->gpu ? play_all(m) : 0;
    if (measured || (m->costs && !m->gpu)) {
        return m->gpu ? fit_gpu(m, NULL, error) : fit_host(m, error);
    }
    fail(m->failures, error);
    return NULL;
}

static GString *measure_in(const char *folder, const Options *options, GError **error) {
    g_autofree char *program = cli_ranks_program(error);
    if (!program) {
        return NULL;
    }
    Measuring m = {.options = options,
                   .folder = folder,
                   .say = cli_output_beside(options->output),
                   .n = (unsigned)options->ranks,
                   .gpu = cli_ranks_is_cuda(options->device),
                   .lines = g_string_new(NULL),
                   .failures = cli_failures_new()};
    cli_samples_init(&m.samples);
    m.samples.dtype = m.gpu ? PLAN_N_DTYPES : PLAN_FP32;
    GString *text = measure(&m, error);
    cli_samples_clear(&m.samples);
    g_array_unref(m.failures);
    g_string_free(m.lines, TRUE);
    return text;
}

static int calibrate(const Options *options) {
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = plan_leftover_folder("foreshard-calibrate-XXXXXX", &error);
    g_autoptr(GString) text = folder ? measure_in(folder, options, &error) : NULL;
    bool ok = text && write_cluster(text, options->output, &error);
    if (folder) {
        plan_leftover_remove_folder(folder);
    }
    if (!ok) {
        return cli_complain(is_refused(error) ? CLI_BAD_INPUT : CLI_FAILED, "%s", error->message);
    }
    if (!cli_output_is_standard(options->output)) {
        g_autofree char *unfinished = unfinished_path(options->output);
        g_unlink(unfinished);
        printf("cluster    %s\n", options->output);
    }
    return CLI_OK;
}

static int check(const Options *options) {
    g_autoptr(GError) error = NULL;
    if (!cli_ranks_know_device(options->device, &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    if (options->ranks < 1 || options->ranks > EXEC_FORK_MOST || !options->output) {
        return cli_complain(CLI_BAD_INPUT, "give -o FILE, and -n from 1 to %d", EXEC_FORK_MOST);
    }
    return cli_output_can_be_written(options->output, &error)
               ? CLI_OK
               : cli_complain(CLI_FAILED, "%s", error->message);
}

static const CliCommand command = {
    .words = "",
    .give = "options alone, as in: -n 2 -o my-laptop.ini",
    .summary =
        "Measures this machine in under two minutes by training small networks on every rank at "
        "once, and writes a cluster file that predict takes. Nothing else should run meanwhile.",
    .examples =
        "Examples:\n"
        "  foreshard calibrate -n 2 -o my-laptop.ini\n"
        "  foreshard predict gpt-toy -n 2 --cluster ./my-laptop.ini\n\n"
        "Where a part fails the rest is measured all the same: the file says what failed, and "
        "marks the numbers that are taken over from " OTHER ". Of a GPU FILE.unfinished has what "
        "there is so far, until FILE has all.\n\n"
        "Exit status: 0 measured, if not all of it; 1 nothing could be, or the file cannot be "
        "written; 2 a setting is refused.",
};

int cmd_calibrate(int argc, char **argv) {
    Options options = {.ranks = 1};
    const GOptionEntry entries[] = {
        {"device", 0, 0, G_OPTION_ARG_STRING, &options.device,
         "what is measured: host (default) or cuda", "DEVICE"},
        {"ranks", 'n', 0, G_OPTION_ARG_INT, &options.ranks,
         "ranks that work at once, as they will in training (default 1)", "N"},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output,
         "write the cluster file here; - is standard output", "FILE"},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    int status = check(&options);
    return status == CLI_OK ? calibrate(&options) : status;
}
