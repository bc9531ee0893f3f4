/* exec/host/rotation.c - rotary embedding, as it is written in Python, op by op, or by one kernel.
 * Layouts are those of plan/op/ops.def. A row is one head of one token.
 */
#include "exec/host/ops.h"

#include "exec/host/fused.h"
#include "exec/task.h"
#include "kernels/host/copy.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/rope.h"

/* Where a head of x begins, which may be a part of rows that are longer. */
static size_t head_in_row(size_t row, size_t heads, size_t stride, size_t head_dim) {
    return row / heads * stride + row % heads * head_dim;
}

static void negate_half(const ExecTask *t) {
    size_t rows = dim(t, 0), half = dim(t, 1), from = dim(t, 2);
    for (size_t r = 0; r < rows; r++) {
        size_t at = head_in_row(r, dim(t, 3), dim(t, 4), 2 * half);
        kernel_scale_f32(f32(t, 1) + r * half, f32(t, 0) + at + from, -1, half);
    }
}

static void join_halves(const ExecTask *t) {
    size_t rows = dim(t, 0), half = dim(t, 1);
    for (size_t r = 0; r < rows; r++) {
        float *to = f32(t, 2) + r * 2 * half;
        kernel_copy_f32(to, f32(t, 0) + r * half, half);
        kernel_copy_f32(to + half, f32(t, 1) + head_in_row(r, dim(t, 2), dim(t, 3), 2 * half),
                        half);
    }
}

static void negate_columns(const ExecTask *t) {
    size_t cols = dim(t, 1);
    for (size_t row = 0; row < dim(t, 0); row++) {
        kernel_scale_f32(f32(t, 1) + row * cols, f32(t, 0) + row * dim(t, 2) + dim(t, 3), -1, cols);
    }
}

static void join_columns(const ExecTask *t) {
    size_t rows = dim(t, 0), a = dim(t, 1) * sizeof(float), b = dim(t, 2) * sizeof(float);
    kernel_copy_2d_bytes(t->pointers[2], a + b, t->pointers[0], a, rows, a);
    kernel_copy_2d_bytes((char *)t->pointers[2] + a, a + b, f32(t, 1) + dim(t, 4),
                         dim(t, 3) * sizeof(float), rows, b);
}

static void put_columns(const ExecTask *t) {
    size_t rows = dim(t, 0), total = dim(t, 5);
    kernel_zero_f32(f32(t, 1), rows * total);
    kernel_copy_2d_bytes(f32(t, 1) + dim(t, 4), total * sizeof(float), f32(t, 0) + dim(t, 3),
                         dim(t, 2) * sizeof(float), rows, dim(t, 1) * sizeof(float));
}

static void table_mul_columns(const ExecTask *t) {
    size_t heads = dim(t, 1), n = dim(t, 2), seq = dim(t, 3);
    for (size_t row = 0; row < dim(t, 0) * heads; row++) {
        kernel_mul_f32(f32(t, 2) + row * n, f32(t, 0) + row * dim(t, 4),
                       f32(t, 1) + row / heads % seq * n, n);
    }
}

static void turn(const ExecTask *t) {
    size_t heads = dim(t, 1), head_dim = dim(t, 2), seq = dim(t, 3), row = heads * head_dim;
    KernelView y = {f32(t, 2), seq * row, row, head_dim};
    KernelConstView x = {f32(t, 0), seq * dim(t, 4), dim(t, 4), head_dim};
    kernel_turn_f32(y, x, f32(t, 1), dim(t, 0) / seq, heads, seq, head_dim);
}

static void table_mul(const ExecTask *t) {
    size_t tokens = dim(t, 0), heads = dim(t, 1), n = dim(t, 2), seq = dim(t, 3);
    for (size_t row = 0; row < tokens * heads; row++) {
        kernel_mul_f32(f32(t, 2) + row * n, f32(t, 0) + head_in_row(row, heads, dim(t, 5), n),
                       f32(t, 1) + row / heads % seq * n, n);
    }
}

static void table_mul_backward(const ExecTask *t) {
    size_t tokens = dim(t, 0), heads = dim(t, 1), n = dim(t, 2), seq = dim(t, 3);
    bool apart = dims(t)[4];
    for (size_t row = 0; row < tokens * heads; row++) {
        size_t position = (apart ? row : row / heads) % seq;
        kernel_mul_f32(f32(t, 2) + row * n, f32(t, 0) + row * n, f32(t, 1) + position * n, n);
    }
}

static void tables(const ExecTask *t) {
    if (t->context->plan->axes[PLAN_AXIS_CONTEXT] > 1) {
        exec_host_tables(t);
    } else {
        kernel_rope_tables_f32(f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1), attr(t, 0), 0);
    }
}

void exec_host_rotation(const ExecTask *t) {
    switch ((ExecRotationOp)t->op->kind) {
    case PLAN_OP_ROPE:
        exec_fused_rope(t);
        return;
    case PLAN_OP_TURN_TABLE:
        kernel_turn_table_f32(f32(t, 0), dim(t, 0), dim(t, 1), attr(t, 0));
        return;
    case PLAN_OP_TURN:
        turn(t);
        return;
    case PLAN_OP_CONJUGATE:
        kernel_conjugate_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return;
    case PLAN_OP_NEGATE_HALF:
        negate_half(t);
        return;
    case PLAN_OP_JOIN_HALVES:
        join_halves(t);
        return;
    case PLAN_OP_NEGATE_COLUMNS:
        negate_columns(t);
        return;
    case PLAN_OP_COPY_COLUMNS:
        kernel_copy_2d_bytes(f32(t, 1), dim(t, 1) * sizeof(float), f32(t, 0) + dim(t, 3),
                             dim(t, 2) * sizeof(float), dim(t, 0), dim(t, 1) * sizeof(float));
        return;
    case PLAN_OP_JOIN_COLUMNS:
        join_columns(t);
        return;
    case PLAN_OP_PUT_COLUMNS:
        put_columns(t);
        return;
    case PLAN_OP_TABLE_MUL_COLUMNS:
        table_mul_columns(t);
        return;
    case PLAN_OP_TABLE_MUL:
        table_mul(t);
        return;
    case PLAN_OP_TABLE_MUL_BACKWARD:
        table_mul_backward(t);
        return;
    case PLAN_OP_ROPE_TABLES:
        tables(t);
        return;
    }
    g_assert_not_reached();
}
