/* cli/commands/compare.c - foreshard compare: two traces of one plan, the first judged by the
 * second. */
#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/commands/commands.h"
#include "exec/shared-options.h"
#include "trace/compare/compare.h"
#include "trace/text.h"

static const CliCommand command = {
    .words = "PREDICTED MEASURED",
    .least = 2,
    .most = 2,
    .give = "two traces",
    .summary =
        "Compares a predicted trace with a measured one of the same plan: step time, phases, "
        "lanes,\n"
        "collectives and ops, the ten ops and units that err most, peaks of memory, and memory at "
        "every\n"
        "instruction.",
    .examples = "Examples:\n"
                "  foreshard compare predicted.trace measured.trace\n"
                "  foreshard compare --json predicted.trace measured.trace > comparison.json\n"
                "\n"
                "Exit status: 0 compared, whatever the difference; 2 a trace cannot be read, or "
                "the two are "
                "of\n"
                "different plans.",
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
    g_autofree char *text_path = g_build_filename(folder, "compare.txt", NULL);
    g_autofree char *json_path = g_build_filename(folder, "compare.json", NULL);
    return trace_write_bytes(text_path, text, strlen(text), error) &&
           trace_write_bytes(json_path, json, strlen(json), error);
}

static int show(const TraceComparison *comparison, bool as_json, const char *folder) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = text_of(comparison);
    g_autofree char *json = json_of(comparison);
    if (folder != NULL && !write_folder(folder, text, json, &error)) {
        return cli_complain(CLI_FAILED, "%s", error->message);
    }
    fputs(as_json ? json : text, stdout);
    return CLI_OK;
}

int cmd_compare(int argc, char **argv) {
    gboolean json = FALSE;
    g_autofree char *output = NULL;
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "print JSON (times in ns, sizes in bytes)", NULL},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
         "write compare.txt and compare.json into this folder too", "DIR"},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    if (!cli_command_read(&command, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    g_autoptr(GError) error = NULL;
    if (!exec_option_is_file("-o", output, &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    g_autoptr(Trace) first = trace_read_file(argv[1], &error);
    g_autoptr(Trace) second = first != NULL ? trace_read_file(argv[2], &error) : NULL;
    if (second == NULL) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    g_autoptr(TraceComparison) comparison = trace_compare(first, second, &error);
    if (comparison == NULL) {
        return cli_complain(CLI_BAD_INPUT, "%s, %s: %s", argv[1], argv[2], error->message);
    }
    return show(comparison, json, output);
}
