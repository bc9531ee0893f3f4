/* exec/comm/mpi-call.h - checks the result of a call of MPI, and waits for requests without
 * spinning (exec/watch/patience.h).
 *
 * Threads: any.
 */
#pragma once

#include <glib.h>
#include <mpi.h>
#include <stdbool.h>

/* False with an error that names call and rank. */
bool exec_mpi_check(int status, const char *call, GError **error);
/* Waits until all n requests are done. Fails on an error, and once this process has given up. */
bool exec_mpi_finish(MPI_Request *requests, int n, const char *call, GError **error);
void exec_mpi_give_up(void); /* every wait fails from now on */
