/* exec/comm/fork.h - ranks on one machine without MPI: this program forks them, and they meet in
 * shared memory.
 *
 * Every collective goes by blocks through memory that all ranks see; sums are formed in fp32, in
 * the order of the ranks, and rounded once. Whoever waits yields its core, then sleeps. The process
 * that forked watches: when a rank dies or fails, it says so and ends the others.
 *
 * Owns: the shared memory. Threads: any, one call an axis at a time.
 */
#pragma once

#include "exec/comm/comm.h"

enum {
    EXEC_FORK_MOST = 1024 /* ranks on one machine, where each takes 0.1 GB; mpirun's, too */
};

/* Returns in each of n new processes, at most EXEC_FORK_MOST; the caller's own lives on in here
 * only to watch, and ends with the first failure's status. Before any thread is started. False with
 * error: nothing was forked. plan_path: read when a rank has been killed, to say where it was;
 * NULL: nobody can. */
bool exec_fork(unsigned n, const char *plan_path, ExecComm *ret_comm, GError **error);
