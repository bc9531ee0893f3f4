/* cli/commands/report.c - foreshard report: traces as one page that stands by itself. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/options/command.h"
#include "cli/plot/pictures.h"
#include "cli/report/report.h"
#include "cli/say/output.h"
#include "cli/source/cluster.h"
#include "cli/source/trace-file.h"
#include "trace/text.h"

static const CliCommand command = {
    .words = "(DIR | TRACE)...",
    .least = 1,
    .most = G_MAXINT,
    .give = "traces, or their folder, and -o FILE.html",
    .summary =
        "Writes one self-contained HTML page about traces: verdicts, drawings of memory over time "
        "and of lanes, what the peak is made of, predicted against measured, the diagnosis, "
        "units, settings, versions and seeds, and the commands that repeat it.",
    .examples =
        "Examples:\n"
        "  foreshard report predicted.trace measured.trace -o report.html\n"
        "  foreshard report traces/ -o report.html                 every .trace in a folder\n"
        "  foreshard report --json traces/ -o report.json\n\n"
        "Exit status: 0 written; 1 gnuplot is missing or failed, or the file cannot be written; 2 "
        "a trace cannot be read, or two are of the same plan and side.",
};

static int compare_names(gconstpointer a, gconstpointer b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What is nothing here is taken for a network, which other commands predict by themselves. */
static bool is_there(const char *word, GError **error) {
    bool is_path = strchr(word, '/') != NULL || strchr(word, '.') != NULL;
    if (is_path || g_file_test(word, G_FILE_TEST_EXISTS)) {
        return true;
    }
    g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                "%s is no trace and no folder of traces; of a network make one: foreshard predict "
                "%s --cluster a100-node --trace %s.trace",
                word, word, word);
    return false;
}

/* A folder stands for its files that end in .trace, by name. */
static bool add_paths(GPtrArray *paths, const char *word, GError **error) {
    if (!is_there(word, error)) {
        return false;
    }
    if (!g_file_test(word, G_FILE_TEST_IS_DIR)) {
        g_ptr_array_add(paths, g_strdup(word));
        return true;
    }
    g_autoptr(GDir) dir = g_dir_open(word, 0, error);
    if (dir == NULL) {
        return false;
    }
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    const char *name;
    while ((name = g_dir_read_name(dir)) != NULL) {
        if (g_str_has_suffix(name, ".trace")) {
            g_ptr_array_add(found, g_build_filename(word, name, NULL));
        }
    }
    if (found->len == 0) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s holds no file that ends in .trace; name traces, or their folder", word);
        return false;
    }
    g_ptr_array_sort(found, compare_names);
    for (guint i = 0; i < found->len; i++) {
        g_ptr_array_add(paths, found->pdata[i]);
    }
    return true;
}

static void free_trace(gpointer trace) {
    trace_free(trace);
}

/* The page itself would say in the diagnosis' place that it is not. */
static bool cluster_is_known(const char *name, GError **error) {
    g_autoptr(ModelCluster) cluster = name != NULL ? cli_cluster_read(name, error) : NULL;
    return name == NULL || cluster != NULL;
}

/* The endings of pictures are slips: what is written is HTML. */
static bool is_a_page(const char *output) {
    static const char *const pictures[] = {".pdf", ".png", ".svg", ".jpg"};
    for (guint i = 0; output != NULL && i < G_N_ELEMENTS(pictures); i++) {
        if (g_str_has_suffix(output, pictures[i])) {
            return false;
        }
    }
    return true;
}

static int report(int n_words, char **words, const char *cluster, const char *output, bool json) {
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) traces = g_ptr_array_new_with_free_func(free_trace);
    for (int i = 0; i < n_words; i++) {
        if (!add_paths(paths, words[i], &error)) {
            return cli_complain(CLI_BAD_INPUT, "%s", error->message);
        }
    }
    if (!cli_spares_inputs(output, (const char *const *)paths->pdata, paths->len, &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    if (!cluster_is_known(cluster, &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    for (guint i = 0; i < paths->len; i++) {
        Trace *trace = cli_trace_read(paths->pdata[i], &error);
        if (trace == NULL) {
            return cli_complain(CLI_BAD_INPUT, "%s", error->message);
        }
        g_ptr_array_add(traces, trace);
    }
    g_autoptr(GString) page =
        json ? cli_report_json(traces, cluster, &error) : cli_report(traces, cluster, &error);
    if (page == NULL) {
        return cli_complain(cli_picture_status(error), "%s", error->message);
    }
    if (!cli_output_write(output, page->str, page->len, &error)) {
        return cli_complain(CLI_FAILED, "%s", error->message);
    }
    return CLI_OK;
}

int cmd_report(int argc, char **argv) {
    char *output = NULL, *cluster = NULL;
    gboolean json = FALSE;
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
         "the page to write; - is standard output", "FILE.html"},
        {"cluster", 'c', 0, G_OPTION_ARG_STRING, &cluster,
         "the machine to diagnose on, by name or file (default: the one that the trace names)",
         "C"},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &json,
         "write the page's figures as one JSON object instead (printed without -o)", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    if (output == NULL && !json) {
        return cli_complain(CLI_BAD_INPUT, "give %s; --help says more", command.give);
    }
    if (!is_a_page(output)) {
        return cli_complain(CLI_BAD_INPUT,
                            "%s: a report is a page, whose name ends in .html; a browser prints it "
                            "as PDF, and foreshard plot draws single pictures",
                            output);
    }
    return report(argc - 1, argv + 1, cluster, output != NULL ? output : "-", json);
}
