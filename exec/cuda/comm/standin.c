/* exec/cuda/comm/standin.c - collectives of one GPU that rehearses one rank of many.
 *
 * Each is one kernel (kernels/cuda/ranks/standin.h) of as many blocks as the prediction says that
 * NCCL has channels, and lasts as long as the network model says (the table of exec/pace.h). What
 * the others would send is taken from a table of random numbers, as exec/comm/rehearse.h has it.
 * What it does not do: a ring reads again what it passes on, and NCCL's kernels hold more
 * registers.
 *
 * Owns: the table, 2 MiB of the GPU's memory. Borrows: the plan. Threads: the host's.
 */
#include "kernels/cuda/ranks/standin.h"
#include "exec/comm/rehearse.h"
#include "exec/cuda/calls.h"
#include "exec/cuda/comm/comm.h"
#include "plan/mesh.h"

G_STATIC_ASSERT(EXEC_REHEARSE_NUMBERS == KERNEL_CUDA_STAND_IN_NUMBERS);

typedef struct {
    const Plan *plan;
    uint32_t rank;
    uint64_t calls[PLAN_N_AXES];
    uint64_t talks[2][2];         /* with the stage before or behind, exchanges or not */
    void *numbers[PLAN_N_DTYPES]; /* of each dtype that others send */
} Standin;

static KernelCudaStandInKind kind_of(const ExecCudaCall *call) {
    switch (call->kind) {
    case PLAN_OP_ALL_GATHER:
    case PLAN_OP_ALL_TO_ALL: /* what this rank keeps of its own lies where it is taken */
        return KERNEL_CUDA_STAND_IN_GATHER;
    case PLAN_OP_REDUCE_SCATTER:
        return KERNEL_CUDA_STAND_IN_SCATTER;
    case PLAN_OP_ALL_REDUCE:
        return KERNEL_CUDA_STAND_IN_REDUCE;
    case PLAN_OP_RECEIVE: /* of which no slice is the own */
        return KERNEL_CUDA_STAND_IN_GATHER;
    case PLAN_OP_SEND: /* what is given is read, and what is taken written */
    case PLAN_OP_PASS_ON:
    case PLAN_OP_PULL:
    case PLAN_OP_EXCHANGE:
        return KERNEL_CUDA_STAND_IN_SCATTER;
    default: /* a broadcast: what the first rank has is what this one has */
        return KERNEL_CUDA_STAND_IN_NOTHING;
    }
}

/* How many elements of the whole are the rank's own, or are left to it. */
static uint64_t slice_of(const ExecCudaCall *call, uint32_t ranks) {
    bool is_whole = call->kind == PLAN_OP_EXCHANGE || call->kind == PLAN_OP_PASS_ON ||
                    call->kind == PLAN_OP_PULL;
    return is_whole                           ? call->elements
           : plan_op_is_of_stages(call->kind) ? 0
                                              : call->elements / ranks;
}

/* As exec/comm/rehearse.c counts. */
static uint64_t number_of(Standin *standin, const ExecCudaCall *call) {
    uint32_t place = plan_rank_on_axis(standin->plan, standin->rank, call->axis);
    return plan_op_is_of_stages(call->kind)
               ? standin->talks[call->peer > place][call->kind == PLAN_OP_EXCHANGE]++
               : standin->calls[call->axis]++;
}

static bool run_idle(const ExecCudaCall *call, GError **error) {
    KernelCudaStandIn idle = {.kind = KERNEL_CUDA_STAND_IN_NOTHING,
                              .type = KERNEL_CUDA_F32,
                              .factor = 1,
                              .blocks = call->paced.channels,
                              .least_ns = call->paced.least_ns};
    return exec_cuda_kernel_ok(kernel_cuda_stand_in(call->kernels, &idle), error);
}

/* Whole numbers say how many rows come: as many as are sent. */
static bool run_whole(const ExecCudaCall *call, cudaStream_t stream, GError **error) {
    return exec_cuda_ok(cudaMemcpyAsync(call->out, call->in, exec_cuda_call_out_bytes(call, 1),
                                        cudaMemcpyDeviceToDevice, stream),
                        "cudaMemcpyAsync", error) &&
           run_idle(call, error);
}

/* Numbers of a byte, or parts of several dtypes; the table is of such, too. */
static bool is_of_bytes(PlanDtype dtype) {
    return dtype == PLAN_UINT8 || dtype == PLAN_E4M3 || dtype == PLAN_E5M2;
}

static bool run(gpointer self, const ExecCudaCall *call, cudaStream_t stream, GError **error) {
    Standin *standin = self;
    uint32_t ranks = standin->plan->axes[call->axis];
    uint64_t slice = slice_of(call, ranks);
    uint64_t first = plan_rank_on_axis(standin->plan, standin->rank, call->axis) * slice;
    bool swaps = call->kind == PLAN_OP_ALL_TO_ALL;
    if (swaps && call->dtype == PLAN_INT64) {
        return run_whole(call, stream, error);
    }
    if (exec_cuda_call_is_idle(call)) { /* it lasts, and leaves what is there */
        return run_idle(call, error);
    }
    if (call->dtype == PLAN_FP64) { /* largest numbers: others have the same */
        return run_idle(call, error);
    }
    bool is_bytes = is_of_bytes(call->dtype);
    KernelCudaStandIn stand_in = {
        .kind = kind_of(call),
        .type = is_bytes ? KERNEL_CUDA_F32 : (KernelCudaType)call->dtype,
        .is_bytes = is_bytes,
        .elements = call->elements,
        .first = first,
        .slice = slice,
        .in = swaps ? (const char *)call->in + first * plan_dtype_bytes(call->dtype) : call->in,
        .out = call->out,
        .numbers = standin->numbers[call->dtype],
        .from = exec_rehearse_from(call->axis, number_of(standin, call)) & ~UINT64_C(15),
        .factor =
            call->reduction == PLAN_REDUCTION_SUM ? (float)ranks : 1, /* others have the same */
        .blocks = call->paced.channels,
        .least_ns = call->paced.least_ns,
    };
    return exec_cuda_kernel_ok(kernel_cuda_stand_in(call->kernels, &stand_in), error);
}

static bool healthy(gpointer self, GError **error) {
    return true;
}

static void close_standin(gpointer self) {
    Standin *standin = self;
    for (PlanDtype dtype = PLAN_FP32; dtype < PLAN_N_DTYPES; dtype++) {
        cudaFree(standin->numbers[dtype]);
    }
    g_free(standin);
}

static bool make_numbers(Standin *standin, GError **error) {
    for (PlanDtype dtype = PLAN_FP32; dtype < PLAN_N_DTYPES; dtype++) {
        if (dtype > PLAN_FP16 && !is_of_bytes(dtype)) {
            continue;
        }
        gsize bytes = EXEC_REHEARSE_NUMBERS * plan_dtype_bytes(dtype);
        g_autofree void *numbers = exec_rehearse_numbers(dtype);
        if (!exec_cuda_ok(cudaMalloc(&standin->numbers[dtype], bytes), "cudaMalloc", error) ||
            !exec_cuda_ok(
                cudaMemcpy(standin->numbers[dtype], numbers, bytes, cudaMemcpyHostToDevice),
                "cudaMemcpy", error)) {
            return false;
        }
    }
    /* The copies alone do not promise that lanes, which do not wait for them, find all there. */
    return exec_cuda_ok(cudaDeviceSynchronize(), "cudaDeviceSynchronize", error);
}

bool exec_cuda_standin_open(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm,
                            GError **error) {
    Standin *standin = g_new0(Standin, 1);
    *standin = (Standin){.plan = plan, .rank = comm->rank};
    if (!make_numbers(standin, error)) {
        close_standin(standin);
        return false;
    }
    *ret_comm = (ExecCudaComm){.name = g_strdup("stand-ins, as long as the network model says, on "
                                                "as many multiprocessors as NCCL has channels"),
                               .self = standin,
                               .run = run,
                               .healthy = healthy,
                               .close = close_standin};
    return true;
}
