/* exec/watch/warden.h - a process that waits for a rank and reports it when it is killed.
 *
 * Under a bare mpirun or srun nobody else could report a killed rank. So the process that was
 * started forks before it starts MPI: the child becomes the rank, the parent only waits. When a
 * signal kills the child, the parent says which rank that was and where it stood
 * (exec/watch/black-box.h) and exits with status 1, upon which mpirun or srun ends the other ranks.
 * SIGTERM, SIGINT and SIGHUP are passed on to the child, and nothing is said.
 *
 * Owns: a page that both share. Threads: to be called before any is started.
 */
#pragma once

#include <sys/types.h>

#include "exec/watch/black-box.h"

typedef struct _ExecWarden ExecWarden;

/* Forks, and returns in the child. plan_path: read when the child is killed, to say where it was;
 * NULL: that is not said. NULL with error: nothing was forked. */
ExecWarden *exec_warden_new(const char *plan_path, GError **error);
void exec_warden_free(ExecWarden *warden); /* the parent still waits; NULL is fine */
/* Tells the parent which rank this is. Returns where the rank notes what it does. */
ExecDoing *exec_warden_doing(ExecWarden *warden, uint32_t rank);

/* ---- for any process that watches ranks that it forked --------------------------------------- */

/* Reports a rank that a signal has killed, on standard error. */
void exec_warden_speak(const ExecDoing *doing, const char *plan_path, uint32_t rank, int signal);
/* In a child: makes it end when its parent does. */
void exec_warden_stay_with(pid_t parent);
