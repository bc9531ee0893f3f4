/* cli/commands/compare.c - foreshard compare: two traces of one plan, the first judged by the
 * second; or a trace, and what PyTorch recorded of a run of its own. */
#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/measured/measured.h"
#include "cli/options/command.h"
#include "cli/say/prose.h"
#include "exec/shared-options.h"
#include "trace/compare/compare.h"
#include "trace/files.h"
#include "trace/import/file.h"
#include "trace/text.h"

static const CliCommand command = {
    .words = "PREDICTED (MEASURED | SNAPSHOT | PROFILE)",
    .least = 2,
    .most = 2,
    .give = "two traces, or a trace and a file of PyTorch's",
    .summary =
        "Compares a predicted trace with a measured one of the same plan: step time, phases, "
        "lanes, collectives and ops, the ten worst ops and units, peaks of memory, and memory at "
        "every instruction.\n\n"
        "Or compares it with what PyTorch recorded of a run of its own: a memory snapshot "
        "(torch.cuda.memory._dump_snapshot(), a pickle, read without running anything in it), or "
        "a profile (export_chrome_trace() of a profiler, JSON); either may be gzipped. From a "
        "snapshot it takes peaks, and the sizes that one side holds or requests more often than "
        "the other; from a profile, times of the GPU and of the host.",
    .examples =
        "Examples:\n"
        "  foreshard compare predicted.trace measured.trace\n"
        "  foreshard compare --json predicted.trace measured.trace > comparison.json\n"
        "  foreshard compare predicted.trace snapshot.pickle\n"
        "  foreshard compare --rank 3 predicted.trace rank3.pt.trace.json.gz\n\n"
        "Exit status: 0 compared, whatever the difference; 2 a file cannot be read, or two traces "
        "are of different plans.",
};

static char *text_of(const TraceComparison *comparison) {
    g_autofree char *text = trace_comparison_text(comparison);
    g_autofree char *verdict = trace_comparison_verdict(comparison);
    return g_strdup_printf("%s\n%s\n", text, verdict);
}

static char *json_of(const TraceComparison *comparison) {
    g_autoptr(JsonNode) root = trace_comparison_json(comparison);
    g_autofree char *text = json_to_string(root, TRUE);
    return g_strdup_printf("%s\n", text);
}

/* Both forms, as DIR/compare.txt and DIR/compare.json. */
static bool write_folder(const char *folder, const char *text, const char *json, GError **error) {
    if (g_mkdir_with_parents(folder, 0777) != 0) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE, "%s: cannot be made: %s", folder,
                    g_strerror(errno));
        return false;
    }
    g_autofree char *fit = cli_prose_fit(text);
    g_autofree char *text_path = g_build_filename(folder, "compare.txt", NULL);
    g_autofree char *json_path = g_build_filename(folder, "compare.json", NULL);
    return trace_write_bytes(text_path, fit, strlen(fit), error) &&
           trace_write_bytes(json_path, json, strlen(json), error);
}

static int show(const char *text, const char *json, bool as_json, const char *folder) {
    g_autoptr(GError) error = NULL;
    if (folder != NULL && !write_folder(folder, text, json, &error)) {
        return cli_complain(CLI_FAILED, "%s", error->message);
    }
    if (as_json) {
        fputs(json, stdout);
    } else {
        cli_prose_print(text);
    }
    return CLI_OK;
}

static int compare_with_run(const Trace *trace, const MeasuredOptions *options, bool as_json,
                            const char *folder) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Measured) measured = measured_compare(trace, options, &error);
    if (measured == NULL) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    g_autofree char *text = measured_text(measured);
    g_autofree char *json = measured_json(measured);
    return show(text, json, as_json, folder);
}

/* A file of PyTorch's where the prediction is to stand. */
static int complain_of_order(const char *first, const char *second) {
    return cli_complain(CLI_BAD_INPUT,
                        "%s was recorded by PyTorch; the prediction comes first: foreshard compare "
                        "%s %s",
                        first, trace_is_file(second) ? second : "PREDICTED", first);
}

int cmd_compare(int argc, char **argv) {
    gboolean json = FALSE;
    char *output = NULL;
    int rank = CLI_NOT_GIVEN, device = CLI_NOT_GIVEN;
    const GOptionEntry entries[] = {
        {"json", 'j', 0, G_OPTION_ARG_NONE, &json, "print JSON (times in ns, sizes in bytes)",
         NULL},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
         "also write compare.txt and compare.json into this folder", "DIR"},
        {"rank", 'r', 0, G_OPTION_ARG_INT, &rank,
         "with a file from PyTorch: the rank of the prediction (default: the lowest recorded)",
         "N"},
        {"device", 0, 0, G_OPTION_ARG_INT, &device,
         "with a file from PyTorch: the device in it (default: the busiest)", "N"},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    if (!cli_command_read(&command, entries, context, &argc, &argv) ||
        !cli_number_is_sound("--rank", &rank) || !cli_number_is_sound("--device", &device)) {
        return CLI_BAD_INPUT;
    }
    g_autoptr(GError) error = NULL;
    if (!exec_option_is_file("-o", output, &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    if (import_kind_of_file(argv[1]) != IMPORT_OTHER) {
        return complain_of_order(argv[1], argv[2]);
    }
    g_autoptr(Trace) first = trace_read_file(argv[1], &error);
    if (first != NULL && import_kind_of_file(argv[2]) != IMPORT_OTHER) {
        const MeasuredOptions options = {argv[1], argv[2], rank, device};
        return compare_with_run(first, &options, json, output);
    }
    if (rank >= 0 || device >= 0) {
        return cli_complain(CLI_BAD_INPUT, "--rank and --device are for a file of PyTorch's; two "
                                           "traces are compared by the ranks that both recorded");
    }
    g_autoptr(Trace) second = first != NULL ? trace_read_file(argv[2], &error) : NULL;
    if (second == NULL) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    g_autoptr(TraceComparison) comparison = trace_compare(first, second, &error);
    if (comparison == NULL) {
        return cli_complain(CLI_BAD_INPUT, "%s, %s: %s", argv[1], argv[2], error->message);
    }
    g_autofree char *text = text_of(comparison);
    g_autofree char *as_json = json_of(comparison);
    return show(text, as_json, json, output);
}
