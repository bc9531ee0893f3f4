/* cli/commands/calibrate.c - `foreshard calibrate`: measures this machine, writes it as a cluster.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <stdio.h>

#include "cli/calibrate/calibrate.h"
#include "cli/commands/commands.h"
#include "cli/options.h"
#include "cli/ranks.h"

typedef struct {
    char *device, *output;
    gint ranks;
} Options;

static char *today(void) {
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    return g_date_time_format(now, "%Y-%m-%d");
}

static GString *fit_host(const CliSamples *samples, const char *costs, unsigned n, GError **error) {
    g_autofree char *date = today();
    g_autoptr(ModelCluster) cluster = cli_calibrate_fit(samples, costs, n, error);
    return cluster ? cli_calibrate_text(cluster, n, date) : NULL;
}

static GString *fit_gpu(const CliSamples *samples, const char *costs, unsigned n, GError **error) {
    g_autofree char *date = today(), *name = NULL;
    g_autoptr(ModelCluster) cluster = cli_calibrate_fit_gpu(samples, costs, n, &name, error);
    return cluster ? cli_calibrate_text_gpu(cluster, name, n, date) : NULL;
}

static GString *measure(const char *device, unsigned n, const char *folder, GError **error) {
    CliSamples samples;
    GString *text = NULL;
    bool gpu = cli_ranks_is_cuda(device);
    cli_samples_init(&samples);
    samples.dtype = gpu ? PLAN_N_DTYPES : PLAN_FP32;
    g_autofree char *costs = cli_calibrate_costs(device, n, error);
    /* Ops are timed on one GPU; CPU ranks slow one another, and work at once. */
    if (costs && cli_calibrate_play(device, gpu ? 1 : n, folder, &samples, error)) {
        text = (gpu ? fit_gpu : fit_host)(&samples, costs, n, error);
    }
    cli_samples_clear(&samples);
    return text;
}

/* What cannot be read back is not written. */
static bool write_cluster(const GString *text, const char *path, GError **error) {
    g_autoptr(ModelCluster) cluster = model_cluster_read(text->str, text->len, path, error);
    return cluster && g_file_set_contents(path, text->str, (gssize)text->len, error);
}

static int calibrate(const Options *options) {
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("foreshard-calibrate-XXXXXX", &error);
    g_autoptr(GString) text =
        folder ? measure(options->device, (unsigned)options->ranks, folder, &error) : NULL;
    bool ok = text && write_cluster(text, options->output, &error);
    if (folder) {
        g_rmdir(folder);
    }
    if (!ok) {
        fprintf(stderr, "foreshard calibrate: %s\n", error->message);
        return 1;
    }
    printf("cluster    %s\n", options->output);
    return 0;
}

static bool options_are_sound(const Options *options) {
    if (!cli_ranks_know_device(options->device)) {
        fprintf(stderr, "foreshard calibrate: there is no device '%s'; devices are host and cuda\n",
                options->device);
        return false;
    }
    if (options->ranks < 1 || options->ranks > 1024 || !options->output) {
        fprintf(stderr, "foreshard calibrate: give -o FILE, and -n from 1 to 1024\n");
        return false;
    }
    g_autofree char *folder = g_path_get_dirname(options->output);
    if (!g_file_test(folder, G_FILE_TEST_IS_DIR)) {
        fprintf(stderr, "foreshard calibrate: there is no folder %s to write into\n", folder);
        return false;
    }
    return true;
}

int cmd_calibrate(int argc, char **argv) {
    Options options = {.ranks = 1};
    GOptionEntry entries[] = {{"device", 0, 0, G_OPTION_ARG_STRING, &options.device,
                               "what is measured: host (default) or cuda", "DEVICE"},
                              {"ranks", 'n', 0, G_OPTION_ARG_INT, &options.ranks,
                               "ranks that work at once, as they will in training (default 1)",
                               "N"},
                              {"output", 'o', 0, G_OPTION_ARG_FILENAME, &options.output,
                               "write the cluster file here", "FILE"},
                              {0}};
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(
        context, "Measures this machine in under two minutes by training small networks on every "
                 "rank at\nonce, and writes a cluster file that predict takes. Nothing else "
                 "should run meanwhile.");
    g_option_context_set_description(
        context, "Example:\n  foreshard calibrate -n 2 -o my-laptop.ini\n"
                 "  foreshard predict gpt-toy -n 2 --cluster ./my-laptop.ini\n\n"
                 "Exit status: 0 measured; 1 a rank failed, or the file cannot be written; 2 a "
                 "setting is refused.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) error = NULL;
    int status = 2;
    if (!cli_options_parse(context, &argc, &argv, &error)) {
        fprintf(stderr, "foreshard calibrate: %s\n", error->message);
    } else if (argc != 1) {
        fprintf(stderr, "foreshard calibrate: takes no '%s'; --help says more\n", argv[1]);
    } else if (options_are_sound(&options)) {
        status = calibrate(&options);
    }
    g_free(options.device);
    g_free(options.output);
    return status;
}
