/* exec/cuda/ops/rotation.c - rotary embedding, as exec/host/rotation.c has it. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/attention/columns.h"
#include "kernels/cuda/attention/heads.h"
#include "kernels/cuda/attention/rope.h"
#include "kernels/cuda/sinks.h"

/* All kinds have dims that begin as TURN's do, and a table as their second operand. */
static KernelCudaRope rope_of(const ExecTask *t, size_t stride) {
    return (KernelCudaRope){.tokens = dim(t, TURN_TOKENS),
                            .heads = dim(t, TURN_HEADS),
                            .dim = dim(t, TURN_DIM),
                            .seq = dim(t, TURN_SEQ),
                            .stride = stride,
                            .type = type_at(t, TURN_X),
                            .table_type = type_at(t, TURN_TURNS)};
}

static KernelCudaFault rope(const ExecTask *t, KernelCuda *k) {
    KernelCudaRope shape = rope_of(t, dim(t, ROPE_STRIDE));
    return kernel_cuda_rope(k, t->pointers[ROPE_Y], t->pointers[ROPE_X], t->pointers[ROPE_COS],
                            t->pointers[ROPE_SIN], &shape, dims(t)[ROPE_BACK] != 0);
}

static KernelCudaFault turn(const ExecTask *t, KernelCuda *k) {
    KernelCudaRope shape = rope_of(t, dim(t, TURN_STRIDE));
    return kernel_cuda_turn(k, t->pointers[TURN_Y], t->pointers[TURN_X], t->pointers[TURN_TURNS],
                            &shape);
}

/* Where the product differs from its factor in type it is in fp32 (knows.c). */
static KernelCudaRope product_of(const ExecTask *t, size_t stride) {
    KernelCudaRope shape = rope_of(t, stride);
    shape.wide = type_at(t, TABLE_MUL_Y) != type_at(t, TABLE_MUL_X);
    return shape;
}

/* And its backward, likewise. */
static KernelCudaFault table_mul(const ExecTask *t, KernelCuda *k, size_t stride, bool apart) {
    KernelCudaRope shape = product_of(t, stride);
    return kernel_cuda_table_mul(k, t->pointers[TABLE_MUL_Y], t->pointers[TABLE_MUL_X],
                                 t->pointers[TABLE_MUL_TABLE], &shape, apart);
}

/* The same where only a part of each head is multiplied. */
static KernelCudaFault table_mul_columns(const ExecTask *t, KernelCuda *k) {
    KernelCudaRope shape =
        product_of(t, dim(t, TABLE_MUL_COLUMNS_HEADS) * dim(t, TABLE_MUL_COLUMNS_WIDTH));
    shape.head = dim(t, TABLE_MUL_COLUMNS_WIDTH);
    return kernel_cuda_table_mul(k, t->pointers[TABLE_MUL_COLUMNS_Y],
                                 t->pointers[TABLE_MUL_COLUMNS_X],
                                 t->pointers[TABLE_MUL_COLUMNS_TABLE], &shape, false);
}

static KernelCudaFault times_columns(const ExecTask *t, KernelCuda *k) {
    KernelCudaChosen chosen = {dim(t, TIMES_COLUMNS_ROWS), dim(t, TIMES_COLUMNS_COLS),
                               dim(t, TIMES_COLUMNS_WIDTH), dim(t, TIMES_COLUMNS_FROM),
                               type_at(t, TIMES_COLUMNS_X)};
    return kernel_cuda_times_columns(k, t->pointers[TIMES_COLUMNS_Y], t->pointers[TIMES_COLUMNS_X],
                                     &chosen, (float)attr(t, TIMES_COLUMNS_NUMBER));
}

static KernelCudaFault join_columns(const ExecTask *t, KernelCuda *k) {
    KernelCudaType b_type = type_at(t, JOIN_COLUMNS_B);
    const char *b = t->pointers[JOIN_COLUMNS_B];
    KernelCudaPart one = {t->pointers[JOIN_COLUMNS_A], dim(t, JOIN_COLUMNS_A_COLS),
                          dim(t, JOIN_COLUMNS_A_COLS), 1};
    KernelCudaPart other = {b + dim(t, JOIN_COLUMNS_FROM) * kernel_cuda_type_bytes(b_type),
                            dim(t, JOIN_COLUMNS_B_COLS), dim(t, JOIN_COLUMNS_WIDTH), 1};
    return kernel_cuda_join_columns(k, t->pointers[JOIN_COLUMNS_Y], &one, &other, b_type,
                                    dim(t, JOIN_COLUMNS_ROWS), type_at(t, JOIN_COLUMNS_A));
}

KernelCudaFault exec_cuda_rotation(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_of_first(t);
    switch ((ExecRotationOp)t->op->kind) {
    case PLAN_OP_ROPE:
        return rope(t, k);
    case PLAN_OP_ROPE_TABLES:
        return exec_cuda_tables(t, k);
    case PLAN_OP_TURN_TABLE:
        return kernel_cuda_turn_table(k, p[TURN_TABLE_TURNS], dim(t, TURN_TABLE_SEQ),
                                      dim(t, TURN_TABLE_DIM), attr(t, TURN_TABLE_BASE));
    case PLAN_OP_TURN:
        return turn(t, k);
    case PLAN_OP_CONJUGATE:
        return kernel_cuda_conjugate(k, p[CONJUGATE_Y], p[CONJUGATE_TURNS], dim(t, CONJUGATE_N));
    case PLAN_OP_NEGATE_HALF:
        return kernel_cuda_negate_half(k, p[NEGATE_HALF_Y], p[NEGATE_HALF_X],
                                       dim(t, NEGATE_HALF_ROWS), dim(t, NEGATE_HALF_HALF),
                                       dim(t, NEGATE_HALF_FROM), dim(t, NEGATE_HALF_HEADS),
                                       dim(t, NEGATE_HALF_STRIDE), type);
    case PLAN_OP_JOIN_HALVES:
        return kernel_cuda_join_halves(k, p[JOIN_HALVES_Y], p[JOIN_HALVES_LOWER], p[JOIN_HALVES_X],
                                       dim(t, JOIN_HALVES_ROWS), dim(t, JOIN_HALVES_HALF),
                                       dim(t, JOIN_HALVES_HEADS), dim(t, JOIN_HALVES_STRIDE), type);
    case PLAN_OP_NEGATE_COLUMNS:
        return kernel_cuda_negate_columns(k, p[NEGATE_COLUMNS_Y], p[NEGATE_COLUMNS_X],
                                          dim(t, NEGATE_COLUMNS_ROWS), dim(t, NEGATE_COLUMNS_COLS),
                                          dim(t, NEGATE_COLUMNS_WIDTH), dim(t, NEGATE_COLUMNS_FROM),
                                          type);
    case PLAN_OP_COPY_COLUMNS:
        return kernel_cuda_copy_columns(k, p[COPY_COLUMNS_Y], type_at(t, COPY_COLUMNS_Y),
                                        p[COPY_COLUMNS_X], type, dim(t, COPY_COLUMNS_ROWS),
                                        dim(t, COPY_COLUMNS_COLS), dim(t, COPY_COLUMNS_WIDTH),
                                        dim(t, COPY_COLUMNS_FROM));
    case PLAN_OP_JOIN_COLUMNS:
        return join_columns(t, k);
    case PLAN_OP_PUT_COLUMNS:
        return kernel_cuda_put_columns(k, p[PUT_COLUMNS_Y], p[PUT_COLUMNS_X],
                                       dim(t, PUT_COLUMNS_ROWS), dim(t, PUT_COLUMNS_COLS),
                                       dim(t, PUT_COLUMNS_WIDTH), dim(t, PUT_COLUMNS_FROM),
                                       dim(t, PUT_COLUMNS_TO), dim(t, PUT_COLUMNS_TOTAL), type);
    case PLAN_OP_TABLE_MUL_COLUMNS:
    case PLAN_OP_TABLE_MUL_PART: /* of dims that begin alike */
        return table_mul_columns(t, k);
    case PLAN_OP_TIMES_COLUMNS:
        return times_columns(t, k);
    case PLAN_OP_TABLE_MUL:
        return table_mul(t, k, dim(t, TABLE_MUL_STRIDE), false);
    case PLAN_OP_TABLE_MUL_BACKWARD:
        return table_mul(t, k, dim(t, TABLE_MUL_BACKWARD_HEADS) * dim(t, TABLE_MUL_BACKWARD_DIM),
                         dims(t)[TABLE_MUL_BACKWARD_APART] != 0);
    }
    g_assert_not_reached();
}
