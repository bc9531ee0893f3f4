/* exec/mpi.h - collectives over MPI: one communicator per axis of the mesh.
 *
 * Every call is the nonblocking one of MPI, tested now and then and slept between, because ranks
 * share cores and a spinning rank would slow the very one it waits for. MPI must allow calls from
 * any thread (MPI_THREAD_MULTIPLE), which is checked.
 *
 * Owns: MPI itself, from exec_mpi_open() to exec_mpi_close(). Threads: any, one call an axis at a
 * time.
 */
#pragma once

#include "exec/comm.h"

typedef struct _ExecMpi ExecMpi;

/* Starts MPI. ret_comm is good for barrier and mean; collectives need exec_mpi_join(). */
ExecMpi *exec_mpi_open(int *argc, char ***argv, ExecComm *ret_comm, GError **error);
/* Makes the axes' communicators for a plan of this world. */
bool exec_mpi_join(ExecMpi *mpi, const Plan *plan, GError **error);
/* Rank 0 gets every rank's text, in order of rank; others NULL. Transfer full: free each, then the
 * array. */
bool exec_mpi_collect(ExecMpi *mpi, const char *text, char ***ret_texts, GError **error);
void exec_mpi_close(ExecMpi *mpi);
void exec_mpi_abort(ExecMpi *mpi, int status) G_GNUC_NORETURN; /* ends all ranks */
