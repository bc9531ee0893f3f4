/* cli/commands/export.c - foreshard export: a trace in the forms that other tools open. */
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/options.h"
#include "trace/export/export.h"
#include "trace/text.h"

enum {
    OK = 0,
    FAILED = 1,
    BAD_INPUT = 2
};

static const char summary[] =
    "Writes a trace in a form that another tool opens: --chrome for Perfetto (ui.perfetto.dev) "
    "and\n"
    "chrome://tracing, --memory-viz for PyTorch's memory page (pytorch.org/memory_viz).";

static const char examples[] =
    "Examples:\n"
    "  foreshard export --chrome predicted.trace -o predicted.json\n"
    "  foreshard export --memory-viz measured.trace -o measured.pickle\n"
    "\n"
    "In the pickle, addresses are made up; sizes, times and owners are the trace's.\n"
    "\n"
    "Exit status: 0 written; 1 the file cannot be written; 2 the trace cannot be read.";

typedef GString *Exporter(const Trace *trace);

static int export_trace(const char *path, Exporter *exporter, const char *output) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Trace) trace = trace_read_file(path, &error);
    if (trace == NULL) {
        fprintf(stderr, "foreshard export: %s\n", error->message);
        return BAD_INPUT;
    }
    g_autoptr(GString) bytes = exporter(trace);
    if (!trace_write_aside(output, bytes->str, bytes->len, &error)) {
        fprintf(stderr, "foreshard export: %s\n", error->message);
        return FAILED;
    }
    return OK;
}

int cmd_export(int argc, char **argv) {
    gboolean chrome = FALSE, memory_viz = FALSE;
    g_autofree char *output = NULL;
    const GOptionEntry entries[] = {
        {"chrome", 0, 0, G_OPTION_ARG_NONE, &chrome,
         "JSON for Perfetto: lanes as threads, memory as counters", NULL},
        {"memory-viz", 0, 0, G_OPTION_ARG_NONE, &memory_viz,
         "a memory snapshot as PyTorch pickles it", NULL},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "the file to write", "FILE"},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = g_option_context_new("TRACE");
    g_option_context_set_summary(context, summary);
    g_option_context_set_description(context, examples);
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) error = NULL;
    if (!cli_options_parse(context, &argc, &argv, &error)) {
        fprintf(stderr, "foreshard export: %s\n", error->message);
        return BAD_INPUT;
    }
    if (argc != 2 || chrome == memory_viz || output == NULL) {
        fprintf(stderr, "foreshard export: give one trace, one of --chrome and --memory-viz, and "
                        "-o FILE; see foreshard export --help\n");
        return BAD_INPUT;
    }
    return export_trace(argv[1], chrome ? trace_export_chrome : trace_export_memory_viz, output);
}
