/* cli/commands/calibrate.c - `foreshard calibrate`: measures this machine, writes it as a cluster.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <stdio.h>

#include "cli/calibrate/calibrate.h"
#include "cli/cluster.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/output.h"
#include "cli/ranks.h"
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

static GString *fit_host(const CliSamples *samples, const char *costs, unsigned n,
                         const GArray *failures, GError **error) {
    g_autofree char *date = today();
    g_autoptr(ModelCluster) other = cli_cluster_read(OTHER, error);
    g_autoptr(ModelCluster) cluster = other ? cli_calibrate_fit(samples, costs, n, error) : NULL;
    return cluster ? cli_calibrate_text(&(CliMeasured){cluster, other, failures, n, date}) : NULL;
}

static GString *fit_gpu(const CliSamples *samples, const char *costs, unsigned n,
                        const GArray *failures, GError **error) {
    g_autofree char *date = today(), *name = NULL;
    g_autoptr(ModelCluster) cluster = cli_calibrate_fit_gpu(samples, costs, n, &name, error);
    return cluster ? cli_calibrate_text_gpu(&(CliMeasured){cluster, NULL, failures, n, date}, name)
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

static GString *measure(const char *device, unsigned n, const char *folder, FILE *say,
                        GError **error) {
    g_autofree char *program = cli_ranks_program(error);
    if (!program) {
        return NULL;
    }
    CliSamples samples;
    GError *why = NULL;
    GString *text = NULL;
    bool gpu = cli_ranks_is_cuda(device);
    g_autoptr(GArray) failures = cli_failures_new();
    cli_samples_init(&samples);
    samples.dtype = gpu ? PLAN_N_DTYPES : PLAN_FP32;
    g_autofree char *costs = cli_calibrate_costs(device, n, &why);
    if (is_refused(why)) {
        g_propagate_error(error, why);
        cli_samples_clear(&samples);
        return NULL;
    }
    if (!costs) {
        cli_failures_add(failures, "costs", why, say);
    }
    /* Ops are timed on one GPU; CPU ranks slow one another, and work at once. */
    unsigned n_plays =
        costs || !gpu ? cli_calibrate_play(device, gpu ? 1 : n, folder, say, &samples, failures)
                      : 0;
    if (n_plays || (costs && !gpu)) {
        text = (gpu ? fit_gpu : fit_host)(&samples, costs, n, failures, error);
    } else {
        fail(failures, error);
    }
    cli_samples_clear(&samples);
    return text;
}

/* What cannot be read back is not written. */
static bool write_cluster(const GString *text, const char *path, GError **error) {
    g_autoptr(ModelCluster) cluster = model_cluster_read(text->str, text->len, path, error);
    return cluster && cli_output_write(path, text->str, text->len, error);
}

static int calibrate(const Options *options) {
    g_autoptr(GError) error = NULL;
    FILE *say = cli_output_beside(options->output);
    g_autofree char *folder = plan_leftover_folder("foreshard-calibrate-XXXXXX", &error);
    g_autoptr(GString) text =
        folder ? measure(options->device, (unsigned)options->ranks, folder, say, &error) : NULL;
    bool ok = text && write_cluster(text, options->output, &error);
    if (folder) {
        plan_leftover_remove_folder(folder);
    }
    if (!ok) {
        return cli_complain(is_refused(error) ? CLI_BAD_INPUT : CLI_FAILED, "%s", error->message);
    }
    if (!cli_output_is_standard(options->output)) {
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

static void clear_options(Options *options) {
    g_free(options->device);
    g_free(options->output);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, clear_options)

static const CliCommand command = {
    .words = "",
    .give = "options alone, as in: -n 2 -o my-laptop.ini",
    .summary = "Measures this machine in under two minutes by training small networks on every "
               "rank at\nonce, and writes a cluster file that predict takes. Nothing else "
               "should run meanwhile.",
    .examples = "Example:\n  foreshard calibrate -n 2 -o my-laptop.ini\n"
                "  foreshard predict gpt-toy -n 2 --cluster ./my-laptop.ini\n\n"
                "Where a part fails the rest is measured all the same: the file says what failed, "
                "and marks\nthe numbers that are taken over from " OTHER ".\n\n"
                "Exit status: 0 measured, if not all of it; 1 nothing could be, or the file cannot "
                "be\nwritten; 2 a setting is refused.",
};

int cmd_calibrate(int argc, char **argv) {
    g_auto(Options) options = {.ranks = 1};
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
    if (!cli_command_read(&command, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    int status = check(&options);
    return status == CLI_OK ? calibrate(&options) : status;
}
