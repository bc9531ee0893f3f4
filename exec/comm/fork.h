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
    EXEC_FORK_MOST = 1024 /* ranks on one machine, forked or by mpirun; each takes 0.1 GB */
};

/* Forks n processes, at most EXEC_FORK_MOST, and returns true in each. The calling process never
 * returns: it watches, and exits with the status of the first failure, or 0. To be called before
 * any thread is started, with SIGCHLD not ignored. False with error: no rank runs. plan_path: read
 * when a rank has been killed, to say where it was; NULL: that is not said. */
bool exec_fork(unsigned n, const char *plan_path, ExecComm *ret_comm, GError **error);
