/* exec/comm/mpi.h - collectives over MPI: one communicator per axis of the mesh.
 *
 * Once ranks have joined, every call that waits for others is nonblocking and tested now and then
 * (exec/watch/patience.h), so that give_up() can end it. Reductions are made of sends and receives
 * (exec/comm/ring.h says why). Stages use the communicator of their axis with tags of their own.
 * MPI must allow calls from any thread (MPI_THREAD_MULTIPLE), which is checked.
 *
 * Owns: MPI itself, until close(). Threads: any, one call an axis at a time, and one with each
 * neighbour and tag.
 */
#pragma once

#include "exec/comm/comm.h"

/* Starts MPI; the table's close() ends it. To be called before any thread is started. black_box:
 * the file in which ranks note what they are doing, so that the program that started them can
 * report a killed one. NULL: this process forks, and the call returns in the child; the parent is a
 * warden (exec/watch/warden.h) that reports instead, and reads plan_path, which may be NULL. */
bool exec_mpi_open(int *argc, char ***argv, const char *black_box, const char *plan_path,
                   ExecComm *ret_comm, GError **error);
