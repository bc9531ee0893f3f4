/* cli/commands/rehearse.c - `foreshard rehearse`: one process plays rank R of W.
 *
 * What collectives take is predicted here and handed to foreshard-exec as a table
 * (cli/launch/pace.h); compute and memory are real there. No MPI is needed: there is one process.
 */
#include <gio/gio.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/launch/pace.h"
#include "cli/launch/ranks.h"
#include "cli/launch/scratch.h"
#include "cli/options/command.h"
#include "cli/source/cluster.h"
#include "cli/source/plan-source.h"
#include "exec/shared-options.h"

typedef struct {
    gint rank, steps, seed;
    gint64 memory_limit;
    char *cluster, *device, *trace;
    gboolean json, no_op_times;
} Options;

static GPtrArray *command_line(const Options *options, const CliScratch *scratch, GError **error) {
    g_autofree char *program = cli_ranks_program(error);
    if (!program) {
        return NULL;
    }
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    cli_ranks_add(argv, "%s", program);
    cli_ranks_add(argv, "%s", scratch->plan);
    cli_ranks_add(argv, "--pace=%s", scratch->pace);
    cli_ranks_add(argv, "--rehearse=%d", options->rank);
    cli_ranks_add(argv, "--steps=%d", options->steps);
    cli_ranks_add(argv, "--seed=%d", options->seed);
    cli_ranks_add(argv, "--device=%s", options->device ? options->device : "host");
    if (options->memory_limit) {
        cli_ranks_add(argv, "--memory-limit=%" G_GINT64_FORMAT, options->memory_limit);
    }
    if (options->trace) {
        cli_ranks_add(argv, "--trace=%s", options->trace);
    }
    if (options->no_op_times) {
        cli_ranks_add(argv, "--no-op-times");
    }
    if (options->json) {
        cli_ranks_add(argv, "--json");
    }
    g_ptr_array_add(argv, NULL);
    return argv;
}

/* What the other program says of itself, in this one's name. */
static void pass_on(const char *complaints) {
    g_auto(GStrv) lines = g_strsplit(complaints ? complaints : "", "\n", -1);
    for (char **line = lines; *line && **line; line++) {
        const char *own = cli_ranks_own_words(*line);
        if (own) {
            cli_complain(CLI_FAILED, "%s", own);
        } else {
            fprintf(stderr, "%s\n", *line);
        }
    }
}

static int play(const Options *options, const CliScratch *scratch, GError **error) {
    g_autoptr(GPtrArray) argv = command_line(options, scratch, error);
    if (!argv) {
        return CLI_FAILED;
    }
    g_autoptr(GSubprocessLauncher) launcher = cli_ranks_launcher(G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_autoptr(GSubprocess) process =
        g_subprocess_launcher_spawnv(launcher, (const char *const *)argv->pdata, error);
    g_autofree char *complaints = NULL;
    if (!process || !g_subprocess_communicate_utf8(process, NULL, NULL, NULL, &complaints, error)) {
        return CLI_FAILED;
    }
    pass_on(complaints);
    if (!g_subprocess_get_if_exited(process)) {
        g_set_error(error, G_SPAWN_ERROR, G_SPAWN_ERROR_FAILED,
                    "rank %d was killed by signal %d (%s)", options->rank,
                    g_subprocess_get_term_sig(process),
                    g_strsignal(g_subprocess_get_term_sig(process)));
        return CLI_FAILED;
    }
    int status = g_subprocess_get_exit_status(process);
    if (!status && !options->json && options->trace) {
        printf("trace      %s\n", options->trace);
    }
    return status;
}

static int rehearse(const Options *options, const Plan *plan, const ModelCluster *cluster) {
    g_autoptr(GError) error = NULL;
    g_auto(CliScratch) scratch = {0};
    int status = cli_scratch_make(&scratch, plan, cluster, &error) ? play(options, &scratch, &error)
                                                                   : CLI_FAILED;
    if (error) {
        cli_complain(status, "%s", error->message);
    }
    return status;
}

/* NULL: nothing is. */
static const char *wrong_with(const Options *options) {
    return options->rank < 0 ? "give the rank to play, as in: --rank 0"
           : !options->cluster
               ? "give the cluster whose collectives stand in for the others', as in: "
                 "--cluster dgx-h100"
           : options->steps < 1 ? "--steps takes a number from 1"
           : options->seed < 0  ? "--seed takes a number from 0"
                                : NULL;
}

static bool options_are_sound(const Options *options, GError **error) {
    const char *wrong = wrong_with(options);
    if (wrong) {
        g_set_error_literal(error, PLAN_ERROR, PLAN_ERROR_VALUE, wrong);
        return false;
    }
    return exec_option_is_limit(options->memory_limit, error) &&
           exec_option_is_file("--trace", options->trace, error) &&
           cli_ranks_know_device(options->device, error) &&
           exec_options_suit_device(options->device, NULL, options->no_op_times, error);
}

static bool has_rank(const Plan *plan, gint rank, GError **error) {
    if ((uint32_t)rank < plan->world) {
        return true;
    }
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                "there is no rank %d to rehearse: the plan's are 0 to %u", rank, plan->world - 1);
    return false;
}

static const CliCommand command = {
    .words = "(PLAN | NETWORK)",
    .least = 1,
    .most = 1,
    .give = "one PLAN or NETWORK",
    .summary =
        "Plays one rank of many by itself: its compute and its memory are real, the other ranks' "
        "part of collectives is made up and lasts as long as predicted. What it learns means "
        "nothing.",
    .examples = "Example:\n  foreshard rehearse gpt-toy -n 8 --rank 3 --cluster a100-node\n"
                "\nExit status: 0 rehearsed; 1 it failed on the way, or a file cannot be written; "
                "2 the input is wrong.",
};

int cmd_rehearse(int argc, char **argv) {
    Options options = {.rank = -1, .steps = 6, .seed = 1};
    const GOptionEntry entries[] = {
        {"rank", 'r', 0, G_OPTION_ARG_INT, &options.rank, "the rank that is played", "R"},
        {"cluster", 'c', 0, G_OPTION_ARG_STRING, &options.cluster,
         "whose network says how long collectives last: " CLI_CLUSTER_NAMED, "CLUSTER"},
        {"device", 0, 0, G_OPTION_ARG_STRING, &options.device,
         "what plays it: host (default) or cuda", "DEVICE"},
        {"steps", 's', 0, G_OPTION_ARG_INT, &options.steps, "training steps (default 6)", "K"},
        {"trace", 't', 0, G_OPTION_ARG_FILENAME, &options.trace, "write what was measured here",
         "FILE"},
        {"no-op-times", 0, 0, G_OPTION_ARG_NONE, &options.no_op_times,
         "on a GPU: do not time each op, only the step", NULL},
        {"memory-limit", 0, 0, G_OPTION_ARG_INT64, &options.memory_limit,
         CLI_RANKS_MEMORY_LIMIT_HELP, "BYTES"},
        {"seed", 0, 0, G_OPTION_ARG_INT, &options.seed, "seed of parameters and data (default 1)",
         "N"},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "print the result as JSON", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = NULL;
    g_autoptr(ModelCluster) cluster = NULL;
    const char *const inputs[] = {argv[1], options.cluster};
    if (!options_are_sound(&options, &error) ||
        !cli_plan_source_spares(source, options.trace, inputs, G_N_ELEMENTS(inputs), &error) ||
        !(plan = cli_plan_source_load_to_hand_on(source, argv[1], &error)) ||
        !has_rank(plan, options.rank, &error) ||
        !cli_ranks_memory_is_here(plan, 1, options.device, (uint64_t)options.memory_limit,
                                  &error) ||
        !(cluster = cli_pace_cluster(options.cluster, plan, &error))) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    return rehearse(&options, plan, cluster);
}
