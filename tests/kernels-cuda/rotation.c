/* tests/kernels-cuda/rotation.c - rotary embedding, whole and op by op, and rows of labels; against
 * the host's, or loops written here. */
#include "kernels/cuda/attention/columns.h"
#include "kernels/cuda/attention/positions.h"
#include "kernels/cuda/attention/rope.h"
#include "kernels/host/attention/rope.h"
#include "tests/kernels-cuda/device.h"

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
    DEVICE_OK(kernel_cuda_join_columns(device_lane, all, &first, &second, c->type, ROWS, c->type));
    device_equal("join columns", c, all, joined, ROWS * width);
    DeviceCase wide = {KERNEL_CUDA_F32, c->shift, 0};
    void *all_wide = device_new(&wide, ROWS * width);
    first.x = device_put(&wide, part, n);
    DEVICE_OK(
        kernel_cuda_join_columns(device_lane, all_wide, &first, &second, c->type, ROWS, wide.type));
    device_equal("join columns, wide", &wide, all_wide, joined, ROWS * width);
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
    KernelCudaRope rope = {TOKENS, HEADS, dim, SEQ, long_row, c->type, fp32.type, .wide = true};
    void *made = device_new(&fp32, n);
    DEVICE_OK(kernel_cuda_table_mul(device_lane, made, in, device_put(&fp32, t, SEQ * dim), &rope,
                                    false));
    device_equal("table mul, wide", &fp32, made, product, n);
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

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/rope/whole", test_rope);
    DEVICE_TEST("/kernels-cuda/rope/pieces", test_rope_pieces);
    DEVICE_TEST_ONCE("/kernels-cuda/rope/turn", test_turn);
    DEVICE_TEST_ONCE("/kernels-cuda/rope/tables-of-ops", test_tables_of_ops);
    DEVICE_TEST_ONCE("/kernels-cuda/labels", test_labels);
    DEVICE_TEST("/kernels-cuda/columns", test_columns);
    DEVICE_TEST("/kernels-cuda/rope/table-mul", test_table_mul);
    DEVICE_TEST("/kernels-cuda/rope/pieces-of-long-rows", test_rope_pieces_of_long_rows);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
