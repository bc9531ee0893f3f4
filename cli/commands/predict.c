/* cli/commands/predict.c - foreshard predict: does a plan fit a cluster, and how long does a step
 * take?
 *
 * Reads plan and cluster, lets sim/predict.h play it, and cli/predict/ say what came of it.
 */

#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/options/command.h"
#include "cli/predict/every-rank.h"
#include "cli/predict/forced.h"
#include "cli/predict/predict.h"
#include "cli/say/output.h"
#include "cli/source/cluster.h"
#include "cli/source/plan-source.h"
#include "exec/shared-options.h"
#include "models/cluster.h"
#include "sim/settled.h"
#include "trace/text.h"

typedef struct {
    char *cluster, *trace, *nccl_algo, *nccl_proto;
    gboolean no_sharing;
    int steps;
    gboolean json;
} Options;

static int predict(CliPlanSource *source, const char *name, Plan *loaded, const Options *options,
                   CliEveryRank *every) {
    g_autoptr(Plan) plan = loaded;
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelCluster) cluster = cli_cluster_read(options->cluster, &error);
    if (!cluster) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    cli_cluster_note(cluster);
    if (!cli_output_can_be_written(options->trace, &error)) {
        return cli_complain(CLI_FAILED, "%s", error->message);
    }
    g_autoptr(Trace) trace = options->trace ? trace_new() : NULL;
    SimOptions sim_options = {.steps = options->steps == CLI_NOT_GIVEN ? SIM_STEPS_IT_TAKES
                                                                       : (uint32_t)options->steps,
                              .no_sharing = options->no_sharing};
    if (!cli_cluster_force_nccl(cluster, options->nccl_algo, options->nccl_proto, &error) ||
        !cli_every_rank_settle(every, plan, cluster, &sim_options, &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    g_autoptr(SimPrediction) prediction =
        cli_predict(source, name, &plan, cluster, &sim_options, trace, &error);
    cli_every_rank_played(every);
    if (!prediction) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    sim_options.steps = MAX(1, prediction->n_steps);
    int status = CLI_OK; /* a trace that finds no room does not take the prediction with it */
    if (trace && prediction->unsupported_dtype) {
        cli_complain(CLI_OK, "nothing was played, so %s was not written", options->trace);
    } else if (trace && !trace_write_file(trace, options->trace, &error)) {
        status = cli_complain(CLI_FAILED, "%s", error->message);
    }
    cli_forced_note(plan, cluster);
    CliPredictReport report = {source, plan, cluster, prediction, &sim_options};
    if (options->json) {
        cli_predict_print_json(&report);
    } else {
        cli_predict_print_text(&report);
    }
    return status;
}

/* Rank 0 stands for all, and neither trace nor JSON object names the plan by its digest. */
static Plan *load(CliPlanSource *source, const char *name, const Options *options,
                  const CliEveryRank *every, GError **error) {
    bool for_one = !options->trace && !options->json && !cli_every_rank_is_asked(every);
    return cli_plan_source_load(source, name, for_one ? PLAN_FORM_FOLDED : PLAN_FORM_WHOLE, error);
}

static const char *wrong_with(const Options *options) {
    if (!options->cluster) {
        return CLI_CLUSTER_LACKS;
    }
    bool is_given = options->steps != CLI_NOT_GIVEN;
    return is_given && (options->steps < 1 || options->steps > SIM_MOST_STEPS)
               ? "--steps takes a number from 1 to 10000"
               : NULL;
}

static const CliCommand command = {
    .words = "(PLAN | NETWORK)",
    .least = 1,
    .most = 1,
    .give = "one PLAN or NETWORK, as in: foreshard predict gpt-toy --cluster a100-node",
    .summary =
        "Predicts memory and time of a plan on a cluster: whether it fits, how long a step takes, "
        "what bounds it, and how much communication is hidden.",
    .examples =
        "Examples:\n"
        "  foreshard predict llama3-8b -n 8 --param-dtype bf16 --cluster dgx-h100\n"
        "  foreshard predict llama3-8b -n 8 --cluster "
        "dgx-h100:intra_node.nccl_channel_gb_per_s=15\n"
        "  foreshard predict gpt.plan --cluster mine.ini --trace gpt.trace --json\n"
        "  foreshard predict gpt-toy -n 16 --cluster a100-roce --every-rank --jitter 5 \\\n"
        "      --slow rank=3:1.2 --degrade nic=8:0.5 --steps 20 --trace-ranks 0,3 --trace t\n\n"
        "Exit status: 0 predicted, whether the plan fits or not; 1 the trace cannot be written; 2 "
        "the input cannot be read, or a setting is refused.",
};

int cmd_predict(int argc, char **argv) {
    Options options = {.steps = CLI_NOT_GIVEN};
    const GOptionEntry entries[] = {
        {"cluster", 'c', 0, G_OPTION_ARG_STRING, &options.cluster,
         "the machine: " CLI_CLUSTER_NAMED, "C"},
        {"steps", 's', 0, G_OPTION_ARG_INT, &options.steps,
         "steps to play; the first two are not counted (default 4, or 20 where the allocator "
         "retries in those)",
         "K"},
        {"trace", 't', 0, G_OPTION_ARG_FILENAME, &options.trace,
         "write every op and allocation to this file", "FILE"},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "print one JSON object", NULL},
        {"nccl-algo", 0, 0, G_OPTION_ARG_STRING, &options.nccl_algo,
         "force NCCL's algorithm, as NCCL_ALGO does: ring, tree, ...", "NAME"},
        {"nccl-proto", 0, 0, G_OPTION_ARG_STRING, &options.nccl_proto,
         "force NCCL's protocol, as NCCL_PROTO does: simple, ll or ll128", "NAME"},
        {"no-sharing", 0, 0, G_OPTION_ARG_NONE, &options.no_sharing,
         "ops that run at the same time do not slow each other", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    g_autoptr(CliEveryRank) every = cli_every_rank_new(context);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    g_autoptr(GError) error = NULL;
    if (!options.cluster && !cli_plan_source_finds(argv[1], &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    const char *wrong = wrong_with(&options);
    if (wrong) {
        return cli_complain(CLI_BAD_INPUT, "%s", wrong);
    }
    const char *const inputs[] = {argv[1], options.cluster};
    Plan *plan =
        cli_cluster_check_nccl(options.nccl_algo, options.nccl_proto, &error) &&
                exec_option_is_file("--trace", options.trace, &error) &&
                cli_plan_source_spares(source, options.trace, inputs, G_N_ELEMENTS(inputs), &error)
            ? load(source, argv[1], &options, every, &error)
            : NULL;
    return plan ? predict(source, argv[1], plan, &options, every)
                : cli_complain(CLI_BAD_INPUT, "%s", error->message);
}
