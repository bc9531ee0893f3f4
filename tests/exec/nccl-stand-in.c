#include "tests/exec/nccl-stand-in.h"

#include <string.h>

#include "exec/error.h"

enum {
    POLLS = 3,           /* questions until a call is through */
    MOST_WAITS = 100000, /* questions to one whose end waits for that of others */
};

NcclStandIn nccl = {.lacks_it = -1};
static int n_ending, n_waits; /* communicators whose end has begun; questions in vain since */
static ncclComm_t sick;       /* of a call that failed within a group */

/* ---- NCCL ----------------------------------------------------------------------------------- */

static ncclComm_t new_comm(int ranks, int rank) {
    ncclComm_t comm = g_new0(struct ncclComm, 1);
    comm->ranks = ranks;
    comm->rank = rank;
    nccl.alive++;
    return comm;
}

/* A call begins; what comes of it shows later. */
static ncclResult_t begin(ncclComm_t comm, const char *name) {
    g_assert_nonnull(comm);
    g_assert_cmpint(comm->polls, ==, 0);
    g_assert_cmpint(comm->result, ==, ncclSuccess);
    comm->polls = POLLS;
    comm->result = g_strcmp0(nccl.fails, name) == 0 ? ncclRemoteError : ncclSuccess;
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
    g_assert_nonnull(comm);
    if (comm->finalized && n_ending < nccl.alive) {
        g_assert_cmpint(++n_waits, <, MOST_WAITS);
        *result = ncclInProgress;
        return ncclSuccess;
    }
    if (comm->polls && --comm->polls) {
        *result = ncclInProgress;
        return ncclSuccess;
    }
    if (comm->ret_split) {
        if (comm->split) {
            comm->split->result = comm->result; /* a child of a split that failed is sick as well */
        }
        *comm->ret_split = comm->split;
        comm->ret_split = NULL;
    }
    *result = comm->result;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    memset(id, 42, sizeof *id);
    return ncclSuccess;
}

static void check_config(const ncclConfig_t *config) {
    g_assert_cmpuint(config->size, ==, sizeof *config);
    g_assert_cmpuint(config->magic, ==, 0xcafebeef);
    g_assert_cmpint(config->blocking, ==, 0);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    check_config(config);
    for (unsigned i = 0; i < sizeof id; i++) {
        g_assert_cmpint(((char *)&id)[i], ==, 42); /* rank 0's, whoever this is */
    }
    *comm = new_comm(ranks, rank);
    return begin(*comm, "init");
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *ret,
                           ncclConfig_t *config) {
    check_config(config);
    g_assert_true(color >= 0 || color == NCCL_SPLIT_NOCOLOR);
    nccl.colors[comm->rank][nccl.n_splits] = color;
    nccl.keys[comm->rank][nccl.n_splits++] = key;
    *ret = NULL;
    comm->ret_split = ret;
    comm->split = color == NCCL_SPLIT_NOCOLOR ? NULL : new_comm(2, key);
    return begin(comm, "split") == ncclInProgress && nccl.split_says_success ? ncclSuccess
                                                                             : ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    comm->finalized = true;
    n_ending++;
    return begin(comm, "finalize");
}

static void end(ncclComm_t comm) {
    g_assert_null(comm->ret_split);
    n_ending -= comm->finalized;
    g_free(comm);
    nccl.alive--;
    n_waits = 0;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    g_assert_true(comm->finalized && !comm->polls && comm->result == ncclSuccess);
    nccl.died = "destroyed";
    end(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    g_assert_cmpint(comm->result, !=, ncclSuccess);
    nccl.died = "aborted";
    end(comm);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclRemoteError ? "a planted error" : "no error";
}

const char *ncclGetLastError(ncclComm_t comm) {
    return "planted";
}

ncclResult_t ncclGetVersion(int *version) {
    *version = 22809;
    return ncclSuccess;
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
    nccl.last = (NcclCall){"all_gather", comm, in, out, count, type, ncclSum, 0, stream};
    return begin(comm, "all_gather");
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    nccl.last = (NcclCall){"reduce_scatter", comm, in, out, count, type, op, 0, stream};
    return begin(comm, "reduce_scatter");
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    nccl.last = (NcclCall){"all_reduce", comm, in, out, count, type, op, 0, stream};
    return begin(comm, "all_reduce");
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
    nccl.last = (NcclCall){"broadcast", comm, in, out, count, type, ncclSum, root, stream};
    return begin(comm, "broadcast");
}

ncclResult_t ncclGroupStart(void); /* which the header declares as C++ does */
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclGroupStart(void) {
    g_assert_false(nccl.in_group);
    nccl.in_group = true;
    nccl.n_grouped = 0;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    g_assert_true(nccl.in_group);
    nccl.in_group = false;
    if (sick) { /* a call within has failed: so has the group, whose calls are dropped */
        sick->result = ncclInvalidArgument;
        sick = NULL;
        return ncclInvalidArgument;
    }
    for (int i = 1; i < nccl.n_grouped; i++) {
        g_assert_true(nccl.grouped[i].comm == nccl.grouped[0].comm);
    }
    return nccl.n_grouped ? begin(nccl.grouped[0].comm, "group") : ncclSuccess;
}

static ncclResult_t to_or_from(NcclCall call) {
    g_assert_cmpint(call.root, >=, 0);
    nccl.last = call;
    if (!nccl.in_group) {
        ncclResult_t result = begin(call.comm, call.name);
        return nccl.lone_says_success ? ncclSuccess : result;
    }
    if (g_strcmp0(nccl.fails, call.name) == 0) {
        sick = call.comm;
        return ncclInvalidArgument;
    }
    g_assert_cmpint(nccl.n_grouped, <, G_N_ELEMENTS(nccl.grouped));
    nccl.grouped[nccl.n_grouped++] = call;
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return to_or_from((NcclCall){"send", comm, in, NULL, count, type, ncclSum, peer, stream});
}

ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return to_or_from((NcclCall){"receive", comm, NULL, out, count, type, ncclSum, peer, stream});
}

/* ---- that it is here ------------------------------------------------------------------------ */

const ExecCudaNccl *exec_cuda_nccl(GError **error) {
#define STAND_IN(name) .name = nccl##name,
    static const ExecCudaNccl stand_ins = {EXEC_CUDA_NCCL_CALLS(STAND_IN)};
    if (nccl.lacks_it == nccl.asks_for) {
        g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_COMM, "NCCL cannot be loaded: not here");
        return NULL;
    }
    return &stand_ins;
}

/* ---- CUDA ----------------------------------------------------------------------------------- */

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

/* Of own-gpu.c, and not asked here. */
cudaError_t cudaSetDevice(int device) {
    g_assert_not_reached();
}

cudaError_t cudaGetDeviceCount(int *n) {
    g_assert_not_reached();
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    g_assert_not_reached();
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int device) {
    g_assert_cmpint(device, ==, 0);
    g_snprintf(text, (gulong)length, "0000:%02x:00.0", (unsigned)nccl.slots[nccl.asks_for]);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    g_assert_cmpint(kind, ==, cudaMemcpyDeviceToDevice);
    nccl.last = (NcclCall){.name = "copy", .in = from, .out = to, .count = bytes, .stream = stream};
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error) {
    return "no error";
}

const char *cudaGetErrorName(cudaError_t error) {
    return "cudaSuccess";
}

/* ---- what comm.c might open instead --------------------------------------------------------- */

bool exec_cuda_local_open(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm,
                          uint64_t largest_bytes, GError **error) {
    g_assert_not_reached();
}

bool exec_cuda_standin_open(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm,
                            GError **error) {
    g_assert_not_reached();
}
