/* exec/cuda/comm/nccl.c - collectives by NCCL: a communicator for each axis of the mesh.
 *
 * Stages that share the layers have more, as in PyTorch (ProcessGroupNCCL, 2.13): what goes one way
 * by itself goes over a communicator of the two neighbours, on a stream of its own; exchanges,
 * which PyTorch batches, over that of the axis. Between two ranks a communicator matches sends and
 * receives in the order of their issue, and a send may hold its stream until it is received: hence
 * an exchange is a group, in which the two go on together.
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
#include "exec/cuda/comm/comm.h"
#include "exec/cuda/comm/nccl-library.h"
#include "exec/cuda/comm/sharers.h"
#include "plan/mesh.h"

enum {
    BEFORE = PLAN_N_AXES, /* this rank and the one before it in the pipeline */
    BEHIND,
    N_COMMS
};

typedef struct {
    const Plan *plan;
    uint32_t rank;
    ncclComm_t world, comms[N_COMMS]; /* of each axis, and of neighbours; NULL: of one rank */
} Nccl;

static const ExecCudaNccl *lib; /* there before any communicator is */

static bool nccl_ok(ncclResult_t result, ncclComm_t comm, const char *call, GError **error) {
    if (result != ncclSuccess) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_COMM, "%s failed: %s (%s)", call,
                    lib->GetErrorString(result), lib->GetLastError(comm));
    }
    return result == ncclSuccess;
}

enum {
    ASKS_AWAKE = 1000, /* a collective is given to its stream in some 10 us; a sleep takes longer */
    SLEEP_US = 20,
};

/* Asks until the call is no longer at work. The watchdog watches over how long that may take. What
 * says that it is done is asked once, too: a split says so while it is at work (src/init.cc, 2.19
 * and 2.28), and so does a lone send or receive of some versions, whose kernel is not yet on its
 * stream (NVIDIA/nccl issue 1495, 2024-10). */
static bool finish(ncclResult_t result, ncclComm_t comm, const char *call, GError **error) {
    result = result == ncclSuccess ? ncclInProgress : result;
    for (unsigned asks = 0; result == ncclInProgress; asks++) {
        ncclResult_t asked = lib->CommGetAsyncError(comm, &result);
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
    case PLAN_E4M3: /* which nobody adds up */
    case PLAN_E5M2:
        return ncclUint8;
    case PLAN_FP64:
        return ncclFloat64;
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
        return lib->AllGather(call->in ? call->in : in_place, call->out, slice, type, comm, stream);
    }
    case PLAN_OP_REDUCE_SCATTER:
        *ret_name = "ncclReduceScatter";
        return lib->ReduceScatter(call->in, call->out, slice, type, reduction, comm, stream);
    case PLAN_OP_ALL_REDUCE:
        *ret_name = "ncclAllReduce";
        return lib->AllReduce(call->out, call->out, call->elements, type, reduction, comm, stream);
    case PLAN_OP_BROADCAST:
        *ret_name = "ncclBroadcast";
        return lib->Broadcast(call->out, call->out, call->elements, type, 0, comm, stream);
    default:
        g_assert_not_reached();
    }
}

static bool failed(ncclResult_t result) {
    return result != ncclSuccess && result != ncclInProgress;
}

/* Both or neither: the group's end begins them, and says what became of the calls within. */
static ncclResult_t give_and_take(const ExecCudaCall *call, int to, int from, ncclComm_t comm,
                                  cudaStream_t stream) {
    ncclDataType_t type = type_of(call->dtype);
    ncclResult_t began = lib->GroupStart();
    if (began != ncclSuccess) {
        return began;
    }
    ncclResult_t sends = lib->Send(call->in, call->elements, type, to, comm, stream);
    ncclResult_t receives = lib->Recv(call->out, call->elements, type, from, comm, stream);
    ncclResult_t ends = lib->GroupEnd();
    return failed(sends) ? sends : failed(receives) ? receives : ends;
}

/* As many elements to each rank, itself too, and from each: all of them go on together. */
static ncclResult_t all_to_all(const ExecCudaCall *call, uint32_t ranks, ncclComm_t comm,
                               cudaStream_t stream) {
    ncclDataType_t type = type_of(call->dtype);
    size_t slice = call->elements / ranks, bytes = slice * plan_dtype_bytes(call->dtype);
    ncclResult_t began = lib->GroupStart(), first_failed = ncclSuccess;
    if (began != ncclSuccess) {
        return began;
    }
    for (uint32_t peer = 0; peer < ranks && first_failed == ncclSuccess; peer++) {
        ncclResult_t sends =
            lib->Send((const char *)call->in + peer * bytes, slice, type, (int)peer, comm, stream);
        ncclResult_t receives =
            lib->Recv((char *)call->out + peer * bytes, slice, type, (int)peer, comm, stream);
        first_failed = failed(sends) ? sends : failed(receives) ? receives : ncclSuccess;
    }
    ncclResult_t ends = lib->GroupEnd();
    return failed(first_failed) ? first_failed : ends;
}

/* From the rank so many places ahead of this one on the axis, and to the one as many behind. */
static ncclResult_t take_ahead(const Nccl *nccl, const ExecCudaCall *call, uint32_t ahead,
                               ncclComm_t comm, cudaStream_t stream) {
    uint32_t ranks = nccl->plan->axes[call->axis];
    uint32_t place = plan_rank_on_axis(nccl->plan, nccl->rank, call->axis);
    return give_and_take(call, (int)((place + ranks - ahead) % ranks),
                         (int)((place + ahead) % ranks), comm, stream);
}

static bool talk(const Nccl *nccl, const ExecCudaCall *call, cudaStream_t stream, GError **error) {
    bool behind = call->behind;
    ncclComm_t pair = nccl->comms[behind ? BEHIND : BEFORE];
    ncclDataType_t type = type_of(call->dtype);
    if (call->kind == PLAN_OP_EXCHANGE) {
        ncclComm_t stages = nccl->comms[PLAN_AXIS_PIPELINE];
        int peer = (int)call->peer;
        return finish(give_and_take(call, peer, peer, stages, stream), stages, "an exchange",
                      error);
    }
    return call->kind == PLAN_OP_SEND
               ? finish(lib->Send(call->in, call->elements, type, behind, pair, stream), pair,
                        "ncclSend", error)
               : finish(lib->Recv(call->out, call->elements, type, behind, pair, stream), pair,
                        "ncclRecv", error);
}

static bool run(gpointer self, const ExecCudaCall *call, cudaStream_t stream, GError **error) {
    const Nccl *nccl = self;
    if (plan_op_is_of_stages(call->kind)) {
        return talk(nccl, call, stream, error);
    }
    if (exec_cuda_call_is_idle(call)) {
        return true;
    }
    ncclComm_t comm = nccl->comms[call->axis];
    if (!comm) { /* one rank: its result is in place, or it copies it */
        return !call->in || call->in == call->out ||
               exec_cuda_ok(cudaMemcpyAsync(call->out, call->in, exec_cuda_call_out_bytes(call, 1),
                                            cudaMemcpyDeviceToDevice, stream),
                            "cudaMemcpyAsync", error);
    }
    if (call->kind == PLAN_OP_ALL_TO_ALL) {
        return finish(all_to_all(call, nccl->plan->axes[call->axis], comm, stream), comm,
                      "an all-to-all", error);
    }
    if (call->kind == PLAN_OP_PASS_ON || call->kind == PLAN_OP_PULL) {
        bool pulls = call->kind == PLAN_OP_PULL;
        uint32_t ahead = pulls ? call->ahead : nccl->plan->axes[call->axis] - 1;
        return finish(take_ahead(nccl, call, ahead, comm, stream), comm,
                      pulls ? "what ranks pull" : "what ranks pass on", error);
    }
    const char *name;
    ncclResult_t result = call_nccl(nccl, call, comm, stream, &name);
    return finish(result, comm, name, error);
}

static bool healthy(gpointer self, GError **error) {
    const Nccl *nccl = self;
    for (unsigned i = 0; i < N_COMMS; i++) {
        ncclResult_t result = ncclSuccess;
        ncclComm_t comm = nccl->comms[i];
        if (comm &&
            (!nccl_ok(lib->CommGetAsyncError(comm, &result), comm, "ncclCommGetAsyncError",
                      error) ||
             (result != ncclInProgress && !nccl_ok(result, comm, "a collective of NCCL", error)))) {
            g_prefix_error(error, "axis %s: ",
                           plan_axis_name(i < PLAN_N_AXES ? (PlanAxis)i : PLAN_AXIS_PIPELINE));
            return false;
        }
    }
    return true;
}

/* ---- beginning and end ---------------------------------------------------------------------- */

/* One that has failed is aborted at once. Of others the end begins: *ret_result says how far it is.
 * False: it is gone. */
static bool begin_end(ncclComm_t comm, ncclResult_t *ret_result) {
    ncclResult_t result = ncclSuccess;
    bool is_well = lib->CommGetAsyncError(comm, &result) == ncclSuccess && result == ncclSuccess;
    if (is_well) {
        *ret_result = lib->CommFinalize(comm);
    } else {
        lib->CommAbort(comm);
    }
    return is_well;
}

/* A communicator's ranks of one machine wait for one another in its end (NCCL's user guide, of
 * ncclCommDestroy), and neighbours in a ring would each be in another one: so all ends have begun
 * before any is waited for. */
static void close_nccl(gpointer self) {
    Nccl *nccl = self;
    ncclComm_t ending[N_COMMS + 1];
    ncclResult_t results[N_COMMS + 1];
    unsigned n = 0;
    for (unsigned i = 0; i <= N_COMMS; i++) {
        ncclComm_t comm = i < N_COMMS ? nccl->comms[i] : nccl->world;
        if (comm && begin_end(comm, &results[n])) {
            ending[n++] = comm;
        }
    }
    for (unsigned i = 0; i < n; i++) {
        bool has_ended = finish(results[i], ending[i], "ncclCommFinalize", NULL);
        (has_ended ? lib->CommDestroy : lib->CommAbort)(ending[i]);
    }
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
        id.result = lib->GetUniqueId(&id.id);
    }
    if (!comm->share(comm->self, &id, sizeof id, error) ||
        !nccl_ok(id.result, NULL, "ncclGetUniqueId", error)) {
        return false;
    }
    ncclResult_t result =
        lib->CommInitRankConfig(&nccl->world, (int)comm->world, id.id, (int)comm->rank, config);
    return finish(result, nccl->world, "ncclCommInitRankConfig", error);
}

/* color NCCL_SPLIT_NOCOLOR: this rank is in none of them, and *ret_comm stays NULL. */
static bool split(Nccl *nccl, int color, uint32_t key, ncclConfig_t *config, ncclComm_t *ret_comm,
                  GError **error) {
    ncclResult_t result = lib->CommSplit(nccl->world, color, (int)key, ret_comm, config);
    /* The new communicator is there when the old one is through. */
    return finish(result, nccl->world, "ncclCommSplit", error) &&
           (color == NCCL_SPLIT_NOCOLOR ||
            finish(ncclInProgress, *ret_comm, "ncclCommSplit", error));
}

static bool split_axis(Nccl *nccl, PlanAxis axis, ncclConfig_t *config, GError **error) {
    return nccl->plan->axes[axis] == 1 ||
           split(nccl, (int)exec_comm_color(nccl->plan, axis, nccl->rank),
                 plan_rank_on_axis(nccl->plan, nccl->rank, axis), config, &nccl->comms[axis],
                 error);
}

/* Neighbours in a pipeline are a pair each, and a rank is in one pair at most of each of these. */
typedef enum {
    FIRST_IS_EVEN,
    FIRST_IS_ODD,
    FIRST_IS_LAST, /* whom several stages a rank send on to the first place */
    N_PAIRINGS
} Pairing;

static bool has_behind(const Plan *plan, Pairing pairing, uint32_t place) {
    bool is_last = place + 1 == plan->axes[PLAN_AXIS_PIPELINE];
    return pairing == FIRST_IS_LAST ? is_last : !is_last && place % 2 == (uint32_t)pairing;
}

/* With two places there is one pair of neighbours, ring or not. */
static bool is_needed(const Plan *plan, Pairing pairing) {
    uint32_t places = plan->axes[PLAN_AXIS_PIPELINE];
    return pairing == FIRST_IS_EVEN  ? places > 1
           : pairing == FIRST_IS_ODD ? places > 2
                                     : places > 2 && plan_stages_of_rank(plan) > 1;
}

/* A pair is called by its first rank. */
static bool split_pairs(Nccl *nccl, Pairing pairing, ncclConfig_t *config, GError **error) {
    const Plan *plan = nccl->plan;
    uint32_t places = plan->axes[PLAN_AXIS_PIPELINE];
    uint32_t stride = plan_axis_stride(plan, PLAN_AXIS_PIPELINE);
    uint32_t place = plan_rank_on_axis(plan, nccl->rank, PLAN_AXIS_PIPELINE);
    uint32_t before = (place + places - 1) % places;
    bool is_first = has_behind(plan, pairing, place);
    bool is_in = is_first || has_behind(plan, pairing, before);
    uint32_t first = is_first ? nccl->rank : nccl->rank - place * stride + before * stride;
    ncclComm_t none = NULL;
    ncclComm_t *ret_pair = is_first ? &nccl->comms[BEHIND] : is_in ? &nccl->comms[BEFORE] : &none;
    return !is_needed(plan, pairing) ||
           split(nccl, is_in ? (int)first : NCCL_SPLIT_NOCOLOR, !is_first, config, ret_pair, error);
}

static char *describe(bool shared) {
    int version = 0;
    lib->GetVersion(&version);
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

/* One that lacks it says so to the others, who would wait for it in NCCL. */
static bool all_have_it(const ExecComm *comm, GError **error) {
    g_autoptr(GError) why = NULL;
    lib = exec_cuda_nccl(&why);
    double share = lib != NULL;
    if (!comm->mean(comm->self, &share, 1, error)) {
        return false;
    }
    if (!lib) {
        g_propagate_error(error, g_steal_pointer(&why));
    } else if (share < 1) {
        g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_COMM, "another rank cannot load NCCL");
    }
    return share == 1;
}

bool exec_cuda_nccl_open(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm,
                         GError **error) {
    unsigned sharers;
    if (!exec_cuda_sharers(comm, &sharers, error)) {
        return false;
    }
    if (!all_have_it(comm, error)) {
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
        ok = split_axis(nccl, (PlanAxis)axis, &config, error);
    }
    for (Pairing pairing = 0; ok && pairing < N_PAIRINGS; pairing++) {
        ok = split_pairs(nccl, pairing, &config, error);
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
