/* exec/comm/mpi.h - collectives over MPI: one communicator per axis of the mesh.
 *
 * Whatever waits for other ranks once they have joined is a nonblocking call of MPI, tested now and
 * then (exec/watch/patience.h), so that give_up() ends it; reductions are made of sends and
 * receives (exec/comm/ring.h, which says why). Stages talk on the communicator of their axis, by
 * tags of their own. MPI must allow calls from any thread (MPI_THREAD_MULTIPLE), which is checked.
 *
 * Owns: MPI itself, until close(). Threads: any, one call an axis at a time, and
 * one with each neighbour and tag.
 */
#pragma once

#include "exec/comm/comm.h"

/* Starts MPI, which the table's close() ends. black_box: a file for what ranks are doing, for
 * whoever started them and will speak for the dead; NULL: this process forks, and returns as the
 * child of a warden (exec/watch/warden.h) that does, and reads plan_path, which may be NULL. Before
 * any thread is started. */
bool exec_mpi_open(int *argc, char ***argv, const char *black_box, const char *plan_path,
                   ExecComm *ret_comm, GError **error);
