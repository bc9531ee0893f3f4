/* exec/host/rotation.c - rotary embedding, as it is written in Python, op by op, or by one kernel.
 * Layouts are those of plan/op/ops.def. A row is one head of one token.
 */
#include "exec/host/ops.h"

#include "exec/host/fused.h"
#include "exec/task.h"
#include "kernels/host/attention/rope.h"
#include "kernels/host/copy.h"
#include "kernels/host/elementwise.h"

/* Where a head of x begins, which may be a part of rows that are longer. */
static size_t head_in_row(size_t row, size_t heads, size_t stride, size_t head_dim) {
    return row / heads * stride + row % heads * head_dim;
}

static void negate_half(const ExecTask *t) {
    size_t rows = dim(t, NEGATE_HALF_ROWS), half = dim(t, NEGATE_HALF_HALF),
           from = dim(t, NEGATE_HALF_FROM);
    for (size_t r = 0; r < rows; r++) {
        size_t at = head_in_row(r, dim(t, NEGATE_HALF_HEADS), dim(t, NEGATE_HALF_STRIDE), 2 * half);
        kernel_scale_f32(f32(t, NEGATE_HALF_Y) + r * half, f32(t, NEGATE_HALF_X) + at + from, -1,
                         half);
    }
}

static void join_halves(const ExecTask *t) {
    size_t rows = dim(t, JOIN_HALVES_ROWS), half = dim(t, JOIN_HALVES_HALF);
    for (size_t r = 0; r < rows; r++) {
        float *to = f32(t, JOIN_HALVES_Y) + r * 2 * half;
        kernel_copy_f32(to, f32(t, JOIN_HALVES_LOWER) + r * half, half);
        kernel_copy_f32(to + half,
                        f32(t, JOIN_HALVES_X) + head_in_row(r, dim(t, JOIN_HALVES_HEADS),
                                                            dim(t, JOIN_HALVES_STRIDE), 2 * half),
                        half);
    }
}

static void negate_columns(const ExecTask *t) {
    size_t cols = dim(t, NEGATE_COLUMNS_COLS);
    for (size_t row = 0; row < dim(t, NEGATE_COLUMNS_ROWS); row++) {
        kernel_scale_f32(f32(t, NEGATE_COLUMNS_Y) + row * cols,
                         f32(t, NEGATE_COLUMNS_X) + row * dim(t, NEGATE_COLUMNS_WIDTH) +
                             dim(t, NEGATE_COLUMNS_FROM),
                         -1, cols);
    }
}

static void join_columns(const ExecTask *t) {
    size_t rows = dim(t, JOIN_COLUMNS_ROWS), a = dim(t, JOIN_COLUMNS_A_COLS) * sizeof(float),
           b = dim(t, JOIN_COLUMNS_B_COLS) * sizeof(float);
    kernel_copy_2d_bytes(t->pointers[JOIN_COLUMNS_Y], a + b, t->pointers[JOIN_COLUMNS_A], a, rows,
                         a);
    kernel_copy_2d_bytes((char *)t->pointers[JOIN_COLUMNS_Y] + a, a + b,
                         f32(t, JOIN_COLUMNS_B) + dim(t, JOIN_COLUMNS_FROM),
                         dim(t, JOIN_COLUMNS_WIDTH) * sizeof(float), rows, b);
}

static void put_columns(const ExecTask *t) {
    size_t rows = dim(t, PUT_COLUMNS_ROWS), total = dim(t, PUT_COLUMNS_TOTAL);
    kernel_zero_f32(f32(t, PUT_COLUMNS_Y), rows * total);
    kernel_copy_2d_bytes(f32(t, PUT_COLUMNS_Y) + dim(t, PUT_COLUMNS_TO), total * sizeof(float),
                         f32(t, PUT_COLUMNS_X) + dim(t, PUT_COLUMNS_FROM),
                         dim(t, PUT_COLUMNS_WIDTH) * sizeof(float), rows,
                         dim(t, PUT_COLUMNS_COLS) * sizeof(float));
}

static void table_mul_columns(const ExecTask *t) {
    size_t heads = dim(t, TABLE_MUL_COLUMNS_HEADS), n = dim(t, TABLE_MUL_COLUMNS_DIM),
           seq = dim(t, TABLE_MUL_COLUMNS_SEQ);
    for (size_t row = 0; row < dim(t, TABLE_MUL_COLUMNS_TOKENS) * heads; row++) {
        kernel_mul_f32(f32(t, TABLE_MUL_COLUMNS_Y) + row * n,
                       f32(t, TABLE_MUL_COLUMNS_X) + row * dim(t, TABLE_MUL_COLUMNS_WIDTH),
                       f32(t, TABLE_MUL_COLUMNS_TABLE) + row / heads % seq * n, n);
    }
}

static void times_columns(const ExecTask *t) {
    size_t cols = dim(t, TIMES_COLUMNS_COLS);
    for (size_t row = 0; row < dim(t, TIMES_COLUMNS_ROWS); row++) {
        kernel_scale_f32(f32(t, TIMES_COLUMNS_Y) + row * cols,
                         f32(t, TIMES_COLUMNS_X) + row * dim(t, TIMES_COLUMNS_WIDTH) +
                             dim(t, TIMES_COLUMNS_FROM),
                         (float)attr(t, TIMES_COLUMNS_NUMBER), cols);
    }
}

static void turn(const ExecTask *t) {
    size_t heads = dim(t, TURN_HEADS), head_dim = dim(t, TURN_DIM), seq = dim(t, TURN_SEQ),
           row = heads * head_dim;
    KernelView y = {f32(t, TURN_Y), seq * row, row, head_dim};
    KernelConstView x = {f32(t, TURN_X), seq * dim(t, TURN_STRIDE), dim(t, TURN_STRIDE), head_dim};
    kernel_turn_f32(y, x, f32(t, TURN_TURNS), dim(t, TURN_TOKENS) / seq, heads, seq, head_dim);
}

static void table_mul(const ExecTask *t) {
    size_t tokens = dim(t, TABLE_MUL_TOKENS), heads = dim(t, TABLE_MUL_HEADS),
           n = dim(t, TABLE_MUL_DIM), seq = dim(t, TABLE_MUL_SEQ);
    for (size_t row = 0; row < tokens * heads; row++) {
        kernel_mul_f32(f32(t, TABLE_MUL_Y) + row * n,
                       f32(t, TABLE_MUL_X) + head_in_row(row, heads, dim(t, TABLE_MUL_STRIDE), n),
                       f32(t, TABLE_MUL_TABLE) + row / heads % seq * n, n);
    }
}

static void table_mul_backward(const ExecTask *t) {
    size_t tokens = dim(t, TABLE_MUL_BACKWARD_TOKENS), heads = dim(t, TABLE_MUL_BACKWARD_HEADS),
           n = dim(t, TABLE_MUL_BACKWARD_DIM), seq = dim(t, TABLE_MUL_BACKWARD_SEQ);
    bool apart = dims(t)[TABLE_MUL_BACKWARD_APART];
    for (size_t row = 0; row < tokens * heads; row++) {
        size_t position = (apart ? row : row / heads) % seq;
        kernel_mul_f32(f32(t, TABLE_MUL_BACKWARD_DX) + row * n,
                       f32(t, TABLE_MUL_BACKWARD_DY) + row * n,
                       f32(t, TABLE_MUL_BACKWARD_TABLE) + position * n, n);
    }
}

static void tables(const ExecTask *t) {
    if (t->context->plan->axes[PLAN_AXIS_CONTEXT] > 1) {
        exec_host_tables(t);
    } else {
        kernel_rope_tables_f32(f32(t, ROPE_TABLES_COS), f32(t, ROPE_TABLES_SIN),
                               dim(t, ROPE_TABLES_SEQ), dim(t, ROPE_TABLES_DIM),
                               attr(t, ROPE_TABLES_BASE), 0);
    }
}

void exec_host_rotation(const ExecTask *t) {
    switch ((ExecRotationOp)t->op->kind) {
    case PLAN_OP_ROPE:
        exec_fused_rope(t);
        return;
    case PLAN_OP_TURN_TABLE:
        kernel_turn_table_f32(f32(t, TURN_TABLE_TURNS), dim(t, TURN_TABLE_SEQ),
                              dim(t, TURN_TABLE_DIM), attr(t, TURN_TABLE_BASE));
        return;
    case PLAN_OP_TURN:
        turn(t);
        return;
    case PLAN_OP_CONJUGATE:
        kernel_conjugate_f32(f32(t, CONJUGATE_Y), f32(t, CONJUGATE_TURNS), dim(t, CONJUGATE_N));
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
        kernel_copy_2d_bytes(f32(t, COPY_COLUMNS_Y), dim(t, COPY_COLUMNS_COLS) * sizeof(float),
                             f32(t, COPY_COLUMNS_X) + dim(t, COPY_COLUMNS_FROM),
                             dim(t, COPY_COLUMNS_WIDTH) * sizeof(float), dim(t, COPY_COLUMNS_ROWS),
                             dim(t, COPY_COLUMNS_COLS) * sizeof(float));
        return;
    case PLAN_OP_JOIN_COLUMNS:
        join_columns(t);
        return;
    case PLAN_OP_PUT_COLUMNS:
        put_columns(t);
        return;
    case PLAN_OP_TABLE_MUL_COLUMNS:
    case PLAN_OP_TABLE_MUL_PART: /* of dims that begin alike */
        table_mul_columns(t);
        return;
    case PLAN_OP_TIMES_COLUMNS:
        times_columns(t);
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
