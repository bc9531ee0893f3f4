/* exec/cuda/standin.c - collectives of one GPU that rehearses one rank of many.
 *
 * What the others would send is made of this rank's own: a gather repeats its slice, a reduction
 * gives what equal ranks would; numbers of the right size, neither zeros nor such as overflow.
 * Losses so mean nothing. A collective holds its stream until so long after it could begin as the
 * network model says (the table of exec/pace.h): two functions of the host lie around the copy, and
 * the second sleeps. So it takes the memory bandwidth of one write but no multiprocessors, of which
 * NCCL's kernels would take some; and where CUDA runs such functions one at a time, collectives on
 * two streams that overlap last longer than they should.
 *
 * Borrows: the plan. Threads: the host's, and CUDA's for the functions.
 */
#include "exec/cuda/calls.h"
#include "exec/cuda/comm.h"
#include "exec/pace.h"
#include "exec/play.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/elementwise.h"

typedef struct {
    const Plan *plan;
    uint32_t rank;
} Standin;

/* ---- how long ------------------------------------------------------------------------------- */

typedef struct {
    int64_t begun_ns, least_ns;
} Pause;

static void CUDART_CB begin(void *data) {
    ((Pause *)data)->begun_ns = exec_play_now_ns();
}

static void CUDART_CB end(void *data) {
    Pause *pause = data;
    exec_pace_sleep_until(pause->begun_ns + pause->least_ns);
    g_free(pause);
}

/* ---- what arrives --------------------------------------------------------------------------- */

static KernelCudaFault times_ranks(const ExecCudaCall *call, uint64_t n, uint32_t ranks) {
    KernelCudaType type = (KernelCudaType)call->dtype;
    return call->average
               ? NULL
               : kernel_cuda_scale(call->kernels, call->out, type, call->out, type, n, ranks);
}

/* One slice to every place; to its own only from a shard. */
static KernelCudaFault gather(const ExecCudaCall *call, uint32_t ranks, uint32_t own) {
    uint64_t slice = call->elements / ranks, size = plan_dtype_bytes(call->dtype);
    char *out = call->out, *mine = out + own * slice * size;
    const void *from = call->in ? call->in : mine;
    KernelCudaPiece piece = {.from = from,
                             .width = slice,
                             .to_stride = slice,
                             .from_stride = 0,
                             .to_type = (KernelCudaType)call->dtype,
                             .from_type = (KernelCudaType)call->dtype};
    KernelCudaPiece before = piece, after = piece;
    before.to = out;
    before.rows = own;
    after.to = call->in ? mine : mine + slice * size;
    after.rows = ranks - own - (call->in ? 0 : 1);
    KernelCudaPiece pieces[2];
    unsigned n = 0;
    if (before.rows) {
        pieces[n++] = before;
    }
    if (after.rows) {
        pieces[n++] = after;
    }
    return slice ? kernel_cuda_copy_pieces(call->kernels, pieces, n) : NULL;
}

static KernelCudaFault reduce_scatter(const ExecCudaCall *call, uint32_t ranks, uint32_t own) {
    uint64_t slice = call->elements / ranks, size = plan_dtype_bytes(call->dtype);
    KernelCudaPiece piece = {.to = call->out,
                             .from = (const char *)call->in + own * slice * size,
                             .rows = 1,
                             .width = slice,
                             .to_stride = slice,
                             .from_stride = slice,
                             .to_type = (KernelCudaType)call->dtype,
                             .from_type = (KernelCudaType)call->dtype};
    KernelCudaFault fault = slice ? kernel_cuda_copy_pieces(call->kernels, &piece, 1) : NULL;
    return fault ? fault : times_ranks(call, slice, ranks);
}

static KernelCudaFault stand_in(const ExecCudaCall *call, uint32_t ranks, uint32_t own) {
    switch (call->kind) {
    case PLAN_OP_ALL_GATHER:
        return gather(call, ranks, own);
    case PLAN_OP_REDUCE_SCATTER:
        return reduce_scatter(call, ranks, own);
    case PLAN_OP_ALL_REDUCE:
        return times_ranks(call, call->elements, ranks);
    default: /* a broadcast: what the first rank has is what this one has */
        return NULL;
    }
}

/* ---- the table ------------------------------------------------------------------------------ */

static bool run(gpointer self, const ExecCudaCall *call, cudaStream_t stream, GError **error) {
    const Standin *standin = self;
    uint32_t ranks = standin->plan->axes[call->axis];
    uint32_t own = plan_rank_on_axis(standin->plan, standin->rank, call->axis);
    Pause *pause = g_new(Pause, 1);
    *pause = (Pause){0, call->least_ns};
    return exec_cuda_ok(cudaLaunchHostFunc(stream, begin, pause), "cudaLaunchHostFunc", error) &&
           exec_cuda_kernel_ok(stand_in(call, ranks, own), error) &&
           exec_cuda_ok(cudaLaunchHostFunc(stream, end, pause), "cudaLaunchHostFunc", error);
}

static bool healthy(gpointer self, GError **error) {
    return true;
}

void exec_cuda_standin_open(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm) {
    Standin *standin = g_new(Standin, 1);
    *standin = (Standin){plan, comm->rank};
    *ret_comm = (ExecCudaComm){.name = g_strdup("stand-ins, as long as the network model says"),
                               .self = standin,
                               .run = run,
                               .healthy = healthy,
                               .close = g_free};
}
