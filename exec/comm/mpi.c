#include "exec/comm/mpi.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "exec/comm/mpi-call.h"
#include "exec/comm/ring.h"
#include "exec/convert.h"
#include "exec/error.h"
#include "exec/watch/warden.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/half.h"

typedef struct {
    int rank, size;
    MPI_Comm axis[PLAN_N_AXES];
    char *scratch[PLAN_N_AXES];          /* kept, for fresh pages at each call would cost more */
    uint64_t scratch_bytes[PLAN_N_AXES]; /* the most that a call has needed yet */
    bool joined;
    ExecBlackBox *box; /* of foreshard run; else NULL, and there is */
    ExecWarden *warden;
} ExecMpi;

/* MPI counts in int. */
enum {
    MAX_COUNT = 1 << 30
};

static bool fits(const ExecCollective *call, GError **error) {
    if (call->elements > MAX_COUNT) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "a collective of %" G_GUINT64_FORMAT " elements of %s is beyond the host "
                    "device (%d elements); use smaller units",
                    call->elements, plan_dtype_name(call->dtype), MAX_COUNT);
        return false;
    }
    return true;
}

static bool fits_and_adds(const ExecCollective *call, GError **error) {
    PlanDtype dtype = call->dtype;
    bool is_number = dtype == PLAN_FP32 || dtype == PLAN_BF16 || dtype == PLAN_FP16;
    if (!is_number) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "CPU ranks add up fp32, bf16 or fp16, and not %s", plan_dtype_name(dtype));
    }
    return is_number && fits(call, error);
}

/* ---- numbers as they are stored ------------------------------------------------------------- */

/* MPI only moves them. */
static MPI_Datatype type_of(PlanDtype dtype) {
    switch (plan_dtype_bytes(dtype)) {
    case 1:
        return MPI_UINT8_T;
    case 2:
        return MPI_UINT16_T;
    case 4:
        return MPI_FLOAT;
    default:
        return MPI_DOUBLE;
    }
}

static void add_fp32(gpointer to, gconstpointer from, size_t n) {
    kernel_add_inplace_f32(to, from, n);
}

static void add_bf16(gpointer to, gconstpointer from, size_t n) {
    kernel_add_inplace_bf16(to, from, n);
}

static void add_fp16(gpointer to, gconstpointer from, size_t n) {
    kernel_add_inplace_f16(to, from, n);
}

/* Numbers of 16 bits are added in fp32 and rounded, two at a time. slice: elements. */
static ExecRing ring_of(ExecMpi *mpi, PlanAxis axis, PlanDtype dtype, uint64_t slice) {
    uint64_t bytes = MIN(2 * slice * plan_dtype_bytes(dtype), EXEC_RING_SCRATCH_BYTES);
    if (bytes > mpi->scratch_bytes[axis]) {
        g_free(mpi->scratch[axis]);
        mpi->scratch[axis] = g_malloc(bytes);
        mpi->scratch_bytes[axis] = bytes;
    }
    return (ExecRing){.comm = mpi->axis[axis],
                      .type = type_of(dtype),
                      .element_bytes = plan_dtype_bytes(dtype),
                      .add = dtype == PLAN_FP32   ? add_fp32
                             : dtype == PLAN_BF16 ? add_bf16
                                                  : add_fp16,
                      .scratch = mpi->scratch[axis]};
}

/* ---- collectives ---------------------------------------------------------------------------- */

static int axis_size(const ExecMpi *mpi, PlanAxis axis) {
    int size = 1;
    MPI_Comm_size(mpi->axis[axis], &size);
    return size;
}

static bool all_gather(gpointer self, const ExecCollective *call, GError **error) {
    const ExecMpi *mpi = self;
    int count = (int)(call->elements / (uint64_t)axis_size(mpi, call->axis));
    MPI_Datatype type = type_of(call->dtype);
    MPI_Request request;
    return fits(call, error) &&
           exec_mpi_check(MPI_Iallgather(call->given ? call->given : MPI_IN_PLACE, count, type,
                                         call->taken, count, type, mpi->axis[call->axis], &request),
                          "MPI_Iallgather", error) &&
           exec_mpi_finish(&request, 1, "MPI_Iallgather", error);
}

/* Makes n numbers, which are the sum over so many ranks, their mean if that is asked for. */
static void divide_mean(const ExecCollective *call, uint64_t n, int ranks) {
    if (call->reduction == PLAN_REDUCTION_MEAN) {
        exec_scale(call->taken, call->dtype, 1.0f / (float)ranks, n);
    }
}

static bool reduce_scatter(gpointer self, const ExecCollective *call, GError **error) {
    ExecMpi *mpi = self;
    int ranks = axis_size(mpi, call->axis);
    uint64_t count = call->elements / (uint64_t)ranks;
    ExecRing ring = ring_of(mpi, call->axis, call->dtype, count);
    if (!fits_and_adds(call, error) ||
        !exec_ring_reduce_scatter(&ring, call->given, call->taken, count, error)) {
        return false;
    }
    divide_mean(call, count, ranks);
    return true;
}

static bool all_reduce(gpointer self, const ExecCollective *call, GError **error) {
    ExecMpi *mpi = self;
    uint64_t ranks = (uint64_t)axis_size(mpi, call->axis);
    ExecRing ring = ring_of(mpi, call->axis, call->dtype, (call->elements + ranks - 1) / ranks);
    if (!fits_and_adds(call, error) ||
        !exec_ring_all_reduce(&ring, call->taken, call->elements, error)) {
        return false;
    }
    divide_mean(call, call->elements, (int)ranks);
    return true;
}

static bool broadcast(gpointer self, const ExecCollective *call, GError **error) {
    const ExecMpi *mpi = self;
    MPI_Request request;
    return fits(call, error) &&
           exec_mpi_check(MPI_Ibcast(call->taken, (int)call->elements, type_of(call->dtype), 0,
                                     mpi->axis[call->axis], &request),
                          "MPI_Ibcast", error) &&
           exec_mpi_finish(&request, 1, "MPI_Ibcast", error);
}

static bool barrier(gpointer self, GError **error) {
    MPI_Request request;
    return exec_mpi_check(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier", error) &&
           exec_mpi_finish(&request, 1, "MPI_Ibarrier", error);
}

/* Every rank tells every other when it came: one hop, as quick as a barrier, and the last to come
 * waits for nobody. */
static bool meet(gpointer self, PlanAxis axis, int64_t *ns, GError **error) {
    const ExecMpi *mpi = self;
    int ranks = axis_size(mpi, axis);
    g_autofree int64_t *came = g_new(int64_t, ranks);
    MPI_Request request;
    if (!exec_mpi_check(
            MPI_Iallgather(ns, 1, MPI_INT64_T, came, 1, MPI_INT64_T, mpi->axis[axis], &request),
            "MPI_Iallgather", error) ||
        !exec_mpi_finish(&request, 1, "MPI_Iallgather", error)) {
        return false;
    }
    for (int i = 0; i < ranks; i++) {
        *ns = MAX(*ns, came[i]);
    }
    return true;
}

enum {
    TALK_TAG = 1 /* and the next, of exchanges; what all ranks do together has 0 */
};

/* Bytes, in pieces that MPI's int counts. A send that is synchronous ends when it is received. */
static bool talk(gpointer self, const ExecTalk *talk, GError **error) {
    const ExecMpi *mpi = self;
    MPI_Comm comm = mpi->axis[PLAN_AXIS_PIPELINE];
    int peer = (int)talk->peer, tag = TALK_TAG + talk->swaps;
    uint64_t bytes = talk->elements * plan_dtype_bytes(talk->dtype);
    for (uint64_t at = 0, n; at < bytes; at += n) {
        MPI_Request requests[2];
        int asked = 0;
        n = MIN(bytes - at, (uint64_t)MAX_COUNT);
        if (talk->taken && !exec_mpi_check(MPI_Irecv((char *)talk->taken + at, (int)n, MPI_BYTE,
                                                     peer, tag, comm, &requests[asked++]),
                                           "MPI_Irecv", error)) {
            return false;
        }
        if (talk->given &&
            !exec_mpi_check(MPI_Issend((const char *)talk->given + at, (int)n, MPI_BYTE, peer, tag,
                                       comm, &requests[asked++]),
                            "MPI_Issend", error)) {
            return false;
        }
        if (!exec_mpi_finish(requests, asked, "MPI_Testall", error)) {
            return false;
        }
    }
    return true;
}

static bool mean(gpointer self, double *values, unsigned n, GError **error) {
    const ExecMpi *mpi = self;
    MPI_Request request;
    if (!exec_mpi_check(MPI_Iallreduce(MPI_IN_PLACE, values, (int)n, MPI_DOUBLE, MPI_SUM,
                                       MPI_COMM_WORLD, &request),
                        "MPI_Iallreduce", error) ||
        !exec_mpi_finish(&request, 1, "MPI_Iallreduce", error)) {
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        values[i] /= mpi->size;
    }
    return true;
}

/* Ranks that differ only on one axis share a communicator. */
static bool join(gpointer self, const Plan *plan, GError **error) {
    ExecMpi *mpi = self;
    for (unsigned axis = PLAN_AXIS_NONE + 1; axis < PLAN_N_AXES; axis++) {
        int color = (int)exec_comm_color(plan, (PlanAxis)axis, (uint32_t)mpi->rank);
        if (!exec_mpi_check(MPI_Comm_split(MPI_COMM_WORLD, color, mpi->rank, &mpi->axis[axis]),
                            "MPI_Comm_split", error)) {
            return false;
        }
        MPI_Comm_set_errhandler(mpi->axis[axis], MPI_ERRORS_RETURN);
    }
    mpi->joined = true;
    return true;
}

/* From one rank to rank 0. There may be more than MPI's int counts: they go in pieces. */
static bool hand_over(const ExecMpi *mpi, int from, gpointer bytes, uint64_t n, GError **error) {
    bool gives = mpi->rank == from;
    const char *call = gives ? "MPI_Isend" : "MPI_Irecv";
    for (uint64_t at = 0, some; at < n; at += some) {
        MPI_Request request;
        char *piece = (char *)bytes + at;
        some = MIN(n - at, (uint64_t)MAX_COUNT);
        int status = gives
                         ? MPI_Isend(piece, (int)some, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request)
                         : MPI_Irecv(piece, (int)some, MPI_BYTE, from, 0, MPI_COMM_WORLD, &request);
        if (!exec_mpi_check(status, call, error) || !exec_mpi_finish(&request, 1, call, error)) {
            return false;
        }
    }
    return true;
}

static bool collect(gpointer self, uint32_t from, const char *text, char **ret_text,
                    GError **error) {
    const ExecMpi *mpi = self;
    uint64_t length = strlen(text);
    *ret_text = NULL;
    if (mpi->rank != 0 && mpi->rank != (int)from) {
        return true;
    }
    if (!hand_over(mpi, (int)from, &length, sizeof length, error)) {
        return false;
    }
    g_autofree char *copy = mpi->rank ? g_strdup(text) : g_malloc0(length + 1);
    if (!hand_over(mpi, (int)from, copy, length, error)) {
        return false;
    }
    *ret_text = mpi->rank ? NULL : g_steal_pointer(&copy);
    return true;
}

static bool share(gpointer self, gpointer bytes, gsize n, GError **error) {
    MPI_Request request;
    return exec_mpi_check(MPI_Ibcast(bytes, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD, &request),
                          "MPI_Ibcast", error) &&
           exec_mpi_finish(&request, 1, "MPI_Ibcast", error);
}

static void close_mpi(gpointer self) {
    ExecMpi *mpi = self;
    for (unsigned axis = PLAN_AXIS_NONE + 1; axis < PLAN_N_AXES && mpi->joined; axis++) {
        MPI_Comm_free(&mpi->axis[axis]);
    }
    MPI_Finalize();
    exec_black_box_free(mpi->box);
    exec_warden_free(mpi->warden);
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        g_free(mpi->scratch[axis]);
    }
    g_free(mpi);
}

static void give_up(gpointer self) {
    exec_mpi_give_up();
}

/* Open MPI 5 now and then drops what a rank has written just before it aborts. */
enum {
    LAST_WORDS_US = 200000
};

static void abort_mpi(gpointer self, int status) {
    g_usleep(LAST_WORDS_US);
    MPI_Abort(MPI_COMM_WORLD, status);
    exit(status);
}

/* The ranks that share this machine's memory. */
static void find_machine(ExecComm *comm) {
    MPI_Comm here;
    int rank = 0, size = 1;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, &rank);
    MPI_Comm_size(here, &size);
    MPI_Comm_free(&here);
    comm->local_rank = (uint32_t)rank;
    comm->local_world = (uint32_t)size;
}

/* Where this rank notes what it is about: for its warden, or for whoever started all of them. */
static bool find_doing(ExecMpi *mpi, const char *black_box, ExecComm *comm, GError **error) {
    uint32_t rank = (uint32_t)mpi->rank;
    if (mpi->warden) {
        comm->doing = exec_warden_doing(mpi->warden, rank);
        return true;
    }
    mpi->box = exec_black_box_open(black_box, (uint32_t)mpi->size, error);
    comm->doing = mpi->box ? exec_black_box_doing(mpi->box, rank) : NULL;
    return mpi->box != NULL;
}

/* Open MPI moves large messages between processes by reading the other's memory (CMA), ten times as
 * fast as through shared memory; where a container forbids that, it says so on every start although
 * it works. Whether it is forbidden shows by reading one's own. */
static void choose_copies(void) {
    char from = 1, to = 0;
    struct iovec there = {&from, 1}, here = {&to, 1};
    bool allowed = process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
    g_setenv("OMPI_MCA_btl_vader_single_copy_mechanism", allowed ? "cma" : "none", FALSE);
}

bool exec_mpi_open(int *argc, char ***argv, const char *black_box, const char *plan_path,
                   ExecComm *ret_comm, GError **error) {
    ExecMpi *mpi = g_new0(ExecMpi, 1);
    int provided = MPI_THREAD_SINGLE;
    choose_copies();
    if (!black_box && !(mpi->warden = exec_warden_new(plan_path, error))) {
        g_free(mpi);
        return false;
    }
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi->size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (provided < MPI_THREAD_MULTIPLE) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_COMM,
                    "this MPI does not allow calls from several threads (MPI_THREAD_MULTIPLE); "
                    "use an Open MPI built with thread support, such as Debian's");
        close_mpi(mpi);
        return false;
    }
    *ret_comm = (ExecComm){
        .name = "MPI",
        .rank = (uint32_t)mpi->rank,
        .world = (uint32_t)mpi->size,
        .self = mpi,
        .all_gather = all_gather,
        .reduce_scatter = reduce_scatter,
        .all_reduce = all_reduce,
        .broadcast = broadcast,
        .barrier = barrier,
        .meet = meet,
        .talk = talk,
        .mean = mean,
        .join = join,
        .share = share,
        .collect = collect,
        .give_up = give_up,
        .abort = abort_mpi,
        .close = close_mpi,
    };
    find_machine(ret_comm);
    return find_doing(mpi, black_box, ret_comm, error);
}
