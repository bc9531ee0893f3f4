/* exec/mpi.h - collectives over MPI: one communicator per axis of the mesh.
 *
 * Every call is the nonblocking one of MPI, tested now and then and slept between, because ranks
 * share cores and a spinning rank would slow the very one it waits for. MPI must allow calls from
 * any thread (MPI_THREAD_MULTIPLE), which is checked.
 *
 * Owns: MPI itself, until close(). Threads: any, one call an axis at a
 * time.
 */
#pragma once

#include "exec/comm.h"

/* Starts MPI, which the table's close() ends. */
bool exec_mpi_open(int *argc, char ***argv, ExecComm *ret_comm, GError **error);
