/* tests/exec/mpi-fails.c - calls of MPI that fail, on one rank, when a test says so.
 *
 * Linked into a foreshard-exec of its own. FORESHARD_TEST_MPI_FAILS is "CALL RANK N": the Nth call
 * of CALL on RANK, counted from 1, does nothing and gives MPI_ERR_OTHER. MPI's profiling interface
 * makes it possible: a program may define MPI_X itself and reach the library's own as PMPI_X.
 * FORESHARD_TEST_MPI_SERIALIZED makes it an MPI that takes calls of one thread at a time.
 */
#include <glib.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool fails(const char *call) {
    static gint made;
    const char *order = g_getenv("FORESHARD_TEST_MPI_FAILS");
    char name[64];
    int on = 0, number = 0, rank = -1;
    if (!order || sscanf(order, "%63s %d %d", name, &on, &number) != 3 || strcmp(name, call) != 0) {
        return false;
    }
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == on && g_atomic_int_add(&made, 1) + 1 == number;
}

#define MAY_FAIL(call, arguments, parameters)                                                      \
    int call parameters;                                                                           \
    int call parameters {                                                                          \
        return fails(#call) ? MPI_ERR_OTHER : P##call arguments;                                   \
    }

MAY_FAIL(MPI_Iallgather, (from, n, type, to, m, to_type, comm, request),
         (const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype to_type,
          MPI_Comm comm, MPI_Request *request))
MAY_FAIL(MPI_Iallreduce, (from, to, n, type, op, comm, request),
         (const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
          MPI_Request *request))
MAY_FAIL(MPI_Ibcast, (buffer, n, type, root, comm, request),
         (void *buffer, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request))
MAY_FAIL(MPI_Ibarrier, (comm, request), (MPI_Comm comm, MPI_Request *request))
MAY_FAIL(MPI_Isend, (buffer, n, type, to, tag, comm, request),
         (const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
          MPI_Request *request))
MAY_FAIL(MPI_Irecv, (buffer, n, type, from, tag, comm, request),
         (void *buffer, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
          MPI_Request *request))
MAY_FAIL(MPI_Testall, (n, requests, done, statuses),
         (int n, MPI_Request requests[], int *done, MPI_Status statuses[]))
MAY_FAIL(MPI_Comm_split, (comm, color, key, made),
         (MPI_Comm comm, int color, int key, MPI_Comm *made))
MAY_FAIL(MPI_Send, (buffer, n, type, to, tag, comm),
         (const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm))
MAY_FAIL(MPI_Recv, (buffer, n, type, from, tag, comm, status),
         (void *buffer, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
          MPI_Status *status))

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    bool serialized = g_getenv("FORESHARD_TEST_MPI_SERIALIZED") != NULL;
    return PMPI_Init_thread(argc, argv, serialized ? MPI_THREAD_SERIALIZED : required, provided);
}
