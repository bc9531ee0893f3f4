/* tests/exec/mpi-fails.c - calls of MPI that fail, on one rank, when a test says so.
 *
 * Linked into a foreshard-exec of its own. FORESHARD_TEST_MPI_FAILS is "CALL RANK N": the Nth call
 * of CALL on RANK, counted from 1, does nothing and gives MPI_ERR_OTHER. MPI's profiling interface
 * makes it possible: a program may define MPI_X itself and reach the library's own as PMPI_X.
 * Sends and receives of bytes are called "MPI_Isend of bytes" and "MPI_Irecv of bytes" here, so
 * that those of tensors are counted by themselves; of stages, tensors go as bytes, too.
 * FORESHARD_TEST_MPI_SERIALIZED makes it an MPI that takes calls of one thread at a time.
 * FORESHARD_TEST_SLOW_MS is how much longer each send of bytes takes, and a tenth of it each write
 * of weights.
 */
#include <glib.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool fails(const char *call) {
    static gint made;
    const char *order = g_getenv("FORESHARD_TEST_MPI_FAILS");
    int on = 0, number = 0, rank = -1;
    if (!order || !g_str_has_prefix(order, call) ||
        sscanf(order + strlen(call), " %d %d", &on, &number) != 2) {
        return false;
    }
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == on && g_atomic_int_add(&made, 1) + 1 == number;
}

static void be_slow(unsigned part) {
    const char *ms = g_getenv("FORESHARD_TEST_SLOW_MS");
    if (ms) {
        g_usleep(g_ascii_strtoull(ms, NULL, 10) * 1000 / part);
    }
}

#define MAY_FAIL_AS(name, call, arguments, parameters)                                             \
    int call parameters;                                                                           \
    int call parameters {                                                                          \
        return fails(name) ? MPI_ERR_OTHER : P##call arguments;                                    \
    }
#define MAY_FAIL(call, arguments, parameters) MAY_FAIL_AS(#call, call, arguments, parameters)

MAY_FAIL(MPI_Iallgather, (from, n, type, to, m, to_type, comm, request),
         (const void *from, int n, MPI_Datatype type, void *to, int m, MPI_Datatype to_type,
          MPI_Comm comm, MPI_Request *request))
MAY_FAIL(MPI_Iallreduce, (from, to, n, type, op, comm, request),
         (const void *from, void *to, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
          MPI_Request *request))
MAY_FAIL(MPI_Ibcast, (buffer, n, type, root, comm, request),
         (void *buffer, int n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request))
MAY_FAIL(MPI_Ibarrier, (comm, request), (MPI_Comm comm, MPI_Request *request))
MAY_FAIL_AS(type == MPI_BYTE ? (be_slow(1), "MPI_Isend of bytes") : "MPI_Isend", MPI_Isend,
            (buffer, n, type, to, tag, comm, request),
            (const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
             MPI_Request *request))
MAY_FAIL_AS(type == MPI_BYTE ? "MPI_Irecv of bytes" : "MPI_Irecv", MPI_Irecv,
            (buffer, n, type, from, tag, comm, request),
            (void *buffer, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Request *request))
MAY_FAIL(MPI_Issend, (buffer, n, type, to, tag, comm, request),
         (const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
          MPI_Request *request))
MAY_FAIL(MPI_Testall, (n, requests, done, statuses),
         (int n, MPI_Request requests[], int *done, MPI_Status statuses[]))
MAY_FAIL(MPI_Comm_split, (comm, color, key, made),
         (MPI_Comm comm, int color, int key, MPI_Comm *made))

/* Takes the place of the C library's in this program. */
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) {
    be_slow(10);
    return syscall(SYS_pwrite64, fd, bytes, n, at);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    bool serialized = g_getenv("FORESHARD_TEST_MPI_SERIALIZED") != NULL;
    return PMPI_Init_thread(argc, argv, serialized ? MPI_THREAD_SERIALIZED : required, provided);
}
