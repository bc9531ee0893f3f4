/* cli/commands/export.c - foreshard export: a trace in the forms that other tools open. */
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/options/command.h"
#include "cli/say/output.h"
#include "cli/source/trace-file.h"
#include "trace/export/export.h"
#include "trace/text.h"

static const CliCommand command = {
    .words = "TRACE",
    .least = 1,
    .most = 1,
    .give = "one trace, one of --chrome and --memory-viz, and -o FILE",
    .summary = "Writes a trace in a form that another tool opens: --chrome for Perfetto "
               "(ui.perfetto.dev) and chrome://tracing, --memory-viz for PyTorch's memory page "
               "(pytorch.org/memory_viz).",
    .examples = "Examples:\n"
                "  foreshard export --chrome predicted.trace -o predicted.json\n"
                "  foreshard export --memory-viz measured.trace -o measured.pickle\n"
                "\n"
                "In the pickle, addresses are made up; sizes, times and owners are the trace's.\n"
                "\n"
                "Exit status: 0 written; 1 the file cannot be written; 2 the trace cannot be read.",
};

typedef GString *Exporter(const Trace *trace);

static int export_trace(const char *path, Exporter *exporter, const char *output) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Trace) trace =
        cli_spares_inputs(output, &path, 1, &error) ? cli_trace_read(path, &error) : NULL;
    if (trace == NULL) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    g_autoptr(GString) bytes = exporter(trace);
    if (!cli_output_write(output, bytes->str, bytes->len, &error)) {
        return cli_complain(CLI_FAILED, "%s", error->message);
    }
    return CLI_OK;
}

int cmd_export(int argc, char **argv) {
    gboolean chrome = FALSE, memory_viz = FALSE;
    char *output = NULL;
    const GOptionEntry entries[] = {
        {"chrome", 0, 0, G_OPTION_ARG_NONE, &chrome,
         "JSON for Perfetto: lanes as threads, memory as counters", NULL},
        {"memory-viz", 0, 0, G_OPTION_ARG_NONE, &memory_viz,
         "a memory snapshot as PyTorch pickles it", NULL},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
         "the file to write; - is standard output", "FILE"},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    if (chrome == memory_viz || output == NULL) {
        return cli_complain(CLI_BAD_INPUT, "give %s; --help says more", command.give);
    }
    return export_trace(argv[1], chrome ? trace_export_chrome : trace_export_memory_viz, output);
}
