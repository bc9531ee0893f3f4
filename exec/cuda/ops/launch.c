/* exec/cuda/ops/launch.c - see launch.h. What needs more than a kernel: data and weights that the
 * host makes and copies over, copies to and from its memory, its own steps, collectives.
 *
 * What differs between the ranks of a role is settled here, as exec/host/launch.c does: which rows
 * of a parameter are this rank's, which samples of the batch. The kernels are compute.c's.
 */
#include "exec/cuda/ops/launch.h"

#include "exec/batch.h"
#include "exec/convert.h"
#include "exec/cuda/calls.h"
#include "exec/cuda/ops/operands.h"
#include "exec/cuda/ops/traced.h"
#include "exec/cuda/pinned.h"
#include "exec/first-values.h"
#include "exec/inputs.h"
#include "exec/offload/host-step.h"
#include "exec/op-groups.h"
#include "exec/part-runs.h"
#include "exec/slices.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/random.h"

/* ---- data and construction ------------------------------------------------------------------ */

static bool batch(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    gsize elements = dim(t, BATCH_SAMPLES) * dim(t, BATCH_SAMPLE_ELEMENTS);
    bool has_y = t->pointers[BATCH_Y] != NULL;
    gsize x_bytes = elements * plan_dtype_bytes(operand_dtype(t, BATCH_X));
    gsize targets = has_y ? dim(t, BATCH_SAMPLES) * dim(t, BATCH_TARGET_ELEMENTS) : 0;
    gsize y_bytes = targets * sizeof(int64_t);
    bool narrow = operand_dtype(t, BATCH_X) == PLAN_BF16 || operand_dtype(t, BATCH_X) == PLAN_FP16;
    gsize made_bytes = narrow ? elements * sizeof(float) : x_bytes; /* vectors come as floats */
    char *made = exec_cuda_stage_get(lane->stage, made_bytes + y_bytes, error);
    if (!made || !exec_batch_fill(t, made, made + made_bytes, error)) {
        return false;
    }
    if (narrow) {
        g_autofree gpointer wide = g_memdup2(made, made_bytes);
        exec_convert(made, operand_dtype(t, BATCH_X), wide, PLAN_FP32, elements);
    }
    return exec_cuda_stage_put(lane->stage, t->pointers[BATCH_X], 0, x_bytes, lane->stream,
                               error) &&
           (!has_y || exec_cuda_stage_put(lane->stage, t->pointers[BATCH_Y], made_bytes, y_bytes,
                                          lane->stream, error));
}

enum {
    WEIGHTS_AT_ONCE = 1 << 22 /* elements read from a file, or bytes of 4 bits made, at a time */
};

/* n elements of a parameter, or of this rank's share of it, from one on. */
static void get_weights(const ExecContext *c, uint32_t parameter, uint64_t from, uint64_t n,
                        float *to) {
    for (uint64_t at = 0, some, whole; at < n; at += some) {
        some = exec_slice_run(c->plan, parameter, c->comm->rank, from + at, n - at, &whole);
        exec_weights_get(c->weights, parameter, whole, some, to + at);
    }
}

static bool load(const ExecTask *t, const ExecCudaLane *lane, const ExecSlice *slice,
                 GError **error) {
    PlanDtype dtype = operand_dtype(t, INIT_NORMAL_Y);
    gsize size = plan_dtype_bytes(dtype);
    char *to = (char *)t->pointers[INIT_NORMAL_Y] + slice->first * size;
    g_autofree float *wide = g_new(float, MIN(slice->count, WEIGHTS_AT_ONCE));
    for (uint64_t at = 0, n; at < slice->count; at += n) {
        n = MIN(slice->count - at, WEIGHTS_AT_ONCE);
        gpointer staged = exec_cuda_stage_get(lane->stage, n * size, error);
        if (!staged) {
            return false;
        }
        get_weights(t->context, slice->parameter, slice->from + at, n, wide);
        exec_convert(staged, dtype, wide, PLAN_FP32, n);
        if (!exec_cuda_stage_put(lane->stage, to + at * size, 0, n * size, lane->stream, error)) {
            return false;
        }
    }
    return true;
}

/* Numbers of a parameter by their place in the whole, so a rank's share of its columns takes a
 * launch a row. */
static bool draw(const ExecTask *t, const ExecCudaLane *lane, const ExecSlice *slice,
                 GError **error) {
    const ExecContext *c = t->context;
    KernelCudaType type = type_at(t, INIT_NORMAL_Y);
    char *to = (char *)t->pointers[INIT_NORMAL_Y] + slice->first * kernel_cuda_type_bytes(type);
    for (uint64_t at = 0, n, from; at < slice->count; at += n) {
        n = exec_slice_run(c->plan, slice->parameter, c->comm->rank, slice->from + at,
                           slice->count - at, &from);
        KernelCudaRandom random = {c->seed, slice->parameter, from};
        if (!exec_cuda_kernel_ok(
                kernel_cuda_philox_normal(lane->kernels, to + at * kernel_cuda_type_bytes(type), n,
                                          random, 0, (float)attr(t, INIT_NORMAL_STD), type),
                error)) {
            return false;
        }
    }
    return true;
}

/* Bytes of a parameter in 4 bits are the host's. */
static bool init_nibbles(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    const ExecContext *c = t->context;
    ExecSlice slice = exec_slice_of(c->plan, c->role, t->op, c->comm->rank);
    char *to = (char *)t->pointers[INIT_NIBBLES_NIBBLES] + slice.first;
    for (uint64_t at = 0, n; at < slice.count; at += n) {
        n = MIN(slice.count - at, WEIGHTS_AT_ONCE);
        gpointer staged = exec_cuda_stage_get(lane->stage, n, error);
        if (!staged) {
            return false;
        }
        exec_first_nibbles(t, slice.from + at, n, staged);
        if (!exec_cuda_stage_put(lane->stage, to + at, 0, n, lane->stream, error)) {
            return false;
        }
    }
    return true;
}

/* Element i of a parameter is the same on whichever rank it lies. */
static bool init(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    const ExecContext *c = t->context;
    ExecSlice slice = exec_slice_of(c->plan, c->role, t->op, c->comm->rank);
    if (c->weights) {
        return load(t, lane, &slice, error);
    }
    if (t->op->kind == PLAN_OP_INIT_NORMAL) {
        return draw(t, lane, &slice, error);
    }
    KernelCudaType type = type_at(t, INIT_NORMAL_Y);
    gpointer to = (char *)t->pointers[INIT_NORMAL_Y] + slice.first * kernel_cuda_type_bytes(type);
    return exec_cuda_kernel_ok(
        kernel_cuda_fill(lane->kernels, to, slice.count, attr(t, INIT_FILL_VALUE), type), error);
}

/* ---- the host's memory ---------------------------------------------------------------------- */

static gpointer get_pinned(gsize bytes, GError **error) {
    return exec_cuda_ok(cudaDeviceSynchronize(), "cudaDeviceSynchronize", error)
               ? exec_cuda_pinned_new(bytes, "an offloaded tensor", error)
               : NULL;
}

const ExecSlotMemory exec_cuda_slot_memory = {get_pinned, exec_cuda_pinned_free};

static bool between(const ExecTask *t, const ExecCudaLane *lane, bool to_host, GError **error) {
    gsize bytes = dim(t, TO_HOST_N) * plan_dtype_bytes(operand_dtype(t, TO_HOST_X));
    gpointer there =
        exec_slots_at(t->context->slots, (uint32_t)dim(t, TO_HOST_SLOT), dim(t, TO_HOST_N), error);
    gpointer here = t->pointers[TO_HOST_X];
    return there &&
           exec_cuda_ok(
               to_host ? cudaMemcpyAsync(there, here, bytes, cudaMemcpyDeviceToHost, lane->stream)
                       : cudaMemcpyAsync(here, there, bytes, cudaMemcpyHostToDevice, lane->stream),
               "cudaMemcpyAsync", error);
}

/* ---- attention ------------------------------------------------------------------------------ */

/* Without dropout the state of its random numbers is never read; it is zero, not rubbish. */
static bool zero_random_state(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    unsigned n = t->op->n_operands; /* its last two */
    for (unsigned i = n - 2; i < n; i++) {
        if (!exec_cuda_ok(cudaMemsetAsync(t->pointers[i], 0,
                                          operand(t, i).elements * sizeof(int64_t), lane->stream),
                          "cudaMemsetAsync", error)) {
            return false;
        }
    }
    return true;
}

static bool attention(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    return exec_cuda_kernel_ok(exec_cuda_compute(t, lane->kernels), error) &&
           zero_random_state(t, lane, error);
}

/* ---- what a router has chosen --------------------------------------------------------------- */

/* The host is told how many rows go to each rank, as PyTorch's is; that they are as many, which is
 * what the plan has room for, is looked at on the device. */
static bool splits_to_host(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    gsize bytes = dim(t, SPLITS_TO_HOST_N) * sizeof(int64_t);
    gpointer there = exec_slots_at(t->context->slots, (uint32_t)dim(t, SPLITS_TO_HOST_SLOT),
                                   bytes / plan_dtype_bytes(PLAN_FP32), error);
    return there && exec_cuda_kernel_ok(exec_cuda_compute(t, lane->kernels), error) &&
           exec_cuda_ok(cudaMemcpyAsync(there, t->pointers[SPLITS_TO_HOST_POSITION], bytes,
                                        cudaMemcpyDeviceToHost, lane->stream),
                        "cudaMemcpyAsync", error);
}

/* ---- what deterministic algorithms fill ----------------------------------------------------- */

static bool fill_empty(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    gsize bytes = dim(t, FILL_EMPTY_N) * plan_dtype_bytes(operand_dtype(t, FILL_EMPTY_Y));
    return exec_cuda_ok(cudaMemsetAsync(t->pointers[FILL_EMPTY_Y], 0xff, bytes, lane->stream),
                        "cudaMemsetAsync", error);
}

/* ---- the switch ----------------------------------------------------------------------------- */

/* What is summed is divided first, where it lies: it is not looked at again. */
static bool divide(const ExecTask *t, const ExecCudaLane *lane, double by, GError **error) {
    return exec_cuda_kernel_ok(
        kernel_cuda_scale(lane->kernels, t->pointers[REDUCE_SCATTER_PACKED],
                          type_at(t, REDUCE_SCATTER_PACKED), t->pointers[REDUCE_SCATTER_PACKED],
                          type_at(t, REDUCE_SCATTER_PACKED), dim(t, COLLECTIVE_ELEMENTS), 1 / by),
        error);
}

static bool collective(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    bool in_place = t->op->n_operands == 1;
    double reduction = attr(t, COLLECTIVE_AVERAGE);
    if (reduction < 0 && !divide(t, lane, -reduction, error)) {
        return false;
    }
    ExecCudaCall call = {.kind = (PlanOpKind)t->op->kind,
                         .axis = (PlanAxis)t->op->axis,
                         .dtype = (PlanDtype)t->op->dtype,
                         .reduction = (PlanReduction)MAX(reduction, 0),
                         .elements = dim(t, COLLECTIVE_ELEMENTS),
                         .in = t->pointers[0],
                         .out = in_place ? t->pointers[0] : t->pointers[1],
                         .kernels = lane->kernels,
                         .paced = lane->paced};
    return lane->comm->run(lane->comm->self, &call, lane->stream, error);
}

/* A swap's part is taken where it is given, so what is given is put aside first, as it would be in
 * symmetric memory. A pull's stays as it is until all have taken it. */
static bool put_aside(const ExecTask *t, const ExecCudaLane *lane, gpointer *given,
                      GError **error) {
    gsize bytes = dim(t, COLLECTIVE_ELEMENTS) * plan_dtype_bytes((PlanDtype)t->op->dtype);
    gpointer from = *given;
    return exec_cuda_kernel_ok(kernel_cuda_callers_scratch(lane->kernels, bytes, given), error) &&
           exec_cuda_ok(
               cudaMemcpyAsync(*given, from, bytes, cudaMemcpyDeviceToDevice, lane->stream),
               "cudaMemcpyAsync", error);
}

static bool of_peers(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    PlanOpKind kind = (PlanOpKind)t->op->kind;
    uint32_t n = t->op->n_operands; /* a barrier has none */
    gpointer given = n ? t->pointers[0] : NULL, taken = n ? t->pointers[n - 1] : NULL;
    if (kind == PLAN_OP_SWAP && !put_aside(t, lane, &given, error)) {
        return false;
    }
    ExecCudaCall call = {.kind = kind == PLAN_OP_SWAP ? PLAN_OP_PULL : kind,
                         .axis = (PlanAxis)t->op->axis,
                         .dtype = (PlanDtype)t->op->dtype,
                         .elements = dim(t, COLLECTIVE_ELEMENTS),
                         .in = given,
                         .out = taken,
                         .ahead = (uint32_t)dim(t, PEER_COLLECTIVE_AHEAD),
                         .kernels = lane->kernels,
                         .paced = lane->paced};
    return lane->comm->run(lane->comm->self, &call, lane->stream, error);
}

static bool talk(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    ExecTalk talk = talk_of(t);
    ExecCudaCall call = {.kind = (PlanOpKind)t->op->kind,
                         .axis = PLAN_AXIS_PIPELINE,
                         .dtype = talk.dtype,
                         .elements = talk.elements,
                         .in = talk.given,
                         .out = talk.taken,
                         .peer = talk.peer,
                         .behind = talk.behind,
                         .kernels = lane->kernels,
                         .paced = lane->paced};
    return lane->comm->run(lane->comm->self, &call, lane->stream, error);
}

/* Numbers of a byte are no type of the kernels. */
static bool copy_bytes(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    return exec_cuda_ok(cudaMemcpyAsync(t->pointers[COPY_Y], t->pointers[COPY_X], dim(t, COPY_N),
                                        cudaMemcpyDeviceToDevice, lane->stream),
                        "cudaMemcpyAsync", error);
}

static bool compute(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    if (t->op->kind == PLAN_OP_COPY && plan_dtype_bytes(operand_dtype(t, COPY_X)) == 1) {
        return copy_bytes(t, lane, error);
    }
    switch (t->op->kind) {
    case PLAN_OP_ATTENTION:
    case PLAN_OP_ATTENTION_PART:
    case PLAN_OP_LATENT_ATTENTION:
        return attention(t, lane, error);
    case PLAN_OP_SPLITS_TO_HOST:
        return splits_to_host(t, lane, error);
    default:
        return exec_cuda_kernel_ok(exec_cuda_compute(t, lane->kernels), error);
    }
}

static bool launch_parts(const ExecTask *t, uint64_t runs, const ExecCudaLane *lane,
                         GError **error) {
    for (uint64_t i = 0; i < runs; i++) {
        ExecPartRun part;
        exec_part_run(t, i, &part);
        if (!exec_cuda_launch(&part.task, lane, error)) {
            return false;
        }
    }
    return true;
}

bool exec_cuda_launch(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    uint64_t runs = exec_part_runs(t->context->role, t->op);
    if (runs > 1) {
        return launch_parts(t, runs, lane, error);
    }
    if (exec_inputs_filled_by(t->context, t->op)) {
        return exec_cuda_fill_input(t, lane, error);
    }
    if (exec_op_group((PlanOpKind)t->op->kind) != EXEC_GROUP_LAUNCH) {
        return compute(t, lane, error);
    }
    switch ((ExecLaunchOp)t->op->kind) {
    case PLAN_OP_BATCH:
        return batch(t, lane, error);
    case PLAN_OP_INIT_NORMAL:
    case PLAN_OP_INIT_FILL:
        return init(t, lane, error);
    case PLAN_OP_INIT_NIBBLES:
        return init_nibbles(t, lane, error);
#define TRACED_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_traced_launch(t, lane, error);
    case PLAN_OP_FILL_EMPTY:
        return fill_empty(t, lane, error);
    case PLAN_OP_TO_HOST:
        return between(t, lane, true, error);
    case PLAN_OP_FROM_HOST:
        return between(t, lane, false, error);
#define HOST_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_host_step(t, error);
    case PLAN_OP_ALL_GATHER:
    case PLAN_OP_REDUCE_SCATTER:
    case PLAN_OP_ALL_REDUCE:
    case PLAN_OP_BROADCAST:
    case PLAN_OP_PASS_ON:
    case PLAN_OP_ALL_TO_ALL:
        return collective(t, lane, error);
    case PLAN_OP_SEND:
    case PLAN_OP_RECEIVE:
    case PLAN_OP_EXCHANGE:
        return talk(t, lane, error);
    case PLAN_OP_BARRIER:
    case PLAN_OP_OFFER:
    case PLAN_OP_PULL:
    case PLAN_OP_SWAP:
        return of_peers(t, lane, error);
    case PLAN_OP_UNEVEN_ALL_TO_ALL: /* exec_play_fits() refuses it */
        break;
    }
    g_assert_not_reached();
}
