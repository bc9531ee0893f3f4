/* tests/kernels-cuda/places.c - kernels that look up, move and mask: embedding, rotary embedding,
 * heads, pieces; against the host's, or loops written here. */
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/cuda/columns.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/heads.h"
#include "kernels/cuda/positions.h"
#include "kernels/cuda/rope.h"
#include "kernels/host/embedding.h"
#include "kernels/host/rope.h"
#include "tests/kernels-cuda/device.h"

/* ---- embedding ------------------------------------------------------------------------------ */

static gint64 *new_indices(size_t n, size_t vocab, size_t step) {
    gint64 *index = g_new(gint64, n);
    for (size_t i = 0; i < n; i++) {
        index[i] = (gint64)(i % 3 ? i * step % vocab : 1 % vocab); /* one of them often */
    }
    return index;
}

static void test_embedding(const DeviceCase *c) {
    static const size_t shapes[][3] = {{1, 1, 1}, {40, 7, 24}, {700, 600, 13}, {30, 5, 520}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t count = shapes[s][0], vocab = shapes[s][1], width = shapes[s][2];
        g_autofree gint64 *index = new_indices(count, vocab, 17);
        g_autofree float *w = device_random(c, vocab * width, -1, 1, 1);
        g_autofree float *dy = device_random(c, count * width, -1, 1, 2);
        g_autofree float *want = g_new(float, MAX(count, vocab) * width);
        gint64 *at = device_put_i64(index, count);
        void *y = device_new(c, count * width), *dw = device_new(c, vocab * width);
        g_assert_true(kernel_embedding_forward_f32(want, w, index, count, vocab, width));
        DEVICE_OK(kernel_cuda_embedding_forward(device_lane, y, device_put(c, w, vocab * width), at,
                                                count, vocab, width, c->type));
        device_equal("embedding", c, y, want, count * width);
        g_assert_true(kernel_embedding_backward_f32(want, dy, index, count, vocab, width));
        DEVICE_OK(kernel_cuda_embedding_backward(device_lane, dw, device_put(c, dy, count * width),
                                                 at, count, vocab, width, c->type));
        device_close("dweight", c, dw, want, vocab * width, 1e-6, 1e-5);
    }
}

/* Rows of as many positions as a warp looks at, one more and one less; the last ends the array. */
static void test_embedding_runs(const DeviceCase *c) {
    static const size_t runs[] = {32, 33, 31, 0, 64, 1, 95, 96};
    enum {
        COUNT = 32 + 33 + 31 + 64 + 1 + 95 + 96,
        VOCAB = G_N_ELEMENTS(runs),
        WIDTH = 8
    };
    gint64 index[COUNT];
    size_t n = 0;
    for (size_t row = 0; row < VOCAB; row++) {
        for (size_t i = 0; i < runs[row]; i++) {
            index[n++ * 13 % COUNT] = (gint64)row; /* each place once: COUNT is 352 */
        }
    }
    g_autofree float *dy = device_random(c, COUNT * WIDTH, -1, 1, 2);
    g_autofree float *want = g_new(float, VOCAB *WIDTH);
    void *dw = device_new(c, VOCAB * WIDTH);
    g_assert_true(kernel_embedding_backward_f32(want, dy, index, COUNT, VOCAB, WIDTH));
    DEVICE_OK(kernel_cuda_embedding_backward(device_lane, dw, device_put(c, dy, COUNT * WIDTH),
                                             device_put_i64(index, COUNT), COUNT, VOCAB, WIDTH,
                                             c->type));
    device_close("dweight", c, dw, want, VOCAB * WIDTH, 1e-6, 1e-5);
}

/* More than one digit of the sort, and twice the same bits. */
static void test_embedding_repeats(void) {
    enum {
        COUNT = 1500,
        VOCAB = 2000,
        WIDTH = 4
    };
    g_autofree gint64 *index = new_indices(COUNT, VOCAB, 1237);
    DeviceCase c = {KERNEL_CUDA_F32, 0, 0};
    g_autofree float *dy = device_random(&c, COUNT * WIDTH, -1, 1, 2);
    g_autofree float *want = g_new(float, VOCAB *WIDTH);
    float *d = device_put_floats(dy, COUNT * WIDTH), *dw = device_new_floats(VOCAB * WIDTH);
    float *again = device_new_floats(VOCAB * WIDTH);
    gint64 *at = device_put_i64(index, COUNT);
    g_assert_true(kernel_embedding_backward_f32(want, dy, index, COUNT, VOCAB, WIDTH));
    DEVICE_OK(kernel_cuda_embedding_backward(device_lane, dw, d, at, COUNT, VOCAB, WIDTH,
                                             KERNEL_CUDA_F32));
    DEVICE_OK(kernel_cuda_embedding_backward(device_lane, again, d, at, COUNT, VOCAB, WIDTH,
                                             KERNEL_CUDA_F32));
    device_close_floats("dweight", dw, want, VOCAB * WIDTH, 1e-6, 2e-5);
    g_autofree float *first = device_get_bytes(dw, VOCAB * WIDTH * sizeof(float));
    device_equal_bytes("again", again, first, VOCAB * WIDTH * sizeof(float));
}

static void test_bad_index(void) {
    gint64 index[] = {0, 3, 9, -1};
    float w[4 * 2] = {1, 2, 3, 4, 5, 6, 7, 8}, want[] = {1, 2, 7, 8, 0, 0, 0, 0};
    float want_dw[] = {1, 2, 0, 0, 0, 0, 3, 4};
    uint32_t op;
    gint64 *at = device_put_i64(index, 4);
    float *weight = device_put_floats(w, 8), *y = device_new_floats(8), *dw = device_new_floats(8);
    kernel_cuda_tag(device_lane, 5);
    DEVICE_OK(kernel_cuda_embedding_forward(device_lane, y, weight, at, 4, 4, 2, KERNEL_CUDA_F32));
    device_close_floats("rows", y, want, 8, 0, 0);
    g_assert_true(kernel_cuda_bad_index(device_lane, &op));
    g_assert_cmpuint(op, ==, 5);
    kernel_cuda_tag(device_lane, 6);
    DEVICE_OK(
        kernel_cuda_embedding_backward(device_lane, dw, weight, at, 4, 4, 2, KERNEL_CUDA_F32));
    device_close_floats("gradient", dw, want_dw, 8, 0, 0);
    g_assert_true(kernel_cuda_bad_index(device_lane, &op));
    g_assert_cmpuint(op, ==, 6);
    DEVICE_OK(kernel_cuda_bias_backward(device_lane, dw, weight, at, 4, 4, 2, KERNEL_CUDA_F32));
    g_free(device_get_bytes(dw, 1));
    g_assert_true(kernel_cuda_bad_index(device_lane, &op));
}

static void test_bias_backward(const DeviceCase *c) {
    static const size_t shapes[][3] = {
        {10, 3, 2}, {900, 5, 20}, {6500, 2, 3}}; /* the last in parts */
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t n = shapes[s][0], limit = shapes[s][1], heads = shapes[s][2];
        g_autofree gint64 *index = new_indices(n, limit, 7);
        g_autofree float *dy = device_random(c, n * heads, -1, 1, 1);
        g_autofree float *want = g_new0(float, limit *heads);
        void *dw = device_new(c, limit * heads);
        for (size_t i = 0; i < n * heads; i++) {
            want[(size_t)index[i % n] * heads + i / n] += dy[i];
        }
        DEVICE_OK(kernel_cuda_bias_backward(device_lane, dw, device_put(c, dy, n * heads),
                                            device_put_i64(index, n), n, limit, heads, c->type));
        device_close("bias gradient", c, dw, want, limit * heads, 1e-6, 1e-4);
    }
}

/* ---- rotary embedding ----------------------------------------------------------------------- */

static void test_rope(const DeviceCase *c) {
    static const size_t shapes[][4] = {{6, 3, 16, 3}, {4, 2, 6, 4}, {8, 2, 64, 8}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t tokens = shapes[s][0], heads = shapes[s][1], dim = shapes[s][2], seq = shapes[s][3];
        size_t n = tokens * heads * dim, row = heads * dim + 8;
        g_autofree float *long_rows = device_random(c, tokens * row, -2, 2, 2);
        g_autofree float *cosines = g_new(float, seq *dim), *sines = g_new(float, seq *dim);
        g_autofree float *x = device_random(c, n, -2, 2, 1), *want = g_new(float, n);
        DeviceCase tables = {KERNEL_CUDA_F32, c->shift, 0};
        KernelCudaRope rope = {tokens, heads, dim, seq, heads * dim, c->type, KERNEL_CUDA_F32};
        void *dc = device_new(&tables, seq * dim), *ds = device_new(&tables, seq * dim);
        void *y = device_put(c, x, n);
        size_t first = (size_t)g_test_rand_int_range(0, 500);
        kernel_rope_tables_f32(cosines, sines, seq, dim, 10000, first);
        DEVICE_OK(
            kernel_cuda_rope_tables(device_lane, dc, ds, seq, dim, 10000, first, KERNEL_CUDA_F32));
        device_close("cosines", &tables, dc, cosines, seq * dim, 1e-7, 1e-7);
        device_close("sines", &tables, ds, sines, seq * dim, 1e-7, 1e-7);
        KernelConstView in = kernel_const_view_bshd(x, seq, heads, dim);
        KernelView out = kernel_view_bshd(want, seq, heads, dim);
        kernel_rope_forward_f32(out, in, cosines, sines, tokens / seq, heads, seq, dim);
        DEVICE_OK(kernel_cuda_rope(device_lane, y, y, dc, ds, &rope, false));
        device_close("rope", c, y, want, n, 1e-6, 1e-6);
        KernelCudaRope part = rope;
        part.stride = row;
        kernel_rope_forward_f32(out, (KernelConstView){long_rows, seq * row, row, dim}, cosines,
                                sines, tokens / seq, heads, seq, dim);
        DEVICE_OK(kernel_cuda_rope(device_lane, y, device_put(c, long_rows, tokens * row), dc, ds,
                                   &part, false));
        device_close("rope of a part of rows", c, y, want, n, 1e-6, 1e-6);
        kernel_rope_backward_f32(out, in, cosines, sines, tokens / seq, heads, seq, dim);
        y = device_new(c, n);
        DEVICE_OK(kernel_cuda_rope(device_lane, y, device_put(c, x, n), dc, ds, &rope, true));
        device_close("rope backward", c, y, want, n, 1e-6, 1e-6);
    }
}

/* Neighbours as complex numbers, of a part of longer rows, too. */
static void check_turn(size_t dim) {
    enum {
        TOKENS = 14,
        HEADS = 3,
        SEQ = 7,
    };
    DeviceCase fp32 = {KERNEL_CUDA_F32, 0, 0};
    size_t row = HEADS * dim + 4, n = TOKENS * HEADS * dim;
    g_autofree float *x = device_random(&fp32, TOKENS * row, -2, 2, 3), *want = g_new(float, n);
    g_autofree float *turns = g_new(float, SEQ *dim), *back = g_new(float, SEQ *dim);
    KernelCudaRope rope = {TOKENS, HEADS, dim, SEQ, row, KERNEL_CUDA_F32, KERNEL_CUDA_F32};
    float *table = device_new_floats(SEQ * dim), *other = device_new_floats(SEQ * dim);
    float *y = device_new_floats(n);
    kernel_turn_table_f32(turns, SEQ, dim, 10000);
    kernel_conjugate_f32(back, turns, SEQ * dim);
    kernel_turn_f32(kernel_view_bshd(want, SEQ, HEADS, dim),
                    (KernelConstView){x, SEQ * row, row, dim}, turns, TOKENS / SEQ, HEADS, SEQ,
                    dim);
    DEVICE_OK(kernel_cuda_turn_table(device_lane, table, SEQ, dim, 10000));
    device_close_floats("turn table", table, turns, SEQ * dim, 1e-7, 1e-7);
    DEVICE_OK(kernel_cuda_conjugate(device_lane, other, table, SEQ * dim));
    device_close_floats("conjugate", other, back, SEQ * dim, 1e-7, 1e-7);
    DEVICE_OK(kernel_cuda_turn(device_lane, y, device_put(&fp32, x, TOKENS * row), table, &rope));
    device_close_floats("turn", y, want, n, 1e-6, 1e-6);
}

static void test_turn(void) {
    check_turn(10);
    check_turn(24);
}

/* Tables made op by op are the tables: of positions from 3 on. */
static void test_tables_of_ops(void) {
    enum {
        SEQ = 37,
        DIM = 10,
        HALF = DIM / 2,
        FROM = 3
    };
    gint64 from_zero[SEQ];
    float cosines[SEQ * DIM], sines[SEQ * DIM], want_cos[SEQ * HALF], want_sin[SEQ * HALF];
    for (size_t i = 0; i < SEQ; i++) {
        from_zero[i] = (gint64)i;
    }
    kernel_rope_tables_f32(cosines, sines, SEQ, DIM, 10000, FROM);
    for (size_t i = 0; i < SEQ * HALF; i++) {
        want_cos[i] = cosines[i / HALF * DIM + i % HALF];
        want_sin[i] = sines[i / HALF * DIM + i % HALF];
    }
    gint64 *positions = device_new_bytes(SEQ * sizeof(gint64));
    float *numbers = device_new_floats(SEQ), *frequencies = device_new_floats(HALF);
    float *angles = device_new_floats(SEQ * HALF), *table = device_new_floats(SEQ * HALF);
    DEVICE_OK(
        kernel_cuda_shift_i64(device_lane, positions, device_put_i64(from_zero, SEQ), SEQ, FROM));
    DEVICE_OK(kernel_cuda_as_number(device_lane, numbers, positions, SEQ, KERNEL_CUDA_F32));
    DEVICE_OK(kernel_cuda_rope_frequencies(device_lane, frequencies, DIM, 10000));
    DEVICE_OK(kernel_cuda_outer(device_lane, angles, numbers, frequencies, SEQ, HALF));
    DEVICE_OK(kernel_cuda_cos(device_lane, table, angles, SEQ * HALF));
    device_close_floats("cosines of ops", table, want_cos, SEQ * HALF, 4e-6, 0);
    DEVICE_OK(kernel_cuda_sin(device_lane, table, angles, SEQ * HALF));
    device_close_floats("sines of ops", table, want_sin, SEQ * HALF, 4e-6, 0);
}

static void test_labels(void) {
    gint64 target[] = {5, 6, 7, 1, 2, 3}, padded[] = {-100, 5, 6, -100, -100, 1, 2, -100};
    gint64 next[] = {5, 6, -100, 1, 2, -100};
    gint64 *longer = device_new_bytes(sizeof padded), *rows = device_new_bytes(sizeof next);
    DEVICE_OK(kernel_cuda_pad_targets(device_lane, longer, device_put_i64(target, 6), 2, 3));
    device_equal_bytes("padded", longer, padded, sizeof padded);
    DEVICE_OK(kernel_cuda_drop_one(device_lane, rows, longer, 2, 3, true));
    device_equal_bytes("next", rows, next, sizeof next);
    gint64 short_ones[] = {5, 6, 1, 2};
    DEVICE_OK(kernel_cuda_drop_one(device_lane, rows, device_put_i64(target, 6), 2, 2, false));
    device_equal_bytes("without the last", rows, short_ones, sizeof short_ones);
}

/* The pieces put together are the rotation. */
static void test_rope_pieces(const DeviceCase *c) {
    enum {
        ROWS = 6,
        HALF = 5,
        N = ROWS * 2 * HALF
    };
    g_autofree float *x = device_random(c, N, -2, 2, 1), *table = device_random(c, N, -1, 1, 2);
    float lower[ROWS * HALF], joined[N], put[N];
    KernelCudaRope rope = {ROWS, 1, 2 * HALF, ROWS, 2 * HALF, c->type, c->type};
    void *in = device_put(c, x, N), *negative = device_new(c, ROWS * HALF);
    void *both = device_new(c, N), *some = device_new(c, N);
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t j = 0; j < HALF; j++) {
            lower[r * HALF + j] = -x[r * 2 * HALF + HALF + j];
            joined[r * 2 * HALF + j] = lower[r * HALF + j];
            joined[r * 2 * HALF + HALF + j] = x[r * 2 * HALF + j];
            put[r * 2 * HALF + j] = 0;
            put[r * 2 * HALF + HALF + j] = x[r * 2 * HALF + 1 + j];
        }
    }
    DEVICE_OK(
        kernel_cuda_negate_half(device_lane, negative, in, ROWS, HALF, HALF, 1, 2 * HALF, c->type));
    device_equal("negate half", c, negative, lower, ROWS * HALF);
    DEVICE_OK(
        kernel_cuda_join_halves(device_lane, both, negative, in, ROWS, HALF, 1, 2 * HALF, c->type));
    device_equal("join halves", c, both, joined, N);
    DEVICE_OK(kernel_cuda_put_columns(device_lane, some, in, ROWS, HALF, 2 * HALF, 1, HALF,
                                      2 * HALF, c->type));
    device_equal("put columns", c, some, put, N);
    for (size_t i = 0; i < N; i++) {
        put[i] = x[i] * table[i];
    }
    DEVICE_OK(kernel_cuda_table_mul(device_lane, some, in, device_put(c, table, N), &rope, false));
    device_equal("table mul", c, some, put, N);
}

/* `cols` columns from `from` on of rows that hold more: those of a head that are turned, and those
 * that are not; `to`: where they are put. */
static void check_columns(const DeviceCase *c, size_t cols, size_t from, size_t to, size_t width) {
    enum {
        ROWS = 24,
        HEADS = 2,
        SEQ = 4,
    };
    size_t rest = width - cols, n = ROWS * cols, bytes = kernel_cuda_type_bytes(c->type);
    g_autofree float *x = device_random(c, ROWS * width, -1, 1, 1);
    g_autofree float *part = device_random(c, n, -1, 1, 2);
    g_autofree float *table = device_random(c, SEQ * cols, -1, 1, 3);
    g_autofree float *copied = g_new(float, n), *negated = g_new(float, n),
                     *times = g_new(float, n);
    g_autofree float *joined = g_new(float, ROWS *width), *put = g_new0(float, ROWS *width);
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t j = 0; j < cols; j++) {
            copied[r * cols + j] = x[r * width + from + j];
            negated[r * cols + j] = -x[r * width + from + j];
            times[r * cols + j] = x[r * width + j] * table[r / HEADS % SEQ * cols + j];
            joined[r * width + j] = part[r * cols + j];
            put[r * width + to + j] = x[r * width + from + j];
        }
        for (size_t j = 0; j < rest; j++) {
            joined[r * width + cols + j] = x[r * width + cols + j];
        }
    }
    char *in = device_put(c, x, ROWS * width);
    void *some = device_new(c, n), *all = device_new(c, ROWS * width);
    KernelCudaRope rope = {ROWS / HEADS, HEADS, cols, SEQ, HEADS * width, c->type, c->type, width};
    KernelCudaPart first = {device_put(c, part, n), cols, cols, 1};
    KernelCudaPart second = {in + cols * bytes, rest, width, 1};
    DEVICE_OK(
        kernel_cuda_copy_columns(device_lane, some, c->type, in, c->type, ROWS, cols, width, from));
    device_equal("copy columns", c, some, copied, n);
    DEVICE_OK(kernel_cuda_negate_columns(device_lane, some, in, ROWS, cols, width, from, c->type));
    device_equal("negate columns", c, some, negated, n);
    DEVICE_OK(kernel_cuda_table_mul(device_lane, some, in, device_put(c, table, SEQ * cols), &rope,
                                    false));
    device_equal("table mul columns", c, some, times, n);
    DEVICE_OK(
        kernel_cuda_put_columns(device_lane, all, in, ROWS, cols, width, from, to, width, c->type));
    device_equal("put columns", c, all, put, ROWS * width);
    DEVICE_OK(kernel_cuda_join_columns(device_lane, all, &first, &second, ROWS, c->type));
    device_equal("join columns", c, all, joined, ROWS * width);
}

static void test_columns(const DeviceCase *c) {
    check_columns(c, 6, 3, 2, 10);
    check_columns(c, 16, 8, 24, 40);  /* 16 bytes at a time */
    check_columns(c, 16, 12, 24, 40); /* of floats alone */
}

/* Two heads a token inside of rows that are longer by `more`, and a third beyond them. */
static void check_rope_pieces_of_long_rows(const DeviceCase *c, size_t half, size_t more) {
    enum {
        TOKENS = 4,
        SEQ = 2,
        HEADS = 2,
        ROWS = TOKENS * HEADS,
    };
    size_t dim = 2 * half, long_row = 3 * dim + more, n = ROWS * dim, heads = HEADS * dim;
    const DeviceCase fp32 = {KERNEL_CUDA_F32, c->shift, 0};
    g_autofree float *x = device_random(c, TOKENS * long_row, -2, 2, 1);
    g_autofree float *t = device_random(c, SEQ * dim, -1, 1, 2);
    g_autofree float *lower = g_new(float, n / 2), *joined = g_new(float, n);
    g_autofree float *product = g_new(float, n), *put = g_new0(float, TOKENS *long_row);
    void *in = device_put(c, x, TOKENS * long_row), *negative = device_new(c, n / 2);
    void *both = device_new(c, n), *some = device_new(c, TOKENS * long_row);
    for (size_t i = 0; i < n; i++) {
        size_t row = i / dim, j = i % dim, head = row / HEADS * long_row + row % HEADS * dim;
        product[i] = x[head + j] * t[row / HEADS % SEQ * dim + j];
        joined[i] = j < half ? -x[head + half + j] : x[head + j - half];
        if (j < half) {
            lower[row * half + j] = -x[head + half + j];
        }
        put[i / heads * long_row + dim + i % heads] = joined[i];
    }
    DEVICE_OK(kernel_cuda_negate_half(device_lane, negative, in, ROWS, half, half, HEADS, long_row,
                                      c->type));
    device_equal("negate half", c, negative, lower, n / 2);
    DEVICE_OK(kernel_cuda_join_halves(device_lane, both, negative, in, ROWS, half, HEADS, long_row,
                                      c->type));
    device_equal("join halves", c, both, joined, n);
    DEVICE_OK(kernel_cuda_put_columns(device_lane, some, both, TOKENS, heads, heads, 0, dim,
                                      long_row, c->type));
    device_equal("put columns", c, some, put, TOKENS * long_row);
    const DeviceCase *tables[] = {c, &fp32};
    for (unsigned i = 0; i < G_N_ELEMENTS(tables); i++) {
        KernelCudaRope rope = {TOKENS, HEADS, dim, SEQ, long_row, c->type, tables[i]->type};
        DEVICE_OK(kernel_cuda_table_mul(device_lane, both, in, device_put(tables[i], t, SEQ * dim),
                                        &rope, false));
        device_equal("table mul", c, both, product, n);
    }
}

/* In single elements, and in pieces of 16 bytes. */
static void test_rope_pieces_of_long_rows(const DeviceCase *c) {
    check_rope_pieces_of_long_rows(c, 3, 1);
    check_rope_pieces_of_long_rows(c, 8, 8);
    check_rope_pieces_of_long_rows(c, 24, 16);
    check_rope_pieces_of_long_rows(c, 8, 3);
}

/* [batch, heads, seq, dim] when apart, else [batch, seq, heads, dim]. */
static void test_table_mul(const DeviceCase *c) {
    enum {
        BATCH = 2,
        SEQ = 3,
        HEADS = 2,
        DIM = 4,
        N = BATCH * SEQ * HEADS * DIM
    };
    g_autofree float *x = device_random(c, N, -2, 2, 1), *t = device_random(c, SEQ * DIM, -1, 1, 2);
    KernelCudaRope rope = {BATCH * SEQ, HEADS, DIM, SEQ, HEADS * DIM, c->type, c->type};
    void *in = device_put(c, x, N), *table = device_put(c, t, SEQ * DIM);
    for (int apart = 0; apart < 2; apart++) {
        float want[N];
        for (size_t i = 0; i < N; i++) {
            size_t position = apart ? i / DIM % SEQ : i / DIM / HEADS % SEQ;
            want[i] = x[i] * t[position * DIM + i % DIM];
        }
        void *y = device_new(c, N);
        DEVICE_OK(kernel_cuda_table_mul(device_lane, y, in, table, &rope, apart));
        device_equal("table mul", c, y, want, N);
    }
}

/* ---- heads ---------------------------------------------------------------------------------- */

static size_t place(const KernelCudaHeads *h, size_t heads, bool apart, size_t b, size_t t,
                    size_t head, size_t j) {
    return (apart ? ((b * heads + head) * h->seq + t) : ((b * h->seq + t) * heads + head)) *
               h->dim +
           j;
}

static void check_heads(const DeviceCase *c, size_t dim, size_t repeats, bool apart) {
    KernelCudaHeads h = {2, 3, 2, dim, c->type};
    size_t n = h.batch * h.seq * h.heads * dim, many = n * repeats, row = h.heads * dim + 8;
    g_autofree float *x = device_random(c, n, -1, 1, 1), *dy = device_random(c, many, -1, 1, 2);
    g_autofree float *strided = device_random(c, h.batch * h.seq * row, -1, 1, 3);
    g_autofree float *lent = g_new(float, many), *lent_rows = g_new(float, many),
                     *sums = g_new0(float, n), *elsewhere = g_new0(float, n);
    g_autofree float *taken = g_new(float, n), *back = g_new(float, n);
    void *dlent = device_new(c, many), *dsums = device_new(c, n), *dtaken = device_new(c, n);
    for (size_t i = 0; i < h.batch * h.seq * h.heads * repeats * dim; i++) {
        size_t j = i % dim, head = i / dim % (h.heads * repeats);
        size_t token = i / dim / (h.heads * repeats), b = token / h.seq, t = token % h.seq;
        size_t from = place(&h, h.heads * repeats, apart, b, t, head, j);
        lent[from] = x[place(&h, h.heads, false, b, t, head / repeats, j)];
        lent_rows[from] = strided[token * row + head / repeats * dim + j];
        sums[place(&h, h.heads, apart, b, t, head / repeats, j)] += dy[from];
        elsewhere[place(&h, h.heads, !apart, b, t, head / repeats, j)] += dy[from];
        if (head % repeats == 0) {
            size_t own = head / repeats;
            taken[place(&h, h.heads, true, b, t, own, j)] = strided[token * row + own * dim + j];
            back[place(&h, h.heads, false, b, t, own, j)] =
                x[place(&h, h.heads, true, b, t, own, j)];
        }
    }
    void *in = device_put(c, x, n);
    DEVICE_OK(kernel_cuda_repeat_heads(device_lane, dlent, in, &h, h.heads * dim, repeats, apart));
    device_equal("repeat heads", c, dlent, lent, many);
    DEVICE_OK(kernel_cuda_repeat_heads(device_lane, dlent,
                                       device_put(c, strided, h.batch * h.seq * row), &h, row,
                                       repeats, apart));
    device_equal("repeat heads of long rows", c, dlent, lent_rows, many);
    void *ddy = device_put(c, dy, many);
    DEVICE_OK(kernel_cuda_sum_heads(device_lane, dsums, ddy, &h, repeats, apart, apart));
    device_close("sum heads", c, dsums, sums, n, 1e-6, 1e-6);
    DEVICE_OK(kernel_cuda_sum_heads(device_lane, dsums, ddy, &h, repeats, apart, !apart));
    device_close("sum heads to another place", c, dsums, elsewhere, n, 1e-6, 1e-6);
    DEVICE_OK(kernel_cuda_heads_copy(
        device_lane, dtaken, device_put(c, strided, h.batch * h.seq * row), &h, row, false));
    device_equal("heads copy", c, dtaken, taken, n);
    DEVICE_OK(kernel_cuda_heads_copy(device_lane, dtaken, in, &h, 0, true));
    device_equal("heads copy back", c, dtaken, back, n);
}

static void test_heads(const DeviceCase *c) {
    check_heads(c, 8, 1, true);
    check_heads(c, 8, 3, false);
    check_heads(c, 5, 2, true);
    check_heads(c, 16, 2, false);
}

static void check_masks(const DeviceCase *c, size_t rows, size_t cols) {
    enum {
        OUTER = 2
    };
    size_t n = rows * cols;
    g_autofree guint8 *all = g_new(guint8, n), *want_mask = g_new(guint8, n);
    g_autofree float *want = g_new(float, OUTER *n * 3);
    g_autofree float *x = device_random(c, OUTER * n * 3, -1, 1, 1);
    for (size_t i = 0; i < n; i++) {
        all[i] = i % 4 != 0;
        want_mask[i] = i % cols > i / cols ? all[i] : 0;
    }
    guint8 *mask = device_new_bytes(n), *ones = device_new_bytes(n);
    DEVICE_OK(kernel_cuda_upper_mask(device_lane, mask, device_put_bytes(all, n), rows, cols));
    device_equal_bytes("upper mask", mask, want_mask, n);
    for (size_t inner = 1; inner <= 3; inner += 2) {
        void *y = device_new(c, OUTER * n * inner);
        for (size_t i = 0; i < OUTER * n * inner; i++) {
            want[i] = want_mask[i / inner % n] ? -INFINITY : x[i];
        }
        DEVICE_OK(kernel_cuda_masked_fill(device_lane, y, device_put(c, x, OUTER * n * inner), mask,
                                          OUTER, n, inner, -INFINITY, c->type));
        device_equal("masked fill", c, y, want, OUTER * n * inner);
    }
    memset(all, 1, n);
    DEVICE_OK(kernel_cuda_ones_mask(device_lane, ones, n));
    device_equal_bytes("ones mask", ones, all, n);
}

/* In single elements, and in pieces of 16 bytes. */
static void test_masks(const DeviceCase *c) {
    check_masks(c, 5, 7);
    check_masks(c, 6, 8);
}

static void test_relative(const DeviceCase *c) {
    enum {
        SEQ = 5,
        PAIRS = SEQ * SEQ,
        BATCH = 2,
        HEADS = 3
    };
    gint64 position[SEQ], distance[PAIRS], away[PAIRS], limited[PAIRS];
    guint8 positive[PAIRS];
    float want[BATCH * HEADS * PAIRS];
    g_autofree float *x = device_random(c, BATCH * HEADS * PAIRS, -1, 1, 1);
    g_autofree float *bias = device_random(c, PAIRS * HEADS, -1, 1, 2);
    for (size_t i = 0; i < SEQ; i++) {
        position[i] = (gint64)(2 * i);
    }
    for (size_t i = 0; i < PAIRS; i++) {
        distance[i] = position[i % SEQ] - position[i / SEQ];
        away[i] = ABS(distance[i]);
        limited[i] = MIN(away[i], 5);
        positive[i] = distance[i] > 0;
    }
    for (size_t i = 0; i < BATCH * HEADS * PAIRS; i++) {
        want[i] = x[i] + bias[i % PAIRS * HEADS + i / PAIRS % HEADS];
    }
    gint64 *d = device_new_bytes(sizeof distance), *a = device_new_bytes(sizeof away);
    gint64 *l = device_new_bytes(sizeof limited);
    guint8 *p = device_new_bytes(sizeof positive);
    void *y = device_put(c, x, BATCH * HEADS * PAIRS);
    DEVICE_OK(kernel_cuda_distances(device_lane, d, device_put_i64(position, SEQ), SEQ));
    DEVICE_OK(kernel_cuda_absolute_i64(device_lane, a, d, PAIRS));
    DEVICE_OK(kernel_cuda_at_most_i64(device_lane, l, a, PAIRS, 5));
    DEVICE_OK(kernel_cuda_positive_mask(device_lane, p, d, PAIRS));
    DEVICE_OK(kernel_cuda_bias_add(device_lane, y, y, device_put(c, bias, PAIRS * HEADS), BATCH,
                                   HEADS, PAIRS, c->type));
    device_equal_bytes("distances", d, distance, sizeof distance);
    device_equal_bytes("absolute", a, away, sizeof away);
    device_equal_bytes("clamp", l, limited, sizeof limited);
    device_equal_bytes("positive", p, positive, sizeof positive);
    device_equal("bias add", c, y, want, BATCH * HEADS * PAIRS);
}

/* More positions than a block has threads, and more heads than a thread takes at once. */
static void test_bias_of_many_heads(const DeviceCase *c) {
    enum {
        BATCH = 2,
        HEADS = 18,
        PAIRS = 300,
        N = BATCH * HEADS * PAIRS
    };
    g_autofree float *x = device_random(c, N, -2, 2, 1), *want = g_new(float, N);
    g_autofree float *bias = device_random(c, PAIRS * HEADS, -1, 1, 2);
    void *y = device_new(c, N);
    for (size_t i = 0; i < N; i++) {
        want[i] = x[i] + bias[i % PAIRS * HEADS + i / PAIRS % HEADS];
    }
    DEVICE_OK(kernel_cuda_bias_add(device_lane, y, device_put(c, x, N),
                                   device_put(c, bias, PAIRS * HEADS), BATCH, HEADS, PAIRS,
                                   c->type));
    device_equal("bias of many heads", c, y, want, N);
}

/* ---- pieces --------------------------------------------------------------------------------- */

/* Enough pieces for several launches, of all sizes, from the case's type to each; zeros between. */
static void test_pieces(const DeviceCase *c) {
    enum {
        PIECES = 50
    };
    for (int to = KERNEL_CUDA_F32; to <= KERNEL_CUDA_F16; to++) {
        DeviceCase other = {(KernelCudaType)to, 0, 0};
        KernelCudaPiece pieces[PIECES];
        size_t n = 0, size = kernel_cuda_type_bytes(other.type);
        for (size_t i = 0; i < PIECES; i++) {
            n += i % 7 * (i % 11 + 3);
        }
        n += 20000;
        g_autofree float *want = g_new(float, n), *x = device_random(c, n, -1, 1, 1);
        char *out = device_new(&other, n), *in = device_put(c, x, n);
        for (size_t i = 0, at = 0; i < PIECES; i++) {
            size_t rows = i == 20 ? 2 : i % 7, width = i == 20 ? 10000 : i % 11 + 3;
            rows = i == 20 ? 2 : rows;
            pieces[i] = (KernelCudaPiece){out + at * size,
                                          i % 5 ? in + at * kernel_cuda_type_bytes(c->type) : NULL,
                                          rows,
                                          width,
                                          width,
                                          width,
                                          other.type,
                                          c->type};
            for (size_t k = 0; k < rows * width; k++, at++) {
                want[at] = i % 5 ? x[at] : 0;
            }
            n = at;
        }
        DEVICE_OK(kernel_cuda_copy_pieces(device_lane, pieces, PIECES));
        device_equal("pieces", &other, out, want, n);
    }
}

/* A gathered slice dealt out: rows of ranks, a stride apart. */
static void test_strided_piece(const DeviceCase *c) {
    enum {
        RANKS = 3,
        SLICE = 40,
        CHUNK = 13
    };
    g_autofree float *x = device_random(c, RANKS * SLICE, -1, 1, 1);
    float want[RANKS * CHUNK];
    for (size_t i = 0; i < RANKS * CHUNK; i++) {
        want[i] = x[i / CHUNK * SLICE + 9 + i % CHUNK];
    }
    void *in = device_put(c, x, RANKS * SLICE), *out = device_new(c, RANKS * CHUNK);
    KernelCudaPiece piece = {out,     (char *)in + 9 * kernel_cuda_type_bytes(c->type),
                             RANKS,   CHUNK,
                             CHUNK,   SLICE,
                             c->type, c->type};
    DEVICE_OK(kernel_cuda_copy_pieces(device_lane, &piece, 1));
    device_equal("strided piece", c, out, want, RANKS * CHUNK);
}

/* From every place within 16 bytes to every other; what lies between the rows is left alone. */
static void test_pieces_anywhere(const DeviceCase *c) {
    enum {
        PLACES = 8,
        ROWS = 3,
        WIDTH = 45,
        FROM = 47, /* elements from row to row */
        TO = 52,
        EACH = (ROWS + 1) * TO
    };
    size_t n = (size_t)PLACES * PLACES * EACH, size = kernel_cuda_type_bytes(c->type);
    g_autofree float *x = device_random(c, ROWS * FROM + PLACES, -1, 1, 1);
    g_autofree float *want = g_new(float, n + 1);
    char *in = device_put(c, x, ROWS * FROM + PLACES), *out = device_new(c, n);
    KernelCudaPiece pieces[PLACES * PLACES];
    for (size_t i = 0; i <= n; i++) {
        want[i] = NAN;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(pieces); i++) {
        size_t from = i % PLACES, to = i * EACH + i / PLACES;
        pieces[i] = (KernelCudaPiece){out + to * size, in + from * size, ROWS, WIDTH, TO - 1, FROM,
                                      c->type,         c->type};
        for (size_t k = 0; k < ROWS * WIDTH; k++) {
            want[to + k / WIDTH * (TO - 1) + k % WIDTH] = x[from + k / WIDTH * FROM + k % WIDTH];
        }
    }
    DEVICE_OK(kernel_cuda_copy_pieces(device_lane, pieces, G_N_ELEMENTS(pieces)));
    device_equal("pieces anywhere", c, out, want, n);
}

/* ---- beyond 2^32 elements ------------------------------------------------------------------- */

/* Memory that only a few pages are touched of. */
static void *new_far(size_t bytes) {
#ifdef KERNEL_EMULATED
    void *far = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    g_assert_true(far != MAP_FAILED);
    cudaHostRegister(far, bytes, 0); /* a place that the emulator knows */
#else
    void *far = NULL;
    g_assert_cmpint(cudaMalloc(&far, bytes), ==, cudaSuccess);
#endif
    return far;
}

static void free_far(void *far, size_t bytes) {
#ifdef KERNEL_EMULATED
    cudaHostUnregister(far);
    munmap(far, bytes);
#else
    cudaFree(far);
#endif
}

/* Two rows of a table that lie 2^32 elements and one row apart: written, read and looked up. */
static void test_far(void) {
    enum {
        WIDTH = 8
    };
    DeviceCase c = {KERNEL_CUDA_BF16, 0, 0};
    const size_t apart = ((size_t)1 << 32) + WIDTH, bytes = (apart + WIDTH) * 2;
    const gint64 rows[] = {(gint64)(apart / WIDTH), 0};
    g_autofree float *x = device_random(&c, 2 * WIDTH, -1, 1, 1);
    float turned[2 * WIDTH + 1];
    memcpy(turned, x + WIDTH, WIDTH * sizeof *x);
    memcpy(turned + WIDTH, x, WIDTH * sizeof *x);
    void *far = new_far(bytes), *out = device_new(&c, 2 * WIDTH);
    void *in = device_put(&c, x, 2 * WIDTH), *found = device_new(&c, 2 * WIDTH);
    KernelCudaPiece there = {far, in, 2, WIDTH, apart, WIDTH, c.type, c.type};
    KernelCudaPiece back = {out, far, 2, WIDTH, WIDTH, apart, c.type, c.type};
    DEVICE_OK(kernel_cuda_copy_pieces(device_lane, &there, 1));
    DEVICE_OK(kernel_cuda_copy_pieces(device_lane, &back, 1));
    device_equal("there and back", &c, out, x, 2 * WIDTH);
    DEVICE_OK(kernel_cuda_embedding_forward(device_lane, found, far, device_put_i64(rows, 2), 2,
                                            apart / WIDTH + 1, WIDTH, c.type));
    device_equal("looked up", &c, found, turned, 2 * WIDTH);
    free_far(far, bytes);
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/embedding/both", test_embedding);
    DEVICE_TEST("/kernels-cuda/embedding/runs", test_embedding_runs);
    DEVICE_TEST_ONCE("/kernels-cuda/embedding/repeats", test_embedding_repeats);
    DEVICE_TEST_ONCE("/kernels-cuda/embedding/bad-index", test_bad_index);
    DEVICE_TEST("/kernels-cuda/embedding/bias-backward", test_bias_backward);
    DEVICE_TEST("/kernels-cuda/rope/whole", test_rope);
    DEVICE_TEST("/kernels-cuda/rope/pieces", test_rope_pieces);
    DEVICE_TEST_ONCE("/kernels-cuda/rope/turn", test_turn);
    DEVICE_TEST_ONCE("/kernels-cuda/rope/tables-of-ops", test_tables_of_ops);
    DEVICE_TEST_ONCE("/kernels-cuda/labels", test_labels);
    DEVICE_TEST("/kernels-cuda/columns", test_columns);
    DEVICE_TEST("/kernels-cuda/rope/table-mul", test_table_mul);
    DEVICE_TEST("/kernels-cuda/rope/pieces-of-long-rows", test_rope_pieces_of_long_rows);
    DEVICE_TEST("/kernels-cuda/heads/copies", test_heads);
    DEVICE_TEST("/kernels-cuda/heads/masks", test_masks);
    DEVICE_TEST("/kernels-cuda/heads/relative", test_relative);
    DEVICE_TEST("/kernels-cuda/heads/bias-of-many-heads", test_bias_of_many_heads);
    DEVICE_TEST("/kernels-cuda/copy/pieces", test_pieces);
    DEVICE_TEST("/kernels-cuda/copy/strided", test_strided_piece);
    DEVICE_TEST("/kernels-cuda/copy/anywhere", test_pieces_anywhere);
    DEVICE_TEST_ONCE("/kernels-cuda/copy/far", test_far);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
