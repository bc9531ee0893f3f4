/* exec/cuda/nccl.c - collectives between GPUs by NCCL: a communicator for each axis of the mesh.
 *
 * One communicator of all ranks is made from rank 0's id and split by axis. All are nonblocking: a
 * call that is still at work says so, and is asked again, so that this rank never waits inside NCCL
 * for one that has died; what fails later is found when healthy() asks.
 *
 * NCCL refuses two ranks on one GPU unless it takes them for different hosts, by NCCL_HOSTID (a
 * setting of NCCL for tests; such ranks talk over sockets, and time means nothing).
 */
#include <sched.h>

#include "exec/cuda/calls.h"
#include "exec/cuda/comm.h"
#include "exec/cuda/sharers.h"

/* Its header declares functions with (), which means something else in C than in C++. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <nccl.h>
#pragma GCC diagnostic pop

typedef struct {
    const Plan *plan;
    uint32_t rank;
    ncclComm_t world, axes[PLAN_N_AXES]; /* NULL: an axis of one rank */
} Nccl;

static bool nccl_ok(ncclResult_t result, ncclComm_t comm, const char *call, GError **error) {
    if (result != ncclSuccess) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_COMM, "%s failed: %s (%s)", call,
                    ncclGetErrorString(result), ncclGetLastError(comm));
    }
    return result == ncclSuccess;
}

enum {
    ASKS_AWAKE = 1000, /* a collective is given to its stream in some 10 us; a sleep takes longer */
    SLEEP_US = 20,
};

/* Asks until the call is no longer at work. The watchdog watches over how long that may take. */
static bool finish(ncclResult_t result, ncclComm_t comm, const char *call, GError **error) {
    for (unsigned asks = 0; result == ncclInProgress; asks++) {
        ncclResult_t asked = ncclCommGetAsyncError(comm, &result);
        if (!nccl_ok(asked, comm, "ncclCommGetAsyncError", error)) {
            return false;
        }
        if (result == ncclInProgress && asks < ASKS_AWAKE) {
            sched_yield();
        } else if (result == ncclInProgress) {
            g_usleep(SLEEP_US);
        }
    }
    return nccl_ok(result, comm, call, error);
}

/* ---- the calls ------------------------------------------------------------------------------ */

static ncclDataType_t type_of(PlanDtype dtype) {
    switch (dtype) {
    case PLAN_FP32:
        return ncclFloat32;
    case PLAN_BF16:
        return ncclBfloat16;
    case PLAN_FP16:
        return ncclFloat16;
    case PLAN_INT64:
        return ncclInt64;
    case PLAN_INT32:
        return ncclInt32;
    case PLAN_UINT8:
        return ncclUint8;
    case PLAN_E4M3: /* no plan that a GPU takes sends them */
    case PLAN_E5M2:
    case PLAN_FP64:
    case PLAN_N_DTYPES:
        break;
    }
    g_assert_not_reached();
}

static ncclRedOp_t reduction_of(PlanReduction reduction) {
    switch (reduction) {
    case PLAN_REDUCTION_SUM:
        return ncclSum;
    case PLAN_REDUCTION_MEAN:
        return ncclAvg;
    case PLAN_REDUCTION_MAX:
        return ncclMax;
    }
    g_assert_not_reached();
}

static ncclResult_t call_nccl(const Nccl *nccl, const ExecCudaCall *call, ncclComm_t comm,
                              cudaStream_t stream, const char **ret_name) {
    uint32_t ranks = nccl->plan->axes[call->axis];
    uint32_t place = plan_rank_on_axis(nccl->plan, nccl->rank, call->axis);
    size_t slice = call->elements / ranks;
    ncclDataType_t type = type_of(call->dtype);
    ncclRedOp_t reduction = reduction_of(call->reduction);
    switch (call->kind) {
    case PLAN_OP_ALL_GATHER: {
        const char *in_place = (char *)call->out + place * slice * plan_dtype_bytes(call->dtype);
        *ret_name = "ncclAllGather";
        return ncclAllGather(call->in ? call->in : in_place, call->out, slice, type, comm, stream);
    }
    case PLAN_OP_REDUCE_SCATTER:
        *ret_name = "ncclReduceScatter";
        return ncclReduceScatter(call->in, call->out, slice, type, reduction, comm, stream);
    case PLAN_OP_ALL_REDUCE:
        *ret_name = "ncclAllReduce";
        return ncclAllReduce(call->out, call->out, call->elements, type, reduction, comm, stream);
    case PLAN_OP_BROADCAST:
        *ret_name = "ncclBroadcast";
        return ncclBroadcast(call->out, call->out, call->elements, type, 0, comm, stream);
    default:
        g_assert_not_reached();
    }
}

static bool run(gpointer self, const ExecCudaCall *call, cudaStream_t stream, GError **error) {
    const Nccl *nccl = self;
    ncclComm_t comm = nccl->axes[call->axis];
    if (!comm) { /* one rank: its result is in place, or it copies it */
        return !call->in || call->in == call->out ||
               exec_cuda_ok(cudaMemcpyAsync(call->out, call->in, exec_cuda_call_out_bytes(call, 1),
                                            cudaMemcpyDeviceToDevice, stream),
                            "cudaMemcpyAsync", error);
    }
    const char *name;
    ncclResult_t result = call_nccl(nccl, call, comm, stream, &name);
    return finish(result, comm, name, error);
}

static bool healthy(gpointer self, GError **error) {
    const Nccl *nccl = self;
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        ncclResult_t result = ncclSuccess;
        ncclComm_t comm = nccl->axes[axis];
        if (comm &&
            (!nccl_ok(ncclCommGetAsyncError(comm, &result), comm, "ncclCommGetAsyncError", error) ||
             (result != ncclInProgress && !nccl_ok(result, comm, "a collective of NCCL", error)))) {
            g_prefix_error(error, "axis %s: ", plan_axis_name((PlanAxis)axis));
            return false;
        }
    }
    return true;
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static void end_comm(ncclComm_t comm) {
    ncclResult_t result = ncclSuccess;
    if (!comm) {
        return;
    }
    if (ncclCommGetAsyncError(comm, &result) == ncclSuccess && result == ncclSuccess &&
        finish(ncclCommFinalize(comm), comm, "ncclCommFinalize", NULL)) {
        ncclCommDestroy(comm);
    } else {
        ncclCommAbort(comm);
    }
}

static void close_nccl(gpointer self) {
    Nccl *nccl = self;
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        end_comm(nccl->axes[axis]);
    }
    end_comm(nccl->world);
    g_free(nccl);
}

/* Rank 0's id, and whether it has one. */
typedef struct {
    ncclUniqueId id;
    ncclResult_t result;
} Id;

static bool init(Nccl *nccl, const ExecComm *comm, ncclConfig_t *config, GError **error) {
    Id id = {.result = ncclSuccess};
    if (comm->rank == 0) {
        id.result = ncclGetUniqueId(&id.id);
    }
    if (!comm->share(comm->self, &id, sizeof id, error) ||
        !nccl_ok(id.result, NULL, "ncclGetUniqueId", error)) {
        return false;
    }
    ncclResult_t result =
        ncclCommInitRankConfig(&nccl->world, (int)comm->world, id.id, (int)comm->rank, config);
    return finish(result, nccl->world, "ncclCommInitRankConfig", error);
}

static bool split(Nccl *nccl, PlanAxis axis, ncclConfig_t *config, GError **error) {
    if (nccl->plan->axes[axis] == 1) {
        return true;
    }
    int color = (int)exec_comm_color(nccl->plan, axis, nccl->rank);
    int key = (int)plan_rank_on_axis(nccl->plan, nccl->rank, axis);
    ncclResult_t result = ncclCommSplit(nccl->world, color, key, &nccl->axes[axis], config);
    if (result == ncclSuccess) { /* it says so while it is at work (src/init.cc, 2.19 and 2.28) */
        result = ncclInProgress;
    }
    /* The new communicator is there when the old one is through. */
    return finish(result, nccl->world, "ncclCommSplit", error) &&
           finish(ncclInProgress, nccl->axes[axis], "ncclCommSplit", error);
}

static char *describe(bool shared) {
    int version = 0;
    ncclGetVersion(&version);
    return g_strdup_printf("NCCL %d.%d.%d%s", version / 10000, version / 100 % 100, version % 100,
                           shared ? ", ranks of one GPU told apart by NCCL_HOSTID" : "");
}

/* Ranks that are all of this machine need no network of its own, which it may not have, or may not
 * let them reach themselves by. What a user has set stands. */
static void tell_apart(const ExecComm *comm) {
    g_autofree char *host = g_strdup_printf("foreshard-%u", comm->rank);
    g_setenv("NCCL_HOSTID", host, TRUE);
    if (comm->local_world == comm->world) {
        g_setenv("NCCL_NET", "Socket", FALSE);
        g_setenv("NCCL_SOCKET_IFNAME", "lo", FALSE);
    }
}

bool exec_cuda_nccl_open(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm,
                         GError **error) {
    unsigned sharers;
    if (!exec_cuda_sharers(comm, &sharers, error)) {
        return false;
    }
    bool shared = sharers > 1;
    if (shared) {
        tell_apart(comm);
    }
    Nccl *nccl = g_new0(Nccl, 1);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    nccl->plan = plan;
    nccl->rank = comm->rank;
    bool ok = init(nccl, comm, &config, error);
    for (unsigned axis = PLAN_AXIS_NONE + 1; ok && axis < PLAN_N_AXES; axis++) {
        ok = split(nccl, (PlanAxis)axis, &config, error);
    }
    if (!ok) {
        close_nccl(nccl);
        return false;
    }
    *ret_comm = (ExecCudaComm){.name = describe(shared),
                               .self = nccl,
                               .run = run,
                               .healthy = healthy,
                               .close = close_nccl};
    return true;
}
