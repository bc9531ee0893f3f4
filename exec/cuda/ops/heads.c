/* exec/cuda/ops/heads.c - rotary embedding, and attention with its scores in memory, as
 * exec/host/heads.c has them. */
#include "kernels/cuda/heads.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/ring.h"
#include "kernels/cuda/rope.h"

/* ---- rotary embedding ----------------------------------------------------------------------- */

/* dims: tokens heads dim seq ... */
static KernelCudaRope rope_of(const ExecTask *t, size_t stride) {
    return (KernelCudaRope){.tokens = dim(t, 0),
                            .heads = dim(t, 1),
                            .dim = dim(t, 2),
                            .seq = dim(t, 3),
                            .stride = stride,
                            .type = type_at(t, 0),
                            .table_type = type_at(t, 1)};
}

static KernelCudaFault rope(const ExecTask *t, KernelCuda *k) {
    KernelCudaRope shape = rope_of(t, dim(t, 5));
    return kernel_cuda_rope(k, t->pointers[3], t->pointers[0], t->pointers[1], t->pointers[2],
                            &shape, dims(t)[4] != 0);
}

static KernelCudaFault turn(const ExecTask *t, KernelCuda *k) {
    KernelCudaRope shape = rope_of(t, dim(t, 4));
    return kernel_cuda_turn(k, t->pointers[2], t->pointers[0], t->pointers[1], &shape);
}

static KernelCudaFault table_mul(const ExecTask *t, KernelCuda *k, size_t stride, bool apart) {
    KernelCudaRope shape = rope_of(t, stride);
    return kernel_cuda_table_mul(k, t->pointers[2], t->pointers[0], t->pointers[1], &shape, apart);
}

/* Of heads that are longer than what is multiplied. */
static KernelCudaFault table_mul_columns(const ExecTask *t, KernelCuda *k) {
    KernelCudaRope shape = rope_of(t, dim(t, 1) * dim(t, 4));
    shape.head = dim(t, 4);
    return kernel_cuda_table_mul(k, t->pointers[2], t->pointers[0], t->pointers[1], &shape, false);
}

/* dims: rows a_cols b_cols width from */
static KernelCudaFault join_columns(const ExecTask *t, KernelCuda *k) {
    KernelCudaType type = type_at(t, 0);
    const char *b = t->pointers[1];
    KernelCudaPart one = {t->pointers[0], dim(t, 1), dim(t, 1), 1};
    KernelCudaPart other = {b + dim(t, 4) * kernel_cuda_type_bytes(type), dim(t, 2), dim(t, 3), 1};
    return kernel_cuda_join_columns(k, t->pointers[2], &one, &other, dim(t, 0), type);
}

/* ---- scores in memory ----------------------------------------------------------------------- */

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

/* ---- the switch ----------------------------------------------------------------------------- */

KernelCudaFault exec_cuda_heads(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_at(t, 0);
    switch ((ExecHeadsOp)t->op->kind) {
    case PLAN_OP_ROPE:
        return rope(t, k);
    case PLAN_OP_ROPE_TABLES:
        return exec_cuda_tables(t, k);
    case PLAN_OP_TURN_TABLE:
        return kernel_cuda_turn_table(k, p[0], dim(t, 0), dim(t, 1), attr(t, 0));
    case PLAN_OP_TURN:
        return turn(t, k);
    case PLAN_OP_CONJUGATE:
        return kernel_cuda_conjugate(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_NEGATE_HALF:
        return kernel_cuda_negate_half(k, p[1], p[0], dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 3),
                                       dim(t, 4), type);
    case PLAN_OP_JOIN_HALVES:
        return kernel_cuda_join_halves(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), dim(t, 2),
                                       dim(t, 3), type);
    case PLAN_OP_NEGATE_COLUMNS:
        return kernel_cuda_negate_columns(k, p[1], p[0], dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 3),
                                          type);
    case PLAN_OP_COPY_COLUMNS:
        return kernel_cuda_copy_columns(k, p[1], type_at(t, 1), p[0], type, dim(t, 0), dim(t, 1),
                                        dim(t, 2), dim(t, 3));
    case PLAN_OP_JOIN_COLUMNS:
        return join_columns(t, k);
    case PLAN_OP_PUT_COLUMNS:
        return kernel_cuda_put_columns(k, p[1], p[0], dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 3),
                                       dim(t, 4), dim(t, 5), type);
    case PLAN_OP_TABLE_MUL_COLUMNS:
        return table_mul_columns(t, k);
    case PLAN_OP_TABLE_MUL:
        return table_mul(t, k, dim(t, 5), false);
    case PLAN_OP_TABLE_MUL_BACKWARD:
        return table_mul(t, k, dim(t, 1) * dim(t, 2), dims(t)[4] != 0);
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
