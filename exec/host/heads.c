/* exec/host/heads.c - attention as it is written in Python, with its scores in memory, and heads
 * that several share. Layouts are those of plan/op/ops.def.
 */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/host/copy.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/matmul.h"

/* Where the row of a head of a token begins. */
static size_t head_row(const ExecTask *t, size_t batch, size_t token, size_t head, size_t heads,
                       bool apart) {
    size_t seq = dim(t, 1), row = apart ? (batch * heads + head) * seq + token
                                        : (batch * seq + token) * heads + head;
    return row * dim(t, 4);
}

/* x has its heads inside the rows of tokens, and lends each to `repeats` heads of y. */
static void repeat_heads(const ExecTask *t) {
    size_t seq = dim(t, 1), heads = dim(t, 2), repeats = dim(t, 3);
    for (size_t i = 0; i < dim(t, 0) * seq * heads * repeats; i++) {
        size_t head = i % (heads * repeats), token = i / (heads * repeats);
        size_t from = token * dim(t, 6) + head / repeats * dim(t, 4);
        size_t to = head_row(t, token / seq, token % seq, head, heads * repeats,
                             dims(t)[5] == PLAN_REPEATED_APART);
        kernel_copy_f32(f32(t, 1) + to, f32(t, 0) + from, dim(t, 4));
    }
}

static void sum_heads(const ExecTask *t) {
    size_t seq = dim(t, 1), heads = dim(t, 2), repeats = dim(t, 3), n = dim(t, 4);
    bool from_apart = dims(t)[5] != PLAN_REPEATED_INSIDE;
    bool to_apart = dims(t)[5] == PLAN_REPEATED_APART;
    kernel_zero_f32(f32(t, 1), dim(t, 0) * seq * heads * n);
    for (size_t i = 0; i < dim(t, 0) * seq * heads * repeats; i++) {
        size_t head = i % (heads * repeats), token = i / (heads * repeats);
        size_t from = head_row(t, token / seq, token % seq, head, heads * repeats, from_apart);
        size_t to = head_row(t, token / seq, token % seq, head / repeats, heads, to_apart);
        kernel_add_inplace_f32(f32(t, 1) + to, f32(t, 0) + from, n);
    }
}

static void copy(const ExecTask *t) {
    size_t batch = dim(t, 0), seq = dim(t, 1), heads = dim(t, 2), n = dim(t, 3), row = dim(t, 4);
    size_t apart[] = {heads * seq * n, seq * n, n, 1}, inside[] = {seq * row, n, row, 1};
    size_t merged[] = {seq * heads * n, n, heads * n, 1}, size[] = {batch, heads, seq, n};
    if (dims(t)[5]) {
        kernel_copy_4d_f32(f32(t, 1), merged, f32(t, 0), apart, size);
    } else {
        kernel_copy_4d_f32(f32(t, 1), apart, f32(t, 0), inside, size);
    }
}

/* Where the matrix of one head begins, and how its rows follow each other (plan/op/ops.def). */
typedef struct {
    float *data;
    size_t batch_stride, head_stride, row_stride;
    bool transposed;
} HeadsMatrix;

static HeadsMatrix heads_matrix(const ExecTask *t, unsigned i, size_t r, size_t c, unsigned layout,
                                size_t stride) {
    size_t heads = dim(t, 1), rows = layout & 1 ? c : r, cols = layout & 1 ? r : c;
    bool inside = layout & 2;
    return (HeadsMatrix){.data = f32(t, i),
                         .batch_stride = inside ? rows * stride : heads * rows * cols,
                         .head_stride = inside ? cols : rows * cols,
                         .row_stride = inside ? stride : cols,
                         .transposed = layout & 1};
}

static void matmul(const ExecTask *t) {
    size_t heads = dim(t, 1), m = dim(t, 2), n = dim(t, 3), k = dim(t, 4);
    HeadsMatrix a = heads_matrix(t, 0, m, k, (unsigned)dim(t, 5), dim(t, 8));
    HeadsMatrix b = heads_matrix(t, 1, k, n, (unsigned)dim(t, 6), dim(t, 9));
    HeadsMatrix y = heads_matrix(t, 2, m, n, (unsigned)dim(t, 7), heads * n);
    for (size_t i = 0; i < dim(t, 0) * heads; i++) {
        size_t batch = i / heads, head = i % heads;
        kernel_gemm_f32(a.transposed ? KERNEL_TRANSPOSE : KERNEL_NO_TRANSPOSE,
                        b.transposed ? KERNEL_TRANSPOSE : KERNEL_NO_TRANSPOSE, m, n, k, 1,
                        a.data + batch * a.batch_stride + head * a.head_stride, a.row_stride,
                        b.data + batch * b.batch_stride + head * b.head_stride, b.row_stride, 0,
                        y.data + batch * y.batch_stride + head * y.head_stride, y.row_stride);
    }
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
    }
    g_assert_not_reached();
}
