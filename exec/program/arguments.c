#include "exec/program/arguments.h"

#include "exec/comm/fork.h"
#include "exec/error.h"
#include "exec/shared-options.h"

static bool is_within(const char *option, gint64 value, gint64 least, gint64 most, GError **error) {
    if (value < least || value > most) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "--%s takes a number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT
                    ", not %" G_GINT64_FORMAT,
                    option, least, most, value);
    }
    return value >= least && value <= most;
}

static bool are_within(const ExecArguments *a, GError **error) {
    const struct {
        const char *option;
        gint64 value, least, most;
    } numbers[] = {{"steps", a->steps, 1, 1000000},
                   {"threads", a->threads, 1, G_MAXINT},
                   {"memory-limit", a->memory_limit, 1, G_MAXINT64},
                   {"seed", a->seed, 0, G_MAXINT},
                   {"token-bytes", a->token_bytes, 1, 2},
                   {"watchdog", a->watchdog, 0, G_MAXINT},
                   {"local-ranks", a->local_ranks, 0, EXEC_FORK_MOST}};
    for (unsigned i = 0; i < G_N_ELEMENTS(numbers); i++) {
        if (!is_within(numbers[i].option, numbers[i].value, numbers[i].least, numbers[i].most,
                       error)) {
            return false;
        }
    }
    return true;
}

/* What was given goes together, and with so many plans. */
static bool suits(const ExecArguments *a, int n_plans, GError **error) {
    if (n_plans != (a->costs ? 0 : 1)) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT, "give %s; %d %s given",
                    a->costs ? "no PLAN with --costs" : "one PLAN", n_plans,
                    n_plans == 1 ? "was" : "were");
        return false;
    }
    if (a->rehearse >= 0 && (!a->pace || a->local_ranks || a->save || a->costs)) {
        g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                            "--rehearse needs --pace, and goes with neither --local-ranks nor "
                            "--save nor --costs");
        return false;
    }
    return are_within(a, error) && exec_option_is_limit(a->memory_limit, error) &&
           exec_option_is_file("--trace", a->trace, error) &&
           exec_option_is_file("--save", a->save, error) &&
           exec_options_suit_device(a->device, a->comm, a->no_op_times, error);
}

bool exec_arguments_read(int *argc, char ***argv, ExecArguments *arguments, GError **error) {
    GOptionEntry entries[] = {
        {"steps", 0, 0, G_OPTION_ARG_INT, &arguments->steps, "training steps (default 6)", "K"},
        {"trace", 0, 0, G_OPTION_ARG_FILENAME, &arguments->trace, "write a trace of all ranks here",
         "FILE"},
        {"load", 0, 0, G_OPTION_ARG_FILENAME, &arguments->load,
         "a safetensors file of the weights to begin with", "FILE"},
        {"save", 0, 0, G_OPTION_ARG_FILENAME, &arguments->save,
         "write the weights here at the end; every rank writes its part of one file", "FILE"},
        {"data", 0, 0, G_OPTION_ARG_FILENAME, &arguments->data,
         "tokens to train on, or a traced network's samples (default: synthetic)", "FILE"},
        {"pace", 0, 0, G_OPTION_ARG_FILENAME, &arguments->pace,
         "a table of how long each collective lasts at least (foreshard run --pace makes it)",
         "FILE"},
        {"token-bytes", 0, 0, G_OPTION_ARG_INT, &arguments->token_bytes,
         "of a token in --data: 1 (default) or 2, little-endian", "N"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &arguments->json, "print the result as JSON", NULL},
        {"threads", 0, 0, G_OPTION_ARG_INT, &arguments->threads,
         "threads of a matrix product (default 1)", "N"},
        {"memory-limit", 0, 0, G_OPTION_ARG_INT64, &arguments->memory_limit,
         "bytes of the modeled device (default: no limit)", "BYTES"},
        {"seed", 0, 0, G_OPTION_ARG_INT, &arguments->seed, "of parameters and data (default 1)",
         "N"},
        {"device", 0, 0, G_OPTION_ARG_STRING, &arguments->device, "host (default) or cuda",
         "DEVICE"},
        {"local-ranks", 0, 0, G_OPTION_ARG_INT, &arguments->local_ranks,
         "start so many ranks here, without mpirun", "N"},
        {"comm", 0, 0, G_OPTION_ARG_STRING, &arguments->comm,
         "between GPUs: auto (default), nccl, or local (by way of the host's memory)", "KIND"},
        {"no-op-times", 0, 0, G_OPTION_ARG_NONE, &arguments->no_op_times,
         "on a GPU: no events around ops, for the step's time alone", NULL},
        {"watchdog", 0, 0, G_OPTION_ARG_INT, &arguments->watchdog,
         "end all ranks when nothing has got on for so many seconds (default 300; 0: never)", "S"},
        {"rehearse", 0, 0, G_OPTION_ARG_INT, &arguments->rehearse,
         "play this rank alone, with stand-ins for the others' part of collectives; needs --pace",
         "R"},
        {"black-box", 0, 0, G_OPTION_ARG_FILENAME, &arguments->black_box,
         "a file in which each rank under MPI notes what it is doing, for whoever started it",
         "FILE"},
        {"costs", 0, 0, G_OPTION_ARG_NONE, &arguments->costs,
         "no PLAN: measure what calls, lanes and collectives cost here", NULL},
        {0}};
    g_autoptr(GOptionContext) context = g_option_context_new("PLAN");
    g_option_context_set_summary(context, "Plays a plan, one process a rank: under mpirun or "
                                          "srun, with --local-ranks, or alone.");
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, argc, argv, error)) {
        return false;
    }
    return suits(arguments, *argc - 1, error);
}

void exec_arguments_clear(ExecArguments *arguments) {
    g_free(arguments->trace);
    g_free(arguments->load);
    g_free(arguments->save);
    g_free(arguments->data);
    g_free(arguments->pace);
    g_free(arguments->device);
    g_free(arguments->comm);
    g_free(arguments->black_box);
}
