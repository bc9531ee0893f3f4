/* exec/cuda/ops/rotation.c - rotary embedding, as exec/host/rotation.c has it. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/heads.h"
#include "kernels/cuda/rope.h"

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

KernelCudaFault exec_cuda_rotation(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_at(t, 0);
    switch ((ExecRotationOp)t->op->kind) {
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
    }
    g_assert_not_reached();
}
