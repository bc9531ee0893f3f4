/* exec/host/heads.c - attention as it is written in Python, with its scores in memory, and heads
 * that several share. Layouts are those of plan/op/ops.def.
 */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/host/copy.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/products/matmul.h"
#include "kernels/host/sinks.h"

/* Where the row of a head of a token begins. */
static size_t head_row(const ExecTask *t, size_t batch, size_t token, size_t head, size_t heads,
                       bool apart) {
    size_t seq = dim(t, REPEAT_HEADS_SEQ), row = apart ? (batch * heads + head) * seq + token
                                                       : (batch * seq + token) * heads + head;
    return row * dim(t, REPEAT_HEADS_DIM);
}

/* x has its heads inside the rows of tokens, and lends each to `repeats` heads of y. */
static void repeat_heads(const ExecTask *t) {
    size_t seq = dim(t, REPEAT_HEADS_SEQ), heads = dim(t, REPEAT_HEADS_HEADS),
           repeats = dim(t, REPEAT_HEADS_REPEATS);
    for (size_t i = 0; i < dim(t, REPEAT_HEADS_BATCH) * seq * heads * repeats; i++) {
        size_t head = i % (heads * repeats), token = i / (heads * repeats);
        size_t from =
            token * dim(t, REPEAT_HEADS_STRIDE) + head / repeats * dim(t, REPEAT_HEADS_DIM);
        size_t to = head_row(t, token / seq, token % seq, head, heads * repeats,
                             dims(t)[REPEAT_HEADS_APART] == PLAN_REPEATED_APART);
        kernel_copy_f32(f32(t, REPEAT_HEADS_Y) + to, f32(t, REPEAT_HEADS_X) + from,
                        dim(t, REPEAT_HEADS_DIM));
    }
}

static void sum_heads(const ExecTask *t) {
    size_t seq = dim(t, SUM_HEADS_SEQ), heads = dim(t, SUM_HEADS_HEADS),
           repeats = dim(t, SUM_HEADS_REPEATS), n = dim(t, SUM_HEADS_DIM);
    bool from_apart = dims(t)[SUM_HEADS_APART] != PLAN_REPEATED_INSIDE;
    bool to_apart = dims(t)[SUM_HEADS_APART] == PLAN_REPEATED_APART;
    kernel_zero_f32(f32(t, SUM_HEADS_Y), dim(t, SUM_HEADS_BATCH) * seq * heads * n);
    for (size_t i = 0; i < dim(t, SUM_HEADS_BATCH) * seq * heads * repeats; i++) {
        size_t head = i % (heads * repeats), token = i / (heads * repeats);
        size_t from = head_row(t, token / seq, token % seq, head, heads * repeats, from_apart);
        size_t to = head_row(t, token / seq, token % seq, head / repeats, heads, to_apart);
        kernel_add_inplace_f32(f32(t, SUM_HEADS_Y) + to, f32(t, SUM_HEADS_X) + from, n);
    }
}

static void copy(const ExecTask *t) {
    size_t batch = dim(t, HEADS_COPY_BATCH), seq = dim(t, HEADS_COPY_SEQ),
           heads = dim(t, HEADS_COPY_HEADS), n = dim(t, HEADS_COPY_DIM),
           row = dim(t, HEADS_COPY_STRIDE);
    size_t apart[] = {heads * seq * n, seq * n, n, 1}, inside[] = {seq * row, n, row, 1};
    size_t merged[] = {seq * heads * n, n, heads * n, 1}, size[] = {batch, heads, seq, n};
    if (dims(t)[HEADS_COPY_BACK]) {
        kernel_copy_4d_f32(f32(t, HEADS_COPY_Y), merged, f32(t, HEADS_COPY_X), apart, size);
    } else {
        kernel_copy_4d_f32(f32(t, HEADS_COPY_Y), apart, f32(t, HEADS_COPY_X), inside, size);
    }
}

/* Where the matrix of one head begins, and how its rows follow each other (plan/op/ops.def). */
typedef struct {
    float *data;
    size_t batch_stride, head_stride, row_stride;
    bool transposed;
} HeadsMatrix;

static HeadsMatrix heads_matrix(const ExecTask *t, PlanSlotNumber i, size_t r, size_t c,
                                unsigned layout, size_t stride) {
    size_t heads = dim(t, HEADS_MATMUL_HEADS), rows = layout & 1 ? c : r, cols = layout & 1 ? r : c;
    bool inside = layout & 2;
    size_t row = layout & (2 | 4) ? stride : cols;
    return (HeadsMatrix){.data = f32(t, i),
                         .batch_stride = inside ? rows * stride : heads * rows * row,
                         .head_stride = inside ? cols : rows * row,
                         .row_stride = row,
                         .transposed = layout & 1};
}

static void matmul(const ExecTask *t) {
    size_t heads = dim(t, HEADS_MATMUL_HEADS), m = dim(t, HEADS_MATMUL_M),
           n = dim(t, HEADS_MATMUL_N), k = dim(t, HEADS_MATMUL_K);
    HeadsMatrix a = heads_matrix(t, HEADS_MATMUL_A, m, k, (unsigned)dim(t, HEADS_MATMUL_A_LAYOUT),
                                 dim(t, HEADS_MATMUL_A_STRIDE));
    HeadsMatrix b = heads_matrix(t, HEADS_MATMUL_B, k, n, (unsigned)dim(t, HEADS_MATMUL_B_LAYOUT),
                                 dim(t, HEADS_MATMUL_B_STRIDE));
    HeadsMatrix y =
        heads_matrix(t, HEADS_MATMUL_Y, m, n, (unsigned)dim(t, HEADS_MATMUL_Y_LAYOUT), heads * n);
    for (size_t i = 0; i < dim(t, HEADS_MATMUL_BATCH) * heads; i++) {
        size_t batch = i / heads, head = i % heads;
        kernel_gemm_f32(a.transposed ? KERNEL_TRANSPOSE : KERNEL_NO_TRANSPOSE,
                        b.transposed ? KERNEL_TRANSPOSE : KERNEL_NO_TRANSPOSE, m, n, k, 1,
                        a.data + batch * a.batch_stride + head * a.head_stride, a.row_stride,
                        b.data + batch * b.batch_stride + head * b.head_stride, b.row_stride, 0,
                        y.data + batch * y.batch_stride + head * y.head_stride, y.row_stride);
    }
}

static void join_sinks(const ExecTask *t) {
    kernel_join_sinks_f32(f32(t, JOIN_SINKS_Y), f32(t, JOIN_SINKS_X), f32(t, JOIN_SINKS_SINK),
                          dim(t, JOIN_SINKS_BATCH), dim(t, JOIN_SINKS_HEADS),
                          dim(t, JOIN_SINKS_ROWS), dim(t, JOIN_SINKS_COLS));
}

static void sum_sinks(const ExecTask *t) {
    kernel_sum_sinks_f32(f32(t, SUM_SINKS_Y), f32(t, SUM_SINKS_X), dim(t, SUM_SINKS_BATCH),
                         dim(t, SUM_SINKS_HEADS), dim(t, SUM_SINKS_ROWS), dim(t, SUM_SINKS_COLS));
}

void exec_host_heads(const ExecTask *t) {
    switch ((ExecHeadsOp)t->op->kind) {
    case PLAN_OP_REPEAT_HEADS:
        repeat_heads(t);
        return;
    case PLAN_OP_SUM_HEADS:
        sum_heads(t);
        return;
    case PLAN_OP_HEADS_COPY:
        copy(t);
        return;
    case PLAN_OP_HEADS_MATMUL:
        matmul(t);
        return;
    case PLAN_OP_JOIN_SINKS:
        join_sinks(t);
        return;
    case PLAN_OP_SUM_SINKS:
        sum_sinks(t);
        return;
    }
    g_assert_not_reached();
}
