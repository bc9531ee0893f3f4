/* exec/results.h - what a run leaves: losses and times of its steps, a summary or JSON, a trace.
 *
 * Threads: the host's.
 */
#pragma once

#include "exec/device.h"
#include "exec/watch/watchdog.h"

typedef struct {
    const Plan *plan;
    const ExecComm *comm;
    double *losses;  /* means over ranks */
    double *step_ms; /* likewise */
    unsigned n_steps;
} ExecResults;

void exec_results_init(ExecResults *results, const Plan *plan, const ExecComm *comm,
                       uint32_t steps);
void exec_results_clear(ExecResults *results); /* of zeros is fine */

bool exec_results_speaks(const ExecComm *comm); /* one rank of a play does */

/* The next step, which has ended on this rank: its loss and time become means over ranks. */
bool exec_results_add_step(ExecResults *results, const ExecPlay *play, GError **error);
void exec_results_print_json(const ExecResults *results, const ExecPlay *play);
void exec_results_print_summary(const ExecResults *results, const ExecPlay *play);
/* Writes the rows of all ranks; rank 0 does. Every rank's watchdog gets a beat for each rank whose
 * rows have come. */
bool exec_results_write_trace(const ExecResults *results, const ExecPlay *play, const char *path,
                              ExecWatchdog *watchdog, GError **error);
/* For a play that ran out of memory: writes this rank's rows up to that moment. They go beside the
 * trace that was asked for, to PATH.oom.RANK, so that a good trace of an earlier run stays. */
char *exec_results_oom_path(const ExecPlay *play, const char *path); /* transfer full */
bool exec_results_write_oom(const ExecResults *results, const ExecPlay *play, const char *path,
                            GError **error);
