/* exec/cuda/ops/heads.c - attention with its scores in memory, as exec/host/heads.c has it. */
#include "kernels/cuda/heads.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/ring.h"

/* Where the matrix of one head begins, and how its rows follow each other (plan/op/ops.def). */
static KernelCudaMatrices matrices(const ExecTask *t, unsigned i, size_t r, size_t c,
                                   unsigned layout, size_t stride) {
    size_t heads = dim(t, 1), rows = layout & 1 ? c : r, cols = layout & 1 ? r : c;
    bool inside = layout & 2;
    return (KernelCudaMatrices){.data = t->pointers[i],
                                .batch_stride = inside ? rows * stride : heads * rows * cols,
                                .head_stride = inside ? cols : rows * cols,
                                .row_stride = inside ? stride : cols,
                                .transposed = layout & 1};
}

static KernelCudaFault heads_matmul(const ExecTask *t, KernelCuda *k) {
    size_t heads = dim(t, 1), m = dim(t, 2), n = dim(t, 3), inner = dim(t, 4);
    return kernel_cuda_heads_matmul(k, matrices(t, 2, m, n, (unsigned)dim(t, 7), heads * n),
                                    matrices(t, 0, m, inner, (unsigned)dim(t, 5), dim(t, 8)),
                                    matrices(t, 1, inner, n, (unsigned)dim(t, 6), dim(t, 9)),
                                    dim(t, 0), heads, m, n, inner, type_at(t, 2));
}

static KernelCudaHeads heads_of(const ExecTask *t) {
    return (KernelCudaHeads){dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 3), type_at(t, 0)};
}

/* dims: batch seq heads repeats dim apart ... */
static KernelCudaFault repeats(const ExecTask *t, KernelCuda *k) {
    KernelCudaHeads heads = {dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 4), type_at(t, 0)};
    bool apart = dims(t)[5] == PLAN_REPEATED_APART;
    gpointer *p = t->pointers;
    return t->op->kind == PLAN_OP_REPEAT_HEADS
               ? kernel_cuda_repeat_heads(k, p[1], p[0], &heads, dim(t, 6), dim(t, 3), apart)
               : kernel_cuda_sum_heads(k, p[1], p[0], &heads, dim(t, 3),
                                       dims(t)[5] != PLAN_REPEATED_INSIDE, apart);
}

/* Gradients that came head by head in fp32 go on in tokens' rows in the dtype of the layers. */
static KernelCudaFault heads_copy(const ExecTask *t, KernelCuda *k) {
    KernelCudaHeads heads = heads_of(t);
    if (type_at(t, 0) != type_at(t, 1)) { /* such alone (knows.c) */
        return kernel_cuda_cast_heads(k, t->pointers[1], type_at(t, 1), t->pointers[0],
                                      type_at(t, 0), heads.batch, heads.heads, heads.seq,
                                      heads.dim);
    }
    return kernel_cuda_heads_copy(k, t->pointers[1], t->pointers[0], &heads, dim(t, 4),
                                  dims(t)[5] != 0);
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
    }
    g_assert_not_reached();
}
