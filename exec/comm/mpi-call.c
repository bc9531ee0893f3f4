#include "exec/comm/mpi-call.h"

#include <stdatomic.h>

#include "exec/error.h"
#include "exec/watch/patience.h"

static atomic_bool given_up; /* MPI, too, is one a process */

void exec_mpi_give_up(void) {
    atomic_store(&given_up, true);
}

bool exec_mpi_check(int status, const char *call, GError **error) {
    if (status == MPI_SUCCESS) {
        return true;
    }
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0, rank = 0;
    MPI_Error_string(status, text, &length);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_COMM, "%s failed on rank %d: %s", call, rank, text);
    return false;
}

bool exec_mpi_finish(MPI_Request *requests, int n, const char *call, GError **error) {
    ExecPatience patience = {0};
    for (;; exec_patience_pause(&patience)) {
        int done = 0;
        if (!exec_mpi_check(MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE), call, error)) {
            return false;
        }
        if (done) {
            return true;
        }
        if (atomic_load_explicit(&given_up, memory_order_relaxed)) {
            g_set_error(error, EXEC_ERROR, EXEC_ERROR_COMM,
                        "%s is left unfinished, since this rank has given up", call);
            return false;
        }
    }
}
