/* cli/commands/diagnose.c - foreshard diagnose: what a trace waits for and holds, and what helps.
 */
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/diagnose/diagnose.h"
#include "cli/options.h"
#include "cli/plot/pictures.h"
#include "trace/text.h"

enum {
    OK = 0,
    FAILED = 1,
    BAD_INPUT = 2
};

static const char summary[] =
    "Says what a trace's peak memory is made of, what its steps wait for, and which setting would\n"
    "change it by how much: each neighbour of the strategy is predicted. Ends with the "
    "bottleneck,\n"
    "the remedy, and whether a simpler strategy would do better.";

static const char examples[] =
    "Examples:\n"
    "  foreshard predict gpt-toy -n 8 --cluster a100-node --wrap whole --trace whole.trace\n"
    "  foreshard diagnose whole.trace\n"
    "  foreshard diagnose measured.trace --cluster this-machine\n"
    "\n"
    "Exit status: 0 diagnosed; 2 the trace cannot be read, or does not say what it is of.";

int cmd_diagnose(int argc, char **argv) {
    g_autofree char *cluster = NULL;
    int rank = -1;
    const GOptionEntry entries[] = {
        {"cluster", 'c', 0, G_OPTION_ARG_STRING, &cluster,
         "the machine of predictions (default: the one the trace names)", "C"},
        {"rank", 'r', 0, G_OPTION_ARG_INT, &rank, "the rank (default: the lowest recorded)", "R"},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = g_option_context_new("TRACE");
    g_option_context_set_summary(context, summary);
    g_option_context_set_description(context, examples);
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) error = NULL;
    if (!cli_options_parse(context, &argc, &argv, &error)) {
        fprintf(stderr, "foreshard diagnose: %s\n", error->message);
        return BAD_INPUT;
    }
    if (argc != 2) {
        fprintf(stderr, "foreshard diagnose: give one trace; see foreshard diagnose --help\n");
        return BAD_INPUT;
    }
    g_autoptr(Trace) trace = trace_read_file(argv[1], &error);
    uint32_t whose = rank >= 0 || trace == NULL ? (uint32_t)rank : cli_lowest_rank(trace);
    g_autoptr(CliDiagnosis) diagnosis =
        trace != NULL ? cli_diagnose(trace, whose, cluster, &error) : NULL;
    if (diagnosis == NULL) {
        fprintf(stderr, "foreshard diagnose: %s\n", error->message);
        return BAD_INPUT;
    }
    g_autofree char *text = cli_diagnosis_text(diagnosis);
    if (fputs(text, stdout) == EOF || fflush(stdout) != 0) {
        fprintf(stderr, "foreshard diagnose: the output cannot be written\n");
        return FAILED;
    }
    return OK;
}
