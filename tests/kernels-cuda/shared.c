/* tests/kernels-cuda/shared.c - what layers that ranks share need, against loops written here. */
#include <math.h>
#include <string.h>

#include "kernels/cuda/attention/columns.h"
#include "kernels/cuda/attention/positions.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/ranks/shared-loss.h"
#include "kernels/cuda/ranks/shared.h"
#include "kernels/cuda/reduce.h"
#include "kernels/host/rows/loss.h"
#include "tests/kernels-cuda/device.h"

static const size_t sizes[] = {1, 7, 300, 2500};

/* From -low on, up to high. */
static gint64 *new_numbers(size_t n, gint64 low, gint64 high) {
    gint64 *x = g_new(gint64, n);
    for (size_t i = 0; i < n; i++) {
        x[i] = g_test_rand_int_range((gint32)-low, (gint32)high);
    }
    return x;
}

/* ---- indices -------------------------------------------------------------------------------- */

static void test_parts_of_a_table(void) {
    enum {
        PART = 5,
        RANKS = 3
    };
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s];
        for (gint64 rank = 0; rank < RANKS; rank++) {
            g_autofree gint64 *index = new_numbers(n, 0, PART * RANKS);
            g_autofree gint64 *want_local = g_new(gint64, n);
            g_autofree guint8 *want = g_new(guint8, 3 * n);
            gint64 *at = device_put_i64(index, n), *copy = device_new_bytes(n * sizeof *copy);
            gint64 *local = device_new_bytes(n * sizeof *local);
            guint8 *below = device_new_bytes(n), *above = device_new_bytes(n);
            guint8 *outside = device_new_bytes(n);
            for (size_t i = 0; i < n; i++) {
                want[i] = index[i] / PART < rank;
                want[n + i] = index[i] / PART > rank;
                want[2 * n + i] = index[i] / PART != rank;
                want_local[i] = index[i] / PART == rank ? index[i] % PART : 0;
            }
            DEVICE_OK(kernel_cuda_outside_mask(device_lane, below, above, outside, at, n,
                                               rank * PART, PART));
            device_equal_bytes("below", below, want, n);
            device_equal_bytes("above", above, want + n, n);
            device_equal_bytes("outside", outside, want + 2 * n, n);
            DEVICE_OK(
                kernel_cuda_local_index(device_lane, copy, local, at, outside, n, rank * PART));
            device_equal_bytes("copy", copy, index, n * sizeof *index);
            device_equal_bytes("local index", local, want_local, n * sizeof *want_local);
        }
    }
}

static void test_zero_masked(const DeviceCase *c) {
    static const size_t shapes[][2] = {{1, 1}, {5, 48}, {300, 7}, {40, 130}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], width = shapes[s][1];
        g_autofree float *x = device_random(c, rows * width, -2, 2, 1);
        g_autofree guint8 *mask = g_new(guint8, rows);
        void *on_device = device_put(c, x, rows * width);
        for (size_t r = 0; r < rows; r++) {
            mask[r] = g_test_rand_bit();
            for (size_t i = 0; mask[r] && i < width; i++) {
                x[r * width + i] = 0;
            }
        }
        DEVICE_OK(kernel_cuda_zero_masked(device_lane, on_device, device_put_bytes(mask, rows),
                                          rows, width, c->type));
        device_equal("zero masked", c, on_device, x, rows * width);
    }
}

/* ---- targets -------------------------------------------------------------------------------- */

static void test_targets(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s];
        g_autofree gint64 *target = new_numbers(n, 3, 9), *want_safe = g_new(gint64, n);
        g_autofree guint8 *want_counted = g_new(guint8, n);
        g_autofree float *x = device_random(c, n, -2, 2, 1), *kept = g_new(float, n);
        g_autofree float *spread = g_new(float, n);
        gint64 want_count = 0, *at = device_put_i64(target, n);
        for (size_t i = 0; i < n; i++) {
            want_counted[i] = target[i] >= 0;
            want_safe[i] = target[i] >= 0 ? target[i] : 0;
            want_count += target[i] >= 0;
            kept[i] = target[i] >= 0 ? x[i] : 0;
            spread[i] = target[i] >= 0 ? x[0] : 0;
        }
        float number = (float)want_count;
        guint8 *counted[4];
        for (unsigned i = 0; i < G_N_ELEMENTS(counted); i++) {
            counted[i] = device_new_bytes(n);
        }
        gint64 *safe = device_new_bytes(n * sizeof *safe), *count = device_new_bytes(sizeof *count);
        void *in = device_put(c, x, n), *y = device_new(c, n), *z = device_new(c, n);
        void *as_number = device_new(c, 1);
        DEVICE_OK(kernel_cuda_safe_target(device_lane, counted[0], safe, at, n));
        DEVICE_OK(kernel_cuda_count_targets(device_lane, counted[1], count, at, n));
        DEVICE_OK(kernel_cuda_keep_counted(device_lane, counted[2], y, in, at, n, false, c->type));
        DEVICE_OK(kernel_cuda_keep_counted(device_lane, counted[3], z, in, at, n, true, c->type));
        DEVICE_OK(kernel_cuda_as_number(device_lane, as_number, count, 1, c->type));
        for (unsigned i = 0; i < G_N_ELEMENTS(counted); i++) {
            device_equal_bytes("counted", counted[i], want_counted, n);
        }
        device_equal_bytes("safe target", safe, want_safe, n * sizeof *want_safe);
        device_equal_bytes("count", count, &want_count, sizeof want_count);
        device_equal("kept", c, y, kept, n);
        device_equal("spread", c, z, spread, n);
        device_equal("as a number", c, as_number, &number, 1);
    }
}

static void test_no_targets(void) {
    gint64 nothing = 0, *count = device_new_bytes(sizeof *count);
    guint8 *counted = device_new_bytes(1);
    gint64 *target = device_new_bytes(sizeof *target);
    DEVICE_OK(kernel_cuda_count_targets(device_lane, counted, count, target, 0));
    device_equal_bytes("count of none", count, &nothing, sizeof nothing);
}

/* ---- the loss ------------------------------------------------------------------------------- */

static void test_largest_of_rows(const DeviceCase *c) {
    static const size_t shapes[][2] = {{1, 1}, {5, 48}, {9, 77}, {3, 1030}, {70, 8}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], cols = shapes[s][1];
        g_autofree float *x = device_random(c, rows * cols, -9, -1, 1), *want = g_new(float, rows);
        x[cols / 2] = -INFINITY;
        if (cols > 1) {
            x[cols - 1] = NAN;
        }
        for (size_t r = 0; r < rows; r++) {
            want[r] = -INFINITY;
            for (size_t i = 0; i < cols; i++) {
                want[r] = fmaxf(want[r], x[r * cols + i]);
            }
        }
        void *y = device_new(c, rows);
        DEVICE_OK(kernel_cuda_row_max(device_lane, y, device_put(c, x, rows * cols), rows, cols,
                                      c->type));
        device_equal("the largest", c, y, want, rows);
    }
}

static void test_exp_and_log(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s];
        g_autofree float *x = device_random(c, n, -20, 2, 1), *want = g_new(float, n);
        g_autofree float *positive = device_random(c, n, 0.01, 90, 2);
        g_autofree float *by = device_random(c, n, 0.5, 3, 3);
        void *y = device_new(c, n), *of = device_put(c, positive, n);
        for (size_t i = 0; i < n; i++) {
            want[i] = (float)exp((double)x[i]);
        }
        DEVICE_OK(kernel_cuda_exp(device_lane, y, device_put(c, x, n), n, c->type));
        device_close("exp", c, y, want, n, 3e-7, 0);
        for (size_t i = 0; i < n; i++) {
            want[i] = (float)log((double)positive[i]);
        }
        DEVICE_OK(kernel_cuda_log(device_lane, y, of, n, c->type));
        device_close("log", c, y, want, n, 3e-7, 1e-7);
        for (size_t i = 0; i < n; i++) {
            want[i] = positive[i] / by[i];
        }
        DEVICE_OK(kernel_cuda_divide(device_lane, y, of, device_put(c, by, n), n, c->type));
        device_equal("quotient", c, y, want, n);
    }
}

static void test_columns_by_index(const DeviceCase *c) {
    static const size_t shapes[][3] = {{1, 1, 1}, {300, 7, 1}, {40, 96, 1}, {33, 16, 5}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], cols = shapes[s][1], k = shapes[s][2];
        g_autofree float *x = device_random(c, rows * cols, -2, 2, 1),
                         *want = g_new(float, rows *k);
        g_autofree float *dy = device_random(c, rows * k, -2, 2, 2);
        g_autofree float *dx = g_new0(float, rows *cols);
        g_autofree gint64 *index = new_numbers(rows * k, 0, (gint64)cols);
        gint64 *at = device_put_i64(index, rows * k);
        void *y = device_new(c, rows * k), *got = device_new(c, rows * cols);
        for (size_t i = 0; i < rows * k; i++) {
            want[i] = x[i / k * cols + (size_t)index[i]];
            dx[i / k * cols + (size_t)index[i]] += dy[i];
        }
        DEVICE_OK(kernel_cuda_pick_columns(device_lane, y, device_put(c, x, rows * cols), at, rows,
                                           cols, k, c->type));
        device_equal("picked", c, y, want, rows * k);
        DEVICE_OK(kernel_cuda_pick_columns_backward(device_lane, got, device_put(c, dy, rows * k),
                                                    at, rows, cols, k, c->type));
        device_equal("picked, backward", c, got, dx, rows * cols);
    }
}

static void test_gradient(const DeviceCase *c) {
    enum {
        COLS = 11
    };
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t rows = sizes[s];
        g_autofree float *x = device_random(c, rows * COLS, -2, 2, 1), *wide = g_new(float, rows);
        g_autofree float *update = g_new(float, rows);
        g_autofree gint64 *index = new_numbers(rows, 0, COLS), *position = g_new(gint64, rows);
        g_autofree guint8 *mask = g_new(guint8, rows);
        void *on_device = device_put(c, x, rows * COLS);
        void *got_wide = device_new(c, rows), *got = device_new(c, rows);
        for (size_t i = 0; i < rows; i++) {
            position[i] = (gint64)(rows - 1 - i);
            mask[i] = g_test_rand_bit();
            wide[i] = mask[i];
            update[i] = wide[i] - 1;
            x[(size_t)position[i] * COLS + (size_t)index[i]] = update[i];
        }
        DEVICE_OK(kernel_cuda_picked_gradient(device_lane, got_wide, got,
                                              device_put_bytes(mask, rows), rows, c->type));
        device_equal("mask", c, got_wide, wide, rows);
        device_equal("picked gradient", c, got, update, rows);
        DEVICE_OK(kernel_cuda_put_column(device_lane, on_device, got, device_put_i64(index, rows),
                                         device_put_i64(position, rows), rows, COLS, c->type));
        device_equal("put", c, on_device, x, rows * COLS);
    }
}

/* The second of three parts of the columns; some targets are in others, some do not count. */
static void test_loss_of_a_part(const DeviceCase *c) {
    static const size_t shapes[][2] = {{1, 3}, {5, 48}, {70, 7}, {9, 1030}, {2, 9001}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], width = shapes[s][1], n = rows * width;
        gint64 first = (gint64)width, all = 3 * (gint64)width;
        g_autofree float *x = device_random(c, n, -5, 5, 1), *less = g_new0(float, n);
        g_autofree gint64 *target = new_numbers(rows, 2, all);
        g_autofree float *most = g_new(float, rows), *sum = g_new(float, rows);
        g_autofree float *picked = g_new(float, rows), *y = g_new(float, n), *dx = g_new(float, n);
        g_autofree guint8 *counted = g_new(guint8, rows);
        float loss, total, dloss = 0.7f;
        target[0] = first + (gint64)width - 1;
        kernel_largest_f32(most, x, rows, width);
        kernel_sum_of_exps_f32(sum, x, most, rows, width);
        gint64 *on_target = device_put_i64(target, rows);
        void *logits = device_put(c, x, n), *got_dx = device_new(c, n);
        float *got_most = device_new_floats(rows), *got_sum = device_new_floats(rows);
        float *got_picked = device_new_floats(rows), *got_less = device_put_floats(less, n);
        float *got_loss = device_new_floats(1), *got_total = device_new_floats(1);
        guint8 *got_counted = device_new_bytes(rows);
        DEVICE_OK(kernel_cuda_largest(device_lane, got_most, logits, rows, width, c->type));
        device_close_floats("largest", got_most, most, rows, 0, 0);
        DEVICE_OK(
            kernel_cuda_sum_of_exps(device_lane, got_sum, logits, got_most, rows, width, c->type));
        device_close_floats("sums", got_sum, sum, rows, 2e-6, 0);
        g_assert_true(kernel_pick_targets_f32(picked, counted, less, target, x, most, sum, rows,
                                              width, first, all));
        DEVICE_OK(kernel_cuda_pick_targets(device_lane, got_picked, got_counted, got_less,
                                           on_target, logits, got_most, got_sum, rows, width, first,
                                           all, c->type));
        device_close_floats("picked", got_picked, picked, rows, 2e-6, 2e-6);
        device_equal_bytes("counted", got_counted, counted, rows);
        device_close_floats("less", got_less, less, n, 0, 0);
        kernel_mean_picked_f32(&loss, &total, target, picked, rows);
        DEVICE_OK(
            kernel_cuda_mean_picked(device_lane, got_loss, got_total, on_target, got_picked, rows));
        device_close_floats("loss", got_loss, &loss, 1, 2e-6, 2e-6);
        device_close_floats("total", got_total, &total, 1, 0, 0);
        kernel_add_softmax_f32(y, less, x, most, sum, rows, width);
        DEVICE_OK(kernel_cuda_add_softmax(device_lane, got_less, got_less, logits, got_most,
                                          got_sum, rows, width, c->type));
        device_close_floats("less and the softmax", got_less, y, n, 2e-6, 2e-6);
        kernel_scale_counted_f32(dx, y, counted, &dloss, &total, rows, width);
        DEVICE_OK(kernel_cuda_scale_counted(device_lane, got_dx, got_less, got_counted,
                                            device_put_floats(&dloss, 1), got_total, rows, width,
                                            c->type));
        device_close("dlogits", c, got_dx, dx, n, 2e-6, 2e-6);
    }
}

static bool is_bad(uint32_t *ret_op) {
    cudaStreamSynchronize(kernel_cuda_stream(device_lane));
    return kernel_cuda_bad_index(device_lane, ret_op);
}

static void test_bad_index(void) {
    gint64 index[] = {0, 4, -1}, position[] = {0, 1, 2};
    float x[3 * 4] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, want[] = {1, 0, 0};
    float dy[] = {7, 8, 9}, want_dx[3 * 4] = {7}, want_put[3 * 4];
    uint32_t op;
    gint64 *at = device_put_i64(index, 3), *rows = device_put_i64(position, 3);
    float *in = device_put_floats(x, 12), *y = device_new_floats(3), *dx = device_new_floats(12);
    float *d = device_put_floats(dy, 3);
    kernel_cuda_tag(device_lane, 9);
    DEVICE_OK(kernel_cuda_pick_columns(device_lane, y, in, at, 3, 4, 1, KERNEL_CUDA_F32));
    device_close_floats("picked", y, want, 3, 0, 0);
    g_assert_true(is_bad(&op) && op == 9);
    DEVICE_OK(kernel_cuda_pick_columns_backward(device_lane, dx, d, at, 3, 4, 1, KERNEL_CUDA_F32));
    device_close_floats("backward", dx, want_dx, 12, 0, 0);
    g_assert_true(is_bad(&op));
    memcpy(want_put, x, sizeof x);
    want_put[0] = 7;
    DEVICE_OK(kernel_cuda_put_column(device_lane, in, d, at, rows, 3, 4, KERNEL_CUDA_F32));
    device_close_floats("put", in, want_put, 12, 0, 0);
    g_assert_true(is_bad(&op));
    gint64 target[] = {-1, 7, 8}; /* of 8 columns */
    float numbers[] = {1, 2, 3}, less[12] = {0};
    float *most = device_put_floats(numbers, 3), *sum = device_put_floats(numbers, 3);
    float *on_less = device_put_floats(less, 12);
    for (size_t n = 2; n <= 3; n++) {
        DEVICE_OK(kernel_cuda_pick_targets(device_lane, y, device_new_bytes(3), on_less,
                                           device_put_i64(target, 3), in, most, sum, n, 4, 0, 8,
                                           KERNEL_CUDA_F32));
        g_assert_true(is_bad(&op) == (n == 3));
    }
    device_close_floats("less", on_less, less, 12, 0, 0);
}

static void add_tests(void) {
    DEVICE_TEST_ONCE("/kernels-cuda/shared/parts-of-a-table", test_parts_of_a_table);
    DEVICE_TEST("/kernels-cuda/shared/zero-masked", test_zero_masked);
    DEVICE_TEST("/kernels-cuda/shared/targets", test_targets);
    DEVICE_TEST_ONCE("/kernels-cuda/shared/no-targets", test_no_targets);
    DEVICE_TEST("/kernels-cuda/shared/largest-of-rows", test_largest_of_rows);
    DEVICE_TEST("/kernels-cuda/shared/exp-and-log", test_exp_and_log);
    DEVICE_TEST("/kernels-cuda/shared/columns-by-index", test_columns_by_index);
    DEVICE_TEST("/kernels-cuda/shared/gradient", test_gradient);
    DEVICE_TEST("/kernels-cuda/shared/loss-of-a-part", test_loss_of_a_part);
    DEVICE_TEST_ONCE("/kernels-cuda/shared/bad-index", test_bad_index);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
