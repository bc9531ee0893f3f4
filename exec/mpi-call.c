#include "exec/mpi-call.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "exec/error.h"

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

/* Between tests, the core is given away: at first to whoever wants it, since most collectives are
 * short, then by sleeping, up to 100 us. */
bool exec_mpi_finish(MPI_Request *requests, int n, const char *call, GError **error) {
    long sleep_ns = 5000;
    for (unsigned tries = 0;; tries++) {
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
        if (tries < 300) {
            sched_yield();
            continue;
        }
        nanosleep(&(struct timespec){0, sleep_ns}, NULL);
        sleep_ns = MIN(sleep_ns * 2, 100000);
    }
}
