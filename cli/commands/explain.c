/* cli/commands/explain.c - foreshard explain: a number down to its rows and formula. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/explain/example.h"
#include "cli/explain/explain.h"
#include "cli/options/command.h"
#include "cli/predict/precision.h"
#include "cli/predict/predict.h"
#include "cli/predict/trace-source.h"
#include "cli/say/output.h"
#include "cli/say/prose.h"
#include "cli/say/rows-csv.h"
#include "cli/source/cluster.h"
#include "cli/source/plan-source.h"
#include "cli/what-if/what-if.h"
#include "trace/text.h"

#define DEFAULT_CLUSTER "dgx-h100"
#define SHARDINGS       "shardings" /* in the place of a number: all strategies side by side */

static const CliCommand command = {
    .words = "(KEY | UNIT | OP | SETTING | " SHARDINGS ") [TRACE | PLAN | NETWORK]",
    .least = 1,
    .most = 2,
    .give = "what to explain, as in: foreshard explain backward_prefetch; and, if it is not the "
            "example's, a trace, a plan or a network",
    .summary =
        "Shows how a number that foreshard prints comes about, by formula and rows: a key of "
        "`foreshard predict --json` (step_ms, mfu, peak_allocated_bytes, oom, ...), a category of "
        "memory, a unit, a kind of op, a setting (limit_all_gathers), or an instruction, by its "
        "number in a trace or, as predict counts them, in a section of the plan (second:3323). Of "
        "memory it lists the tensors that hold it, of a setting what each value would change. "
        "`" SHARDINGS
        "` of a NETWORK compares all sharding strategies. Where none is named, an example "
        "that has the setting is explained, mostly gpt2-xl on one node of A100.",
    .examples =
        "Examples:\n"
        "  foreshard explain peak_allocated_bytes measured.trace\n"
        "  foreshard explain oom llama3-8b -n 8 --micro-batch 4 --cluster dgx-h100\n"
        "  foreshard explain activations gpt2-xl -n 8 --param-dtype bf16 --cluster a100-node\n"
        "  foreshard explain comm.all_gather.exposed_ms gpt-toy -n 8 --cluster a100-node\n"
        "  foreshard explain layers.0 measured.trace\n"
        "  foreshard explain first:1377 wall.trace\n"
        "  foreshard explain shardings gpt2-xl -n 8 --param-dtype bf16 --cluster a100-node\n"
        "  foreshard explain backward_prefetch\n"
        "  foreshard explain limiter\n"
        "\n"
        "Exit status: 0 explained; 2 there is no such number, or the input cannot be read.",
};

typedef struct {
    char *cluster;
    int rank; /* -1: as foreshard predict shows it */
    gboolean json, csv;
} Options;

static int complain(const GError *error) {
    return cli_complain(CLI_BAD_INPUT, "%s", error->message);
}

/* What there is stands in lines below. */
static int complain_of_name(const char *message) {
    gsize first = strcspn(message, "\n");
    cli_complain(CLI_BAD_INPUT, "%.*s", (int)first, message);
    if (message[first] != '\0') {
        g_autofree char *names = g_strconcat(message + first + 1, "\n", NULL);
        cli_prose_print_to(stderr, names);
    }
    return CLI_BAD_INPUT;
}

static int show(const GString *text) {
    cli_prose_print(text->str);
    return CLI_OK;
}

static int show_json(const char *json) {
    printf("%s\n", json);
    return CLI_OK;
}

static int explain_rows(const CliSubject *subject, const char *name, bool as_json) {
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = cli_explain(subject, name, &error);
    if (text == NULL) {
        return complain_of_name(error->message);
    }
    if (trace_get(subject->trace, "stages") != NULL) {
        g_autofree char *rank = trace_rank_text(subject->trace, subject->summary->rank);
        g_string_append_printf(text, "rows are those of %s\n", rank);
    }
    g_autofree char *json = as_json ? cli_explanation_json(subject, name, text) : NULL;
    return json != NULL ? show_json(json) : show(text);
}

static int explain_played(const CliSubject *subject, const char *name, bool as_json) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Trace) enough = cli_explain_enough(subject, &error);
    if (error != NULL) {
        return complain(error);
    }
    if (enough == NULL) {
        return explain_rows(subject, name, as_json);
    }
    g_autoptr(TraceSummary) rows =
        trace_summary_new(enough, cli_explain_rank(enough, subject->prediction, name));
    CliSubject as_if = *subject;
    as_if.trace = enough;
    as_if.summary = rows;
    as_if.until_oom = subject;
    return explain_rows(&as_if, name, as_json);
}

/* A trace that was predicted is of one machine; one that was measured names none. */
static bool is_played_on(const Trace *trace, const ModelCluster *cluster, const char *path,
                         GError **error) {
    const char *own = trace_get(trace, "cluster"), *digest = trace_get(trace, "cluster_digest");
    if (own == NULL ||
        (digest != NULL ? g_str_equal(digest, cluster->digest) : g_str_equal(own, cluster->name))) {
        return true;
    }
    g_set_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH,
                "%s was predicted on %s, and what is explained happened there, not on %s; leave "
                "--cluster away, or give the plan or network in place of the trace",
                path, own, cluster->name);
    return false;
}

/* A trace: its plan is built again where its header allows that. What it recorded is explained,
 * also where that ends out of memory. */
static int explain_trace(const char *name, const char *path, const Options *options) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Trace) trace = trace_read_file(path, &error);
    if (trace == NULL) {
        return complain(error);
    }
    g_autoptr(CliWhatIf) what_if = cli_what_if_new(trace, options->cluster, &error);
    if (what_if == NULL && options->cluster != NULL) {
        return complain(error);
    }
    if (options->cluster != NULL && !is_played_on(trace, what_if->cluster, path, &error)) {
        return complain(error);
    }
    g_autoptr(Plan) plan =
        what_if != NULL
            ? model_network_plan(what_if->network, &what_if->strategy, PLAN_FORM_WHOLE, NULL)
            : NULL;
    g_autoptr(SimPrediction) prediction =
        what_if != NULL ? cli_what_if(what_if, "", NULL, NULL) : NULL;
    uint32_t rank =
        options->rank >= 0 ? (uint32_t)options->rank : cli_explain_rank(trace, prediction, name);
    g_autoptr(TraceSummary) rows = trace_summary_new(trace, rank);
    if (rows == NULL) {
        return cli_complain(CLI_BAD_INPUT,
                            "%s: rank %d was not recorded; the lowest that was is %u", path,
                            options->rank, trace_lowest_rank(trace));
    }
    bool known = plan != NULL && prediction != NULL;
    CliSubject subject = {trace,
                          rows,
                          known ? plan : NULL,
                          known ? what_if->cluster : NULL,
                          known ? prediction : NULL,
                          NULL};
    return explain_rows(&subject, name, options->json);
}

static const char *machine_of(const Options *options) {
    return options->cluster != NULL ? options->cluster : DEFAULT_CLUSTER;
}

/* A plan or a network: it is played first. */
static int explain_plan(const char *name, const char *path, CliPlanSource *source,
                        const Options *options) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = cli_plan_source_load(source, path, PLAN_FORM_WHOLE, &error);
    g_autoptr(ModelCluster) cluster =
        plan != NULL ? cli_cluster_read(machine_of(options), &error) : NULL;
    if (cluster == NULL) {
        return complain(error);
    }
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction =
        cli_predict_play(source, path, &plan, cluster, trace, &error);
    if (prediction == NULL) {
        return complain(error);
    }
    g_autoptr(TraceSummary) rows =
        trace_summary_new(trace, cli_explain_rank(trace, prediction, name));
    if (rows == NULL) {
        return cli_complain(CLI_BAD_INPUT, "%s cannot be played on %s", path, cluster->name);
    }
    CliSubject subject = {trace, rows, plan, cluster, prediction, NULL};
    cli_precision_note(source, plan, cluster);
    return explain_played(&subject, name, options->json);
}

static int show_shardings(JsonBuilder *json, const Options *options) {
    if (options->json) {
        cli_output_print_json(json);
    } else {
        cli_rows_print_csv(json, "shardings");
    }
    return CLI_OK;
}

static int explain_shardings(const char *network, CliPlanSource *source, const Options *options) {
    g_autoptr(GError) error = NULL;
    if (cli_plan_source_is_given(source, "sharding")) {
        return cli_complain(CLI_BAD_INPUT,
                            SHARDINGS " tries every sharding; leave --sharding away");
    }
    g_autoptr(ModelCluster) cluster = cli_cluster_read(machine_of(options), &error);
    if (cluster == NULL) {
        return complain(error);
    }
    if (options->json || options->csv) {
        g_autoptr(JsonBuilder) json = cli_explain_sharding_json(source, network, cluster, &error);
        return json == NULL ? complain(error) : show_shardings(json, options);
    }
    g_autoptr(GString) text = cli_explain_sharding(source, network, cluster, &error);
    return text != NULL ? show(text) : complain(error);
}

static int explain_named(char **words, const Options *options, CliPlanSource *source) {
    if (options->csv && options->json) {
        return cli_complain(CLI_BAD_INPUT, CLI_ROWS_CSV_OR_JSON);
    }
    g_autoptr(GError) refusal = NULL;
    if (g_str_equal(words[0], SHARDINGS)) {
        return explain_shardings(words[1], source, options);
    }
    if (options->csv) {
        return cli_complain(CLI_BAD_INPUT,
                            "--csv is of " SHARDINGS " alone; for a number say --json");
    }
    if (!cli_trace_check_settings(source, 1, words + 1, &refusal)) {
        return complain(refusal);
    }
    if (trace_is_file(words[1])) {
        return explain_trace(words[0], words[1], options);
    }
    if (options->rank >= 0) {
        return cli_complain(CLI_BAD_INPUT,
                            "--rank is of a trace; of a plan or network one rank is played, which "
                            "stands for all: leave it away");
    }
    int status = explain_plan(words[0], words[1], source, options);
    if (status == CLI_OK && options->cluster == NULL) {
        cli_complain(CLI_OK, "note: on " DEFAULT_CLUSTER ", since no --cluster was given");
    }
    return status;
}

/* What is not given is the example's. */
static bool take_example(const CliExplainExample *example, Options *options, CliPlanSource *source,
                         GError **error) {
    g_auto(GStrv) settings = g_strsplit(example->strategy, " ", -1);
    bool good = true;
    for (char **setting = settings; *setting != NULL && good; setting++) {
        g_auto(GStrv) pair = g_strsplit(*setting, "=", 2);
        good = cli_plan_source_is_given(source, pair[0]) ||
               cli_plan_source_set(source, pair[0], pair[1], error);
    }
    if (good && options->cluster == NULL) {
        options->cluster = g_strdup(example->cluster);
    }
    return good;
}

/* A network alone is no question. */
static int complain_of_network(const char *name) {
    return cli_complain(CLI_BAD_INPUT,
                        "give what to explain of %s, as in: foreshard explain step_ms %s", name,
                        name);
}

static int explain_example(const char *name, Options *options, CliPlanSource *source) {
    g_autoptr(GError) error = NULL;
    if (!cli_explain_is_setting(name) && cli_plan_source_finds(name, NULL)) {
        return complain_of_network(name);
    }
    const CliExplainExample *example = cli_explain_example(name);
    if (!take_example(example, options, source, &error)) {
        return complain(error);
    }
    g_autofree char *strategy = cli_plan_source_text(source);
    char *words[] = {(char *)name, (char *)example->network, NULL};
    int status = explain_named(words, options, source);
    if (status == CLI_OK) {
        cli_complain(CLI_OK, "note: of %s on %s with %s, since no network was given",
                     example->network, options->cluster, strategy);
    }
    return status;
}

/* "explain --backward-prefetch": an option without a value is what is asked about. */
static void take_option_as_word(int argc, char **argv) {
    bool is_alone = argc == 2 || (argc > 2 && argv[2][0] == '-');
    if (is_alone && g_str_has_prefix(argv[1], "--") && cli_explain_is_setting(argv[1] + 2)) {
        argv[1] += 2;
    }
}

int cmd_explain(int argc, char **argv) {
    Options options = {.rank = CLI_NOT_GIVEN};
    const GOptionEntry entries[] = {
        {"cluster", 'c', 0, G_OPTION_ARG_STRING, &options.cluster,
         "the machine of a plan or network (default " DEFAULT_CLUSTER
         "), or of a trace that names none, since it was measured",
         "C"},
        {"rank", 'r', 0, G_OPTION_ARG_INT, &options.rank,
         "the rank of a trace (default: the fullest recorded; of times the one that waits least)",
         "R"},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "print one JSON object", NULL},
        {"csv", 0, 0, G_OPTION_ARG_NONE, &options.csv,
         "of " SHARDINGS ": print a line for each strategy as CSV", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    take_option_as_word(argc, argv);
    if (!cli_command_read(&command, entries, context, &argc, &argv) ||
        !cli_number_is_sound("--rank", &options.rank)) {
        return CLI_BAD_INPUT;
    }
    return argc == 2 ? explain_example(argv[1], &options, source)
                     : explain_named(argv + 1, &options, source);
}
