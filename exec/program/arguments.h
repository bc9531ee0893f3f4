/* exec/program/arguments.h - what foreshard-exec was asked for on its command line. */
#pragma once

#include "exec/play.h"

typedef struct {
    char *trace, *load, *save, *data, *pace, *device, *comm, *black_box;
    gint steps, threads, seed, token_bytes, local_ranks, watchdog, rehearse;
    gint64 memory_limit;
    gboolean json, costs, no_op_times;
} ExecArguments;

#define EXEC_ARGUMENTS_DEFAULT                                                                     \
    {                                                                                              \
        .steps = 6, .threads = 1, .memory_limit = EXEC_PLAY_NO_LIMIT, .seed = 1, .token_bytes = 1, \
        .watchdog = 300, .rehearse = -1                                                            \
    }

/* Leaves the program and its PLAN in argv; ends the program itself for --help. An error is an
 * input's. */
bool exec_arguments_read(int *argc, char ***argv, ExecArguments *arguments, GError **error);
void exec_arguments_clear(ExecArguments *arguments);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ExecArguments, exec_arguments_clear)
