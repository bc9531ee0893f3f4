/* cli/commands/predict.c - foreshard predict: does a plan fit a cluster, and how long does a step
 * take?
 *
 * Reads plan and cluster, lets sim/predict.h play it, and cli/predict/ say what came of it.
 */

#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/data-dir.h"
#include "cli/every-rank.h"
#include "cli/options.h"
#include "cli/plan-source.h"
#include "cli/predict/predict.h"
#include "models/cluster.h"
#include "sim/nccl.h"
#include "sim/predict.h"
#include "trace/text.h"

enum {
    OK = 0,
    FAILED = 1,
    BAD_INPUT = 2
};

typedef struct {
    char *cluster, *trace, *nccl_algo, *nccl_proto;
    gboolean no_sharing;
    int steps;
    gboolean json;
} Options;

static int complain(const GError *error, int status) {
    fprintf(stderr, "foreshard predict: %s\n", error->message);
    return status;
}

static int predict(const Plan *plan, const Options *options, CliEveryRank *every) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = cli_data_find(CLI_DATA_CLUSTERS, options->cluster, &error);
    g_autoptr(ModelCluster) cluster = path ? model_cluster_read_file(path, &error) : NULL;
    if (!cluster) {
        return complain(error, BAD_INPUT);
    }
    model_cluster_force_nccl(cluster, options->nccl_algo, options->nccl_proto);
    g_autoptr(Trace) trace = options->trace ? trace_new() : NULL;
    SimOptions sim_options = {.steps = (uint32_t)options->steps, .alone = options->no_sharing};
    if (!cli_every_rank_settle(every, plan, cluster, &sim_options, &error)) {
        return complain(error, BAD_INPUT);
    }
    g_autoptr(SimPrediction) prediction = sim_predict(plan, cluster, &sim_options, trace, &error);
    cli_every_rank_played(every);
    if (!prediction) {
        return complain(error, BAD_INPUT);
    }
    if (trace && prediction->unsupported_dtype) {
        fprintf(stderr, "foreshard predict: nothing was played, so %s was not written\n",
                options->trace);
    } else if (trace && !trace_write_file(trace, options->trace, &error)) {
        return complain(error, FAILED);
    }
    CliPredictReport report = {plan, cluster, prediction, every, options->cluster, &sim_options};
    if (options->json) {
        cli_predict_print_json(&report);
    } else {
        cli_predict_print_text(&report);
    }
    return OK;
}

static bool check_options(const Options *options, int n_words, GError **error) {
    const char *wrong = NULL;
    SimNcclAlgo algo;
    SimNcclProto proto;
    if (n_words != 2) {
        wrong = "give one plan file or network, as in: foreshard predict gpt-toy --cluster "
                "a100-node";
    } else if (!options->cluster) {
        wrong = "give a cluster, as in: --cluster a100-node";
    } else if (options->nccl_algo && !sim_nccl_algo_parse(options->nccl_algo, &algo)) {
        wrong = "--nccl-algo is one of ring, tree, nvls, nvlstree, pat";
    } else if (options->nccl_proto && !sim_nccl_proto_parse(options->nccl_proto, &proto)) {
        wrong = "--nccl-proto is one of ll, ll128, simple";
    } else if (options->steps < 1 || options->steps > 10000) {
        wrong = "--steps takes a number from 1 to 10000";
    }
    if (wrong) {
        g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, wrong);
    }
    return !wrong;
}

int cmd_predict(int argc, char **argv) {
    g_autofree char *cluster = NULL, *trace = NULL, *nccl_algo = NULL, *nccl_proto = NULL;
    Options options = {.steps = SIM_DEFAULT_STEPS};
    const GOptionEntry entries[] = {
        {"cluster", 'c', 0, G_OPTION_ARG_STRING, &cluster, "the machine: a name or a file", "C"},
        {"steps", 0, 0, G_OPTION_ARG_INT, &options.steps,
         "steps to play, the first two of which make state (default 4)", "K"},
        {"trace", 0, 0, G_OPTION_ARG_FILENAME, &trace, "write every op and allocation", "FILE"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &options.json, "print one JSON object", NULL},
        {"nccl-algo", 0, 0, G_OPTION_ARG_STRING, &nccl_algo, "force it, as NCCL_ALGO does", "NAME"},
        {"no-sharing", 0, 0, G_OPTION_ARG_NONE, &options.no_sharing,
         "ops beside each other run as fast as alone", NULL},
        {"nccl-proto", 0, 0, G_OPTION_ARG_STRING, &nccl_proto, "force it, as NCCL_PROTO does",
         "NAME"},
        {0},
    };
    g_autoptr(GOptionContext) context = g_option_context_new("(PLAN | NETWORK)");
    g_option_context_set_summary(context, "Predicts memory and time of a plan on a cluster.");
    g_option_context_set_description(
        context,
        "Examples:\n"
        "  foreshard predict gpt-toy --sharding full --ranks 2 --cluster a100-node\n"
        "  foreshard predict gpt.plan --cluster mine.ini --trace gpt.trace --json\n"
        "  foreshard predict gpt-toy -n 16 --cluster a100-roce --every-rank --jitter 5 \\\n"
        "      --slow rank=3:1.2 --degrade nic=8:0.5 --steps 20 --trace-ranks 0,3 --trace t\n\n"
        "Exit status: 0 predicted, whether the plan fits or not; 1 the trace cannot be "
        "written; 2 the\ninput cannot be read, or a setting is refused.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(CliEveryRank) every = cli_every_rank_new(context);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    g_autoptr(GError) error = NULL;
    if (!cli_options_parse(context, &argc, &argv, &error)) {
        return complain(error, BAD_INPUT);
    }
    options.cluster = cluster;
    options.trace = trace;
    options.nccl_algo = nccl_algo;
    options.nccl_proto = nccl_proto;
    if (!check_options(&options, argc, &error)) {
        return complain(error, BAD_INPUT);
    }
    g_autoptr(Plan) plan = cli_plan_source_load(source, argv[1], &error);
    return plan ? predict(plan, &options, every) : complain(error, BAD_INPUT);
}
