/* exec/program/run.h - what foreshard-exec does from its arguments to its end, on one rank. For the
 * files of this folder alone.
 *
 * main.c starts it and reads its input, train.c plays and leaves results, complain.c says what went
 * wrong, once for all ranks. Threads: the host's; the watchdog's reads.
 */
#pragma once

#include "exec/comm/comm.h"
#include "exec/device.h"
#include "exec/program/arguments.h"
#include "exec/results.h"
#include "exec/watch/watchdog.h"

typedef struct {
    const ExecArguments *options;
    const Plan *plan;
    const ExecDevice *device;
    ExecComm comm;
    ExecResults results;
    const char *about;  /* what it does; NULL: it plays */
    PlanPlayer *player; /* NULL until it plays */
    const ExecPlay *play;
    ExecWatchdog *watchdog; /* looks at what is above */
} ExecRun;

/* ---- complain.c ----------------------------------------------------------------------------- */

/* 2: the input is at fault; 1: anything else. */
int exec_run_status(const GError *error);
/* "rank 3"; where a plan that has such a rank has been read, also which stage that is. Transfer
 * full. */
char *exec_run_rank_text(const ExecRun *run);
/* On standard error. Returns the status to end with. Input that is found wrong only in use (a
 * token, what a GPU lacks) may be found by several ranks at about the same time: the others give
 * rank 0, which then ends all, two seconds to report it. */
int exec_run_complain(const ExecRun *run, const GError *error);
/* What is wrong with the input, or with where output goes, every rank finds before it plays. Rank 0
 * reports it for all, and tells them so: they then wait to be ended. A rank that alone has found
 * something learns that rank 0 has not, and reports it itself. wrong NULL: this rank has found
 * nothing. Returns the status to end with; 0: go on. */
int exec_run_complain_of_input(const ExecRun *run, const GError *wrong);
/* If a lane has failed, that is the cause of whatever the host complains of, even of missing
 * memory, since a broken device answers so (memory/source.h). */
int exec_run_complain_of_play(const ExecRun *run, ExecPlay *play, const GError *error,
                              bool *ret_lane_failed);

/* ---- train.c -------------------------------------------------------------------------------- */

/* All steps, a line each. The player stays: the watchdog may be looking at it. */
bool exec_run_train(ExecRun *run, ExecPlay *play, GError **error);
/* Trace, weights and summary, as asked for. */
bool exec_run_leave_results(const ExecRun *run, ExecPlay *play, GError **error);
/* The trace up to where memory ended, once that has been said: what the lanes have been given ends
 * first, and other ranks may be gone. */
void exec_run_leave_oom(const ExecRun *run, ExecPlay *play);
/* Where the host stands; called from the watchdog's thread while this one does not move. self: the
 * run. */
void exec_run_explain(gpointer self, GString *text);
