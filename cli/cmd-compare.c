/* cli/cmd-compare.c - foreshard compare: two traces of one plan, the first judged by the second. */
#include <stdio.h>

#include "cli/commands.h"
#include "trace/compare.h"
#include "trace/text.h"

enum {
    OK = 0,
    FAILED = 1,
    BAD_INPUT = 2
};

static const char summary[] =
    "Compares a predicted trace with a measured one of the same plan: step time, phases, lanes,\n"
    "collectives and ops, peaks of memory, and memory at every instruction.";

static const char examples[] =
    "Examples:\n"
    "  foreshard compare predicted.trace measured.trace\n"
    "  foreshard compare --json predicted.trace measured.trace > comparison.json\n"
    "\n"
    "Exit status: 0 compared, whatever the difference; 2 a trace cannot be read, or the two are "
    "of\n"
    "different plans.";

static void print_json(const TraceComparison *comparison) {
    g_autoptr(JsonNode) root = trace_comparison_json(comparison);
    g_autofree char *text = json_to_string(root, TRUE);
    printf("%s\n", text);
}

static void print_text(const TraceComparison *comparison) {
    g_autofree char *text = trace_comparison_text(comparison);
    g_autofree char *verdict = trace_comparison_verdict(comparison);
    printf("%s\n%s\n", text, verdict);
}

int cmd_compare(int argc, char **argv) {
    gboolean json = FALSE;
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "Print JSON (times in ns, sizes in bytes)", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = g_option_context_new("PREDICTED MEASURED");
    g_option_context_set_summary(context, summary);
    g_option_context_set_description(context, examples);
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) error = NULL;
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        fprintf(stderr, "foreshard compare: %s\n", error->message);
        return BAD_INPUT;
    }
    if (argc != 3) {
        fprintf(stderr, "foreshard compare: give two traces; see foreshard compare --help\n");
        return BAD_INPUT;
    }
    g_autoptr(Trace) first = trace_read_file(argv[1], &error);
    g_autoptr(Trace) second = first != NULL ? trace_read_file(argv[2], &error) : NULL;
    if (second == NULL) {
        fprintf(stderr, "foreshard compare: %s\n", error->message);
        return BAD_INPUT;
    }
    g_autoptr(TraceComparison) comparison = trace_compare(first, second, &error);
    if (comparison == NULL) {
        fprintf(stderr, "foreshard compare: %s, %s: %s\n", argv[1], argv[2], error->message);
        return BAD_INPUT;
    }
    if (json) {
        print_json(comparison);
    } else {
        print_text(comparison);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "foreshard compare: the output cannot be written\n");
        return FAILED;
    }
    return OK;
}
