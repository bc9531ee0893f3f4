/* cli/commands/diagnose.c - foreshard diagnose: what a trace waits for and holds, and what helps.
 */
#include "cli/diagnose/diagnose.h"
#include "cli/commands/commands.h"
#include "cli/options/command.h"
#include "cli/predict/trace-source.h"
#include "cli/say/output.h"
#include "cli/say/prose.h"
#include "cli/say/rows-csv.h"

static const CliCommand command = {
    .words = "TRACE | PLAN | NETWORK",
    .least = 1,
    .most = 1,
    .give = "one trace, or a network and --cluster",
    .summary =
        "Says what the peak memory of a trace is made of, what its steps wait for, and what each "
        "other setting would change, one at a time, by prediction. Ends with the bottleneck, the "
        "remedy, and whether a simpler strategy would do better. A network or a plan is predicted "
        "first.",
    .examples =
        "Examples:\n"
        "  foreshard predict gpt-toy -n 8 --cluster a100-node --wrap whole --trace whole.trace\n"
        "  foreshard diagnose whole.trace\n"
        "  foreshard diagnose gpt-toy -n 8 --cluster a100-node --wrap whole\n"
        "  foreshard diagnose measured.trace --cluster this-machine\n"
        "  foreshard diagnose --json whole.trace > whole.json\n"
        "\n"
        "Exit status: 0 diagnosed; 2 the input cannot be read, or a trace does not name its "
        "network.",
};

static JsonBuilder *json_of(const CliDiagnosis *diagnosis) {
    JsonBuilder *json = json_builder_new();
    json_builder_begin_object(json);
    cli_diagnosis_add_json(diagnosis, json);
    json_builder_end_object(json);
    return json;
}

static void say(const CliDiagnosis *diagnosis, bool as_json, bool as_csv) {
    if (!as_json && !as_csv) {
        g_autofree char *text = cli_diagnosis_text(diagnosis);
        cli_prose_print(text);
        return;
    }
    g_autoptr(JsonBuilder) json = json_of(diagnosis);
    if (as_json) {
        cli_output_print_json(json);
    } else {
        cli_rows_print_csv(json, "remedies");
    }
}

int cmd_diagnose(int argc, char **argv) {
    char *cluster = NULL;
    gboolean json = FALSE, csv = FALSE;
    int rank = CLI_NOT_GIVEN;
    const GOptionEntry entries[] = {
        {"cluster", 'c', 0, G_OPTION_ARG_STRING, &cluster,
         "the machine to predict on, by name or file (default: the one that a trace names)", "C"},
        {"rank", 'r', 0, G_OPTION_ARG_INT, &rank,
         "the rank of a trace (default: memory of the fullest recorded, times of the one that "
         "waits least for others)",
         "R"},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &json, "print one JSON object", NULL},
        {"csv", 0, 0, G_OPTION_ARG_NONE, &csv,
         "print each setting that was tried, and its effect, as CSV", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    if (!cli_command_read(&command, entries, context, &argc, &argv) ||
        !cli_number_is_sound("--rank", &rank)) {
        return CLI_BAD_INPUT;
    }
    if (json && csv) {
        return cli_complain(CLI_BAD_INPUT, CLI_ROWS_CSV_OR_JSON);
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(Trace) trace = cli_trace_check_settings(source, 1, argv + 1, &error)
                                 ? cli_trace_load(source, argv[1], cluster, &error)
                                 : NULL;
    uint32_t whose = rank >= 0 ? (uint32_t)rank : TRACE_NONE;
    g_autoptr(CliDiagnosis) diagnosis =
        trace != NULL ? cli_diagnose(trace, whose, cluster, &error) : NULL;
    if (diagnosis == NULL) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    say(diagnosis, json, csv);
    return CLI_OK;
}
