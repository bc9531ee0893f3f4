/* exec/cuda/ops/heads.c - attention with its scores in memory, as exec/host/heads.c has it. */
#include "kernels/cuda/attention/heads.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/products/matmul.h"
#include "kernels/cuda/ranks/ring.h"
#include "kernels/cuda/sinks.h"

/* Where the matrix of one head begins, and how its rows follow each other (plan/op/ops.def). */
static KernelCudaMatrices matrices(const ExecTask *t, PlanSlotNumber i, size_t r, size_t c,
                                   unsigned layout, size_t stride) {
    size_t heads = dim(t, HEADS_MATMUL_HEADS), rows = layout & 1 ? c : r, cols = layout & 1 ? r : c;
    bool inside = layout & 2;
    size_t row = layout & (2 | 4) ? stride : cols;
    return (KernelCudaMatrices){.data = t->pointers[i],
                                .batch_stride = inside ? rows * stride : heads * rows * row,
                                .head_stride = inside ? cols : rows * row,
                                .row_stride = row,
                                .transposed = layout & 1};
}

static KernelCudaFault heads_matmul(const ExecTask *t, KernelCuda *k) {
    size_t heads = dim(t, HEADS_MATMUL_HEADS), m = dim(t, HEADS_MATMUL_M),
           n = dim(t, HEADS_MATMUL_N), inner = dim(t, HEADS_MATMUL_K);
    return kernel_cuda_heads_matmul(
        k, matrices(t, HEADS_MATMUL_Y, m, n, (unsigned)dim(t, HEADS_MATMUL_Y_LAYOUT), heads * n),
        matrices(t, HEADS_MATMUL_A, m, inner, (unsigned)dim(t, HEADS_MATMUL_A_LAYOUT),
                 dim(t, HEADS_MATMUL_A_STRIDE)),
        matrices(t, HEADS_MATMUL_B, inner, n, (unsigned)dim(t, HEADS_MATMUL_B_LAYOUT),
                 dim(t, HEADS_MATMUL_B_STRIDE)),
        dim(t, HEADS_MATMUL_BATCH), heads, m, n, inner, type_at(t, HEADS_MATMUL_Y));
}

static KernelCudaHeads heads_of(const ExecTask *t) {
    return (KernelCudaHeads){dim(t, HEADS_COPY_BATCH), dim(t, HEADS_COPY_SEQ),
                             dim(t, HEADS_COPY_HEADS), dim(t, HEADS_COPY_DIM),
                             type_at(t, HEADS_COPY_X)};
}

/* dims: batch seq heads repeats dim apart ... */
static KernelCudaFault repeats(const ExecTask *t, KernelCuda *k) {
    KernelCudaHeads heads = {dim(t, REPEAT_HEADS_BATCH), dim(t, REPEAT_HEADS_SEQ),
                             dim(t, REPEAT_HEADS_HEADS), dim(t, REPEAT_HEADS_DIM),
                             type_at(t, REPEAT_HEADS_X)};
    bool apart = dims(t)[REPEAT_HEADS_APART] == PLAN_REPEATED_APART;
    gpointer *p = t->pointers;
    return t->op->kind == PLAN_OP_REPEAT_HEADS
               ? kernel_cuda_repeat_heads(k, p[REPEAT_HEADS_Y], p[REPEAT_HEADS_X], &heads,
                                          dim(t, REPEAT_HEADS_STRIDE), dim(t, REPEAT_HEADS_REPEATS),
                                          apart)
               : kernel_cuda_sum_heads(k, p[REPEAT_HEADS_Y], p[REPEAT_HEADS_X], &heads,
                                       dim(t, REPEAT_HEADS_REPEATS),
                                       dims(t)[REPEAT_HEADS_APART] != PLAN_REPEATED_INSIDE, apart);
}

/* Gradients that came head by head in fp32 go on in tokens' rows in the dtype of the layers. */
static KernelCudaFault heads_copy(const ExecTask *t, KernelCuda *k) {
    KernelCudaHeads heads = heads_of(t);
    if (type_at(t, HEADS_COPY_X) != type_at(t, HEADS_COPY_Y)) { /* such alone (knows.c) */
        return kernel_cuda_cast_heads(k, t->pointers[HEADS_COPY_Y], type_at(t, HEADS_COPY_Y),
                                      t->pointers[HEADS_COPY_X], type_at(t, HEADS_COPY_X),
                                      heads.batch, heads.heads, heads.seq, heads.dim);
    }
    return kernel_cuda_heads_copy(k, t->pointers[HEADS_COPY_Y], t->pointers[HEADS_COPY_X], &heads,
                                  dim(t, HEADS_COPY_STRIDE), dims(t)[HEADS_COPY_BACK] != 0);
}

static KernelCudaFault sinks(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaSinks shape = {dim(t, JOIN_SINKS_BATCH), dim(t, JOIN_SINKS_HEADS),
                             dim(t, JOIN_SINKS_ROWS), dim(t, JOIN_SINKS_COLS), type_of_first(t)};
    return t->op->kind == PLAN_OP_JOIN_SINKS
               ? kernel_cuda_join_sinks(k, p[JOIN_SINKS_Y], p[JOIN_SINKS_X], p[JOIN_SINKS_SINK],
                                        &shape)
               : kernel_cuda_sum_sinks(k, p[SUM_SINKS_Y], p[SUM_SINKS_X], &shape);
}

KernelCudaFault exec_cuda_heads(const ExecTask *t, KernelCuda *k) {
    switch ((ExecHeadsOp)t->op->kind) {
    case PLAN_OP_REPEAT_HEADS:
    case PLAN_OP_SUM_HEADS:
        return repeats(t, k);
    case PLAN_OP_HEADS_COPY:
        return heads_copy(t, k);
    case PLAN_OP_HEADS_MATMUL:
        return heads_matmul(t, k);
    case PLAN_OP_JOIN_SINKS:
    case PLAN_OP_SUM_SINKS: /* of the same dims */
        return sinks(t, k);
    }
    g_assert_not_reached();
}
