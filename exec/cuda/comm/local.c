/* exec/cuda/comm/local.c - collectives between GPUs by way of the host's memory.
 *
 * A collective is a copy to pinned memory, a function of the host that the stream runs in its turn
 * (the ExecComm's collective, which blocks), and a copy back. CUDA may run such functions one at a
 * time, so two that wait for other ranks in different orders could block each other for ever;
 * therefore each collective waits for the one that was issued before it, whatever its axis and
 * stream, and the order of issue is the same on all ranks. Stages that share the layers issue in
 * orders of their own, in which they come to an end though each send waits for its receive, and all
 * that follows for it (tests/plan/stages.c).
 *
 * Owns: two pinned buffers, large enough for each collective of the plan. Threads: the host's, and
 * CUDA's for the functions.
 */
#include "exec/cuda/calls.h"
#include "exec/cuda/comm/comm.h"
#include "exec/cuda/pinned.h"
#include "plan/mesh.h"

typedef struct {
    const Plan *plan;
    const ExecComm *comm;
    gpointer in, out;
    cudaEvent_t last; /* the collective before */
    GMutex mutex;
    GError *error; /* the first of a function of the host */
} Local;

typedef struct {
    Local *local;
    ExecCudaCall call;
} Job;

/* ---- the host's part ------------------------------------------------------------------------ */

static bool talk(const Local *local, const ExecCudaCall *call, GError **error) {
    ExecTalk talk = {.peer = call->peer,
                     .behind = call->behind,
                     .swaps = call->kind == PLAN_OP_EXCHANGE,
                     .dtype = call->dtype,
                     .given = call->in ? local->in : NULL,
                     .taken = call->out ? local->out : NULL,
                     .elements = call->elements};
    return local->comm->talk(local->comm->self, &talk, error);
}

/* The host's collective of the same kind, from and to memory that both see. */
static bool carry_out(const Local *local, const ExecCudaCall *call, GError **error) {
    const ExecComm *comm = local->comm;
    ExecCollective same = {.axis = call->axis,
                           .dtype = call->dtype,
                           .reduction = call->reduction,
                           .elements = call->elements,
                           .given = call->in ? local->in : NULL,
                           .taken = local->out};
    switch (call->kind) {
    case PLAN_OP_ALL_GATHER:
        return comm->all_gather(comm->self, &same, error);
    case PLAN_OP_REDUCE_SCATTER:
        return comm->reduce_scatter(comm->self, &same, error);
    case PLAN_OP_ALL_REDUCE:
        same.given = NULL; /* it is in place */
        return exec_comm_all_reduce(comm, local->plan, &same, error);
    case PLAN_OP_ALL_TO_ALL:
        return exec_comm_all_to_all(comm, local->plan, &same, error);
    case PLAN_OP_PASS_ON:
        return exec_comm_pass_on(comm, local->plan, &same, error);
    case PLAN_OP_PULL:
        return exec_comm_take_ahead(comm, local->plan, &same, call->ahead, error);
    case PLAN_OP_BROADCAST:
        same.given = NULL;
        return comm->broadcast(comm->self, &same, error);
    case PLAN_OP_SEND:
    case PLAN_OP_RECEIVE:
    case PLAN_OP_EXCHANGE:
        return talk(local, call, error);
    default:
        g_assert_not_reached();
    }
}

static bool has_failed(Local *local) {
    g_mutex_lock(&local->mutex);
    bool failed = local->error != NULL;
    g_mutex_unlock(&local->mutex);
    return failed;
}

static void CUDART_CB host_part(void *data) {
    Job *job = data;
    Local *local = job->local;
    GError *error = NULL;
    if (!has_failed(local) && !carry_out(local, &job->call, &error)) {
        g_mutex_lock(&local->mutex);
        local->error = error;
        g_mutex_unlock(&local->mutex);
        local->comm->give_up(
            local->comm->self); /* the host may wait for ranks that wait for this */
    }
    g_free(job);
}

/* ---- the stream's part ---------------------------------------------------------------------- */

static bool copy(gpointer to, gconstpointer from, uint64_t bytes, enum cudaMemcpyKind kind,
                 cudaStream_t stream, GError **error) {
    return exec_cuda_ok(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync", error);
}

/* What this rank gives, to where the host's part looks for it. */
static bool copy_in(const Local *local, const ExecCudaCall *call, cudaStream_t stream,
                    GError **error) {
    uint32_t ranks = local->plan->axes[call->axis];
    uint64_t bytes = exec_cuda_call_in_bytes(call, ranks);
    if (plan_op_is_of_stages(call->kind)) {
        return !call->in || copy(local->in, call->in, bytes, cudaMemcpyDeviceToHost, stream, error);
    }
    bool gathers = call->kind == PLAN_OP_ALL_GATHER;
    if ((gathers && call->in) || call->kind == PLAN_OP_REDUCE_SCATTER ||
        call->kind == PLAN_OP_ALL_TO_ALL || call->kind == PLAN_OP_PASS_ON ||
        call->kind == PLAN_OP_PULL) {
        return copy(local->in, call->in, bytes, cudaMemcpyDeviceToHost, stream, error);
    }
    uint32_t place = plan_rank_on_axis(local->plan, local->comm->rank, call->axis);
    uint64_t from = gathers ? place * bytes : 0;
    return copy((char *)local->out + from, (char *)call->out + from, bytes, cudaMemcpyDeviceToHost,
                stream, error);
}

/* A rank by itself has its result in place, or copies it. */
static bool alone(const ExecCudaCall *call, cudaStream_t stream, GError **error) {
    return !call->in || call->in == call->out ||
           copy(call->out, call->in, exec_cuda_call_out_bytes(call, 1), cudaMemcpyDeviceToDevice,
                stream, error);
}

static bool run(gpointer self, const ExecCudaCall *call, cudaStream_t stream, GError **error) {
    Local *local = self;
    uint32_t ranks = local->plan->axes[call->axis];
    if (exec_cuda_call_is_idle(call)) {
        return true;
    }
    if (ranks == 1) {
        return alone(call, stream, error);
    }
    Job *job = g_new(Job, 1);
    *job = (Job){local, *call};
    return exec_cuda_ok(cudaStreamWaitEvent(stream, local->last, 0), "cudaStreamWaitEvent",
                        error) &&
           copy_in(local, call, stream, error) &&
           exec_cuda_ok(cudaLaunchHostFunc(stream, host_part, job), "cudaLaunchHostFunc", error) &&
           (!call->out || copy(call->out, local->out, exec_cuda_call_out_bytes(call, ranks),
                               cudaMemcpyHostToDevice, stream, error)) &&
           exec_cuda_ok(cudaEventRecord(local->last, stream), "cudaEventRecord", error);
}

static bool healthy(gpointer self, GError **error) {
    Local *local = self;
    if (!has_failed(local)) {
        return true;
    }
    g_propagate_error(error, g_error_copy(local->error));
    return false;
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static void close_local(gpointer self) {
    Local *local = self;
    exec_cuda_pinned_free(local->in);
    exec_cuda_pinned_free(local->out);
    if (local->last) {
        cudaEventDestroy(local->last);
    }
    g_clear_error(&local->error);
    g_mutex_clear(&local->mutex);
    g_free(local);
}

static bool pin(Local *local, uint64_t bytes, GError **error) {
    const char *what = "collectives by way of the host's memory";
    return (local->in = exec_cuda_pinned_new(bytes, what, error)) &&
           (local->out = exec_cuda_pinned_new(bytes, what, error));
}

bool exec_cuda_local_open(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm,
                          uint64_t bytes, GError **error) {
    Local *local = g_new0(Local, 1);
    local->plan = plan;
    local->comm = comm;
    g_mutex_init(&local->mutex);
    if (!exec_cuda_ok(cudaEventCreateWithFlags(&local->last, cudaEventDisableTiming),
                      "cudaEventCreateWithFlags", error) ||
        (bytes && !pin(local, bytes, error))) {
        close_local(local);
        return false;
    }
    *ret_comm = (ExecCudaComm){
        .name = comm->world == 1
                    ? g_strdup("none (one rank)")
                    : g_strdup_printf("local, by way of the host's memory and %s", comm->name),
        .self = local,
        .run = run,
        .healthy = healthy,
        .close = close_local,
    };
    return true;
}
