/* cli/commands/explain.c - foreshard explain: a number down to its rows and formula. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/data-dir.h"
#include "cli/explain/explain.h"
#include "cli/options.h"
#include "cli/plan-source.h"
#include "cli/plot/pictures.h"
#include "cli/what-if.h"
#include "trace/text.h"

enum {
    OK = 0,
    FAILED = 1,
    BAD_INPUT = 2
};

#define DEFAULT_CLUSTER "dgx-h100"

static const char summary[] =
    "Takes a number that foreshard prints down to the rows and the formula it comes from: a key "
    "of\n"
    "`foreshard predict --json`, a unit, a kind of op or the number of an instruction. Or, with\n"
    "--sharding NETWORK, walks every sharding strategy over a network in one table.";

static const char examples[] =
    "Examples:\n"
    "  foreshard explain peak_allocated_bytes measured.trace\n"
    "  foreshard explain comm.all_gather.exposed_ms gpt-toy -n 8 --cluster a100-node\n"
    "  foreshard explain layers.0 measured.trace\n"
    "  foreshard explain --sharding gpt2-xl -n 8 --param-dtype bf16 --cluster a100-node\n"
    "\n"
    "Exit status: 0 explained; 2 there is no such number, or the input cannot be read.";

static int complain(const GError *error) {
    fprintf(stderr, "foreshard explain: %s\n", error->message);
    return BAD_INPUT;
}

static int show(const GString *text) {
    if (fputs(text->str, stdout) == EOF || fflush(stdout) != 0) {
        fprintf(stderr, "foreshard explain: the output cannot be written\n");
        return FAILED;
    }
    return OK;
}

static ModelCluster *read_cluster(const char *name, GError **error) {
    g_autofree char *path = cli_data_find(CLI_DATA_CLUSTERS, name, error);
    return path != NULL ? model_cluster_read_file(path, error) : NULL;
}

static int explain_subject(const CliSubject *subject, const char *name) {
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = cli_explain(subject, name, &error);
    return text != NULL ? show(text) : complain(error);
}

/* A trace: its plan is built again where its header allows that. */
static int explain_trace(const char *name, const char *path, const char *cluster, int rank) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Trace) trace = trace_read_file(path, &error);
    if (trace == NULL) {
        return complain(error);
    }
    g_autoptr(CliWhatIf) what_if = cli_what_if_new(trace, cluster, &error);
    if (what_if == NULL && cluster != NULL) {
        return complain(error);
    }
    g_autoptr(Plan) plan =
        what_if != NULL ? cli_plan_build(what_if->network, &what_if->strategy, NULL) : NULL;
    g_autoptr(SimPrediction) prediction =
        what_if != NULL ? cli_what_if(what_if, "", NULL, NULL) : NULL;
    uint32_t whose = rank >= 0 ? (uint32_t)rank : cli_lowest_rank(trace);
    g_autoptr(TraceSummary) rows = trace_summary_new(trace, whose);
    if (rows == NULL) {
        fprintf(stderr, "foreshard explain: %s: rank %d was not recorded\n", path, rank);
        return BAD_INPUT;
    }
    bool known = plan != NULL && prediction != NULL;
    CliSubject subject = {trace, rows, known ? plan : NULL, known ? what_if->cluster : NULL,
                          prediction};
    return explain_subject(&subject, name);
}

/* A plan or a network: it is played first. */
static int explain_plan(const char *name, const char *path, CliPlanSource *source,
                        const char *cluster_name) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = cli_plan_source_load(source, path, &error);
    g_autoptr(ModelCluster) cluster = plan != NULL ? read_cluster(cluster_name, &error) : NULL;
    if (cluster == NULL) {
        return complain(error);
    }
    g_autoptr(Trace) trace = trace_new();
    SimOptions options = {.steps = SIM_DEFAULT_STEPS};
    g_autoptr(SimPrediction) prediction = sim_predict(plan, cluster, &options, trace, &error);
    if (prediction == NULL) {
        return complain(error);
    }
    g_autoptr(TraceSummary) rows = trace_summary_new(trace, cli_lowest_rank(trace));
    if (rows == NULL) {
        fprintf(stderr, "foreshard explain: %s cannot be played on %s\n", path, cluster->name);
        return BAD_INPUT;
    }
    CliSubject subject = {trace, rows, plan, cluster, prediction};
    return explain_subject(&subject, name);
}

static int explain_sharding(const char *network, CliPlanSource *source, const char *cluster_name) {
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelCluster) cluster = read_cluster(cluster_name, &error);
    g_autoptr(GString) text =
        cluster != NULL ? cli_explain_sharding(source, network, cluster, &error) : NULL;
    return text != NULL ? show(text) : complain(error);
}

/* --sharding takes a strategy's name, as everywhere, or the network to walk them over. */
static bool is_sharding(CliPlanSource *source, const char *word) {
    return cli_plan_source_set(source, "sharding", word, NULL);
}

static int explain(int n_words, char **words, const char *sharding, const char *cluster, int rank,
                   CliPlanSource *source) {
    const char *machine = cluster != NULL ? cluster : DEFAULT_CLUSTER;
    if (sharding != NULL && !is_sharding(source, sharding)) {
        if (n_words == 0) {
            return explain_sharding(sharding, source, machine);
        }
        fprintf(stderr,
                "foreshard explain: --sharding %s: give a strategy (none, optimizer-only, "
                "grad-op, full, hybrid, hybrid-grad-op), or a network and nothing else\n",
                sharding);
        return BAD_INPUT;
    }
    if (n_words != 2) {
        fprintf(stderr,
                "foreshard explain: give what to explain, and a trace, a plan or a network; "
                "see foreshard explain --help\n");
        return BAD_INPUT;
    }
    return trace_is_file(words[1]) ? explain_trace(words[0], words[1], cluster, rank)
                                   : explain_plan(words[0], words[1], source, machine);
}

int cmd_explain(int argc, char **argv) {
    g_autofree char *cluster = NULL, *sharding = NULL;
    int rank = -1;
    const GOptionEntry entries[] = {
        {"sharding", 0, 0, G_OPTION_ARG_STRING, &sharding,
         "walk every strategy over this network (or: the strategy, as of other commands)",
         "NETWORK"},
        {"cluster", 'c', 0, G_OPTION_ARG_STRING, &cluster,
         "the machine (default: the one the trace names; of plans and networks " DEFAULT_CLUSTER
         ")",
         "C"},
        {"rank", 'r', 0, G_OPTION_ARG_INT, &rank,
         "whose rows, of a trace (default: the lowest recorded)", "R"},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context =
        g_option_context_new("(KEY | UNIT | OP) (TRACE | PLAN | NETWORK)");
    g_option_context_set_summary(context, summary);
    g_option_context_set_description(context, examples);
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    g_autoptr(GError) error = NULL;
    if (!cli_options_parse(context, &argc, &argv, &error)) {
        return complain(error);
    }
    return explain(argc - 1, argv + 1, sharding, cluster, rank, source);
}
