#include "exec/arguments.h"

#include "exec/comm/fork.h"
#include "exec/error.h"
#include "exec/shared-options.h"

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
    if (*argc != (arguments->costs ? 1 : 2) || arguments->steps < 1 || arguments->steps > 1000000 ||
        arguments->threads < 1 || arguments->memory_limit < 1 || arguments->seed < 0 ||
        arguments->token_bytes < 1 || arguments->token_bytes > 2 || arguments->watchdog < 0 ||
        arguments->local_ranks < 0 || arguments->local_ranks > EXEC_FORK_MOST) {
        g_set_error(
            error, EXEC_ERROR, EXEC_ERROR_INPUT,
            "give one PLAN; steps, threads and memory limit are positive, seed and watchdog "
            "not negative, a token has 1 or 2 bytes, local ranks are at most %d",
            EXEC_FORK_MOST);
        return false;
    }
    if (arguments->rehearse >= 0 &&
        (!arguments->pace || arguments->local_ranks || arguments->save || arguments->costs)) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "--rehearse needs --pace, and goes with neither --local-ranks nor --save nor "
                    "--costs");
        return false;
    }
    return exec_option_is_limit(arguments->memory_limit, error) &&
           exec_option_is_file("--trace", arguments->trace, error) &&
           exec_option_is_file("--save", arguments->save, error) &&
           exec_options_suit_device(arguments->device, arguments->comm, arguments->no_op_times,
                                    error);
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
