#include "exec/host/heads.h"

#include <string.h>

#include "exec/task.h"
#include "kernels/host/copy.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/matmul.h"
#include "kernels/host/rope.h"

/* ---- rotary embedding ----------------------------------------------------------------------- */

/* Where a head of x begins, which may be a part of rows that are longer. */
static size_t head_in_row(size_t row, size_t heads, size_t stride, size_t head_dim) {
    return row / heads * stride + row % heads * head_dim;
}

void exec_heads_negate_half(const ExecTask *t) {
    size_t rows = dim(t, 0), half = dim(t, 1), from = dim(t, 2);
    for (size_t r = 0; r < rows; r++) {
        size_t at = head_in_row(r, dim(t, 3), dim(t, 4), 2 * half);
        kernel_scale_f32(f32(t, 1) + r * half, f32(t, 0) + at + from, -1, half);
    }
}

void exec_heads_join_halves(const ExecTask *t) {
    size_t rows = dim(t, 0), half = dim(t, 1);
    for (size_t r = 0; r < rows; r++) {
        float *to = f32(t, 2) + r * 2 * half;
        kernel_copy_f32(to, f32(t, 0) + r * half, half);
        kernel_copy_f32(to + half, f32(t, 1) + head_in_row(r, dim(t, 2), dim(t, 3), 2 * half),
                        half);
    }
}

void exec_heads_negate_columns(const ExecTask *t) {
    size_t cols = dim(t, 1);
    for (size_t row = 0; row < dim(t, 0); row++) {
        kernel_scale_f32(f32(t, 1) + row * cols, f32(t, 0) + row * dim(t, 2) + dim(t, 3), -1, cols);
    }
}

void exec_heads_join_columns(const ExecTask *t) {
    size_t rows = dim(t, 0), a = dim(t, 1) * sizeof(float), b = dim(t, 2) * sizeof(float);
    kernel_copy_2d_bytes(t->pointers[2], a + b, t->pointers[0], a, rows, a);
    kernel_copy_2d_bytes((char *)t->pointers[2] + a, a + b, f32(t, 1) + dim(t, 4),
                         dim(t, 3) * sizeof(float), rows, b);
}

void exec_heads_put_columns(const ExecTask *t) {
    size_t rows = dim(t, 0), total = dim(t, 5);
    kernel_zero_f32(f32(t, 1), rows * total);
    kernel_copy_2d_bytes(f32(t, 1) + dim(t, 4), total * sizeof(float), f32(t, 0) + dim(t, 3),
                         dim(t, 2) * sizeof(float), rows, dim(t, 1) * sizeof(float));
}

void exec_heads_table_mul_columns(const ExecTask *t) {
    size_t heads = dim(t, 1), n = dim(t, 2), seq = dim(t, 3);
    for (size_t row = 0; row < dim(t, 0) * heads; row++) {
        kernel_mul_f32(f32(t, 2) + row * n, f32(t, 0) + row * dim(t, 4),
                       f32(t, 1) + row / heads % seq * n, n);
    }
}

void exec_heads_turn(const ExecTask *t) {
    size_t heads = dim(t, 1), head_dim = dim(t, 2), seq = dim(t, 3), row = heads * head_dim;
    KernelView y = {f32(t, 2), seq * row, row, head_dim};
    KernelConstView x = {f32(t, 0), seq * dim(t, 4), dim(t, 4), head_dim};
    kernel_turn_f32(y, x, f32(t, 1), dim(t, 0) / seq, heads, seq, head_dim);
}

void exec_heads_table_mul(const ExecTask *t) {
    size_t tokens = dim(t, 0), heads = dim(t, 1), n = dim(t, 2), seq = dim(t, 3);
    for (size_t row = 0; row < tokens * heads; row++) {
        kernel_mul_f32(f32(t, 2) + row * n, f32(t, 0) + head_in_row(row, heads, dim(t, 5), n),
                       f32(t, 1) + row / heads % seq * n, n);
    }
}

void exec_heads_table_mul_backward(const ExecTask *t) {
    size_t tokens = dim(t, 0), heads = dim(t, 1), n = dim(t, 2), seq = dim(t, 3);
    bool apart = dims(t)[4];
    for (size_t row = 0; row < tokens * heads; row++) {
        size_t position = (apart ? row : row / heads) % seq;
        kernel_mul_f32(f32(t, 2) + row * n, f32(t, 0) + row * n, f32(t, 1) + position * n, n);
    }
}

/* ---- attention with its scores in memory ---------------------------------------------------- */

/* Where the row of a head of a token begins. */
static size_t head_row(const ExecTask *t, size_t batch, size_t token, size_t head, size_t heads,
                       bool apart) {
    size_t seq = dim(t, 1), row = apart ? (batch * heads + head) * seq + token
                                        : (batch * seq + token) * heads + head;
    return row * dim(t, 4);
}

/* x has its heads inside the rows of tokens, and lends each to `repeats` heads of y. */
void exec_heads_repeat_heads(const ExecTask *t) {
    size_t seq = dim(t, 1), heads = dim(t, 2), repeats = dim(t, 3);
    for (size_t i = 0; i < dim(t, 0) * seq * heads * repeats; i++) {
        size_t head = i % (heads * repeats), token = i / (heads * repeats);
        size_t from = token * dim(t, 6) + head / repeats * dim(t, 4);
        size_t to = head_row(t, token / seq, token % seq, head, heads * repeats,
                             dims(t)[5] == PLAN_REPEATED_APART);
        kernel_copy_f32(f32(t, 1) + to, f32(t, 0) + from, dim(t, 4));
    }
}

void exec_heads_sum_heads(const ExecTask *t) {
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

void exec_heads_copy(const ExecTask *t) {
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

void exec_heads_matmul(const ExecTask *t) {
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

void exec_heads_upper_mask(const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            size_t at = i * cols + j;
            bytes(t, 1)[at] = j > i ? bytes(t, 0)[at] : 0;
        }
    }
}

void exec_heads_masked_fill(const ExecTask *t) {
    size_t n = dim(t, 1), inner = dim(t, 2), all = dim(t, 0) * n * inner;
    for (size_t i = 0; i < all; i++) {
        f32(t, 2)[i] = bytes(t, 1)[i / inner % n] ? (float)attr(t, 0) : f32(t, 0)[i];
    }
}

/* ---- relative bias --------------------------------------------------------------------------- */

void exec_heads_distances(const ExecTask *t) {
    size_t n = dim(t, 0);
    int64_t *to = t->pointers[1];
    for (size_t i = 0; i < n * n; i++) {
        to[i] = i64(t, 0)[i % n] - i64(t, 0)[i / n];
    }
}

void exec_heads_int64_numbers(const ExecTask *t) {
    bool clamps = t->op->kind == PLAN_OP_CLAMP;
    int64_t *to = t->pointers[1];
    for (size_t i = 0; i < dim(t, 0); i++) {
        int64_t x = i64(t, 0)[i];
        to[i] = clamps ? MIN(x, dims(t)[1]) : ABS(x);
    }
}

void exec_heads_positive_mask(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        bytes(t, 1)[i] = i64(t, 0)[i] > 0;
    }
}

void exec_heads_bias_add(const ExecTask *t) {
    size_t batch = dim(t, 0), heads = dim(t, 1), n = dim(t, 2) * dim(t, 3);
    for (size_t b = 0; b < batch * heads; b++) {
        for (size_t i = 0; i < n; i++) {
            f32(t, 2)[b * n + i] = f32(t, 0)[b * n + i] + f32(t, 1)[i * heads + b % heads];
        }
    }
}

bool exec_heads_bias_backward(const ExecTask *t) {
    size_t n = dim(t, 0), heads = dim(t, 1), limit = dim(t, 2);
    kernel_zero_f32(f32(t, 2), limit * heads);
    for (size_t i = 0; i < n * heads; i++) {
        int64_t row = i64(t, 1)[i % n];
        if (row < 0 || (size_t)row >= limit) {
            return false;
        }
        f32(t, 2)[(size_t)row * heads + i / n] += f32(t, 0)[i];
    }
    return true;
}
