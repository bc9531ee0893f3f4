/* exec/watch/warden.h - a process beside a rank, which speaks for it when it is killed.
 *
 * A rank that is killed can say nothing, and under a bare mpirun or srun nobody who starts one
 * knows its plan. So the process that was started forks before it knows MPI: the child becomes the
 * rank, the parent does nothing but wait. When a signal ends the child, the parent says which rank
 * that was and where it stood (exec/watch/black-box.h), and ends with status 1, whereupon mpirun or
 * srun ends the other ranks. When the parent is asked to end (SIGTERM, SIGINT, SIGHUP), so is the
 * child, without a word.
 *
 * Owns: a page that both share. Threads: none but the first is there yet.
 */
#pragma once

#include <sys/types.h>

#include "exec/watch/black-box.h"

typedef struct _ExecWarden ExecWarden;

/* Returns in the child. plan_path: read when the child is killed; NULL: nobody can say where it
 * was. NULL with error: nothing was forked. */
ExecWarden *exec_warden_new(const char *plan_path, GError **error);
void exec_warden_free(ExecWarden *warden); /* the parent still waits; NULL is fine */
/* This process now knows which rank it is; where it notes what it is about. */
ExecDoing *exec_warden_doing(ExecWarden *warden, uint32_t rank);

/* ---- for any process that watches over ranks that it forked ---------------------------------- */

/* Of a rank that a signal has ended. */
void exec_warden_speak(const ExecDoing *doing, const char *plan_path, uint32_t rank, int signal);
/* In a child: it ends, at the latest, with its parent. */
void exec_warden_stay_with(pid_t parent);
