/* tests/kernels-cuda/experts.c - routing, sorting and products by expert against the host's. */
#include <math.h>
#include <string.h>

#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/products/grouped.h"
#include "kernels/cuda/rows/embedding.h"
#include "kernels/host/experts.h"
#include "kernels/host/rows/embedding.h"
#include "tests/kernels-cuda/device.h"

static gint64 *new_indices(size_t n, size_t below) {
    gint64 *index = g_new(gint64, n);
    for (size_t i = 0; i < n; i++) {
        index[i] = g_test_rand_int_range(0, (gint32)below);
    }
    return index;
}

static bool is_bad(uint32_t *ret_op) {
    cudaStreamSynchronize(kernel_cuda_stream(device_lane));
    return kernel_cuda_bad_index(device_lane, ret_op);
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* Halves have equals enough; some are planted, and numbers that are none. */
static void test_top_k(const DeviceCase *c) {
    static const size_t shapes[][3] = {{1, 1, 1}, {37, 6, 3}, {19, 128, 8}, {3, 70, 70}, {9, 8, 2}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], cols = shapes[s][1], k = shapes[s][2];
        g_autofree float *x = device_random(c, rows * cols, -1, 1, 1);
        g_autofree float *want = g_new(float, rows *k);
        g_autofree gint64 *want_index = g_new(gint64, rows * k);
        void *y = device_new(c, rows * k);
        gint64 *index = device_new_bytes(rows * k * sizeof *index);
        for (size_t i = 0; cols > 1 && i < 5; i++) {
            x[(size_t)g_test_rand_int_range(0, (gint32)(rows * cols))] = NAN;
            x[(size_t)g_test_rand_int_range(0, (gint32)(rows * cols))] = -INFINITY;
            x[(size_t)g_test_rand_int_range(0, (gint32)(rows * cols))] = 0.5f;
        }
        kernel_top_k_f32(want, want_index, x, rows, cols, k);
        DEVICE_OK(kernel_cuda_top_k(device_lane, y, index, device_put(c, x, rows * cols), rows,
                                    cols, k, c->type));
        device_equal_bytes("which are chosen", index, want_index, rows * k * sizeof *want_index);
        device_equal("their scores", c, y, want, rows * k);
    }
}

/* ---- sorting -------------------------------------------------------------------------------- */

/* Groups of one digit of the sort, of two, more than a block counts; some are empty. */
static void test_sort(void) {
    static const size_t shapes[][2] = {{1, 1}, {74, 5}, {1500, 1}, {3000, 128}, {900, 3000}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t n = shapes[s][0], groups = shapes[s][1];
        g_autofree gint64 *index = new_indices(n, groups), *counts = g_new(gint64, groups);
        g_autofree gint64 *sorted = g_new(gint64, n), *order = g_new(gint64, n);
        g_autofree gint64 *tokens = g_new(gint64, n);
        g_autofree gint32 *ends = g_new(gint32, groups);
        gint64 *at = device_put_i64(index, n), *got_counts = device_new_bytes(groups * 8);
        gint64 *got_sorted = device_new_bytes(n * 8), *got_order = device_new_bytes(n * 8);
        gint64 *got_tokens = device_new_bytes(n * 8);
        gint32 *got_ends = device_new_bytes(groups * sizeof *got_ends);
        g_assert_true(kernel_count_i64(counts, index, n, groups));
        g_assert_true(kernel_sort_i64(sorted, order, index, n, groups));
        g_assert_true(kernel_ends_i32(ends, counts, groups));
        kernel_divide_down_i64(tokens, order, 3, n);
        DEVICE_OK(kernel_cuda_count(device_lane, got_counts, at, n, groups));
        DEVICE_OK(kernel_cuda_sort(device_lane, got_sorted, got_order, at, n, groups));
        DEVICE_OK(kernel_cuda_ends(device_lane, got_ends, got_counts, groups));
        DEVICE_OK(kernel_cuda_divide_down_i64(device_lane, got_tokens, got_order, n, 3));
        device_equal_bytes("counts", got_counts, counts, groups * sizeof *counts);
        device_equal_bytes("sorted", got_sorted, sorted, n * sizeof *sorted);
        device_equal_bytes("order", got_order, order, n * sizeof *order);
        device_equal_bytes("ends", got_ends, ends, groups * sizeof *ends);
        device_equal_bytes("tokens", got_tokens, tokens, n * sizeof *tokens);
    }
}

/* The same in 32 bits, and an order turned round. */
static void test_tally(void) {
    static const size_t shapes[][2] = {{1, 1}, {74, 5}, {3000, 128}, {900, 3000}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t n = shapes[s][0], groups = shapes[s][1];
        g_autofree gint64 *index = new_indices(n, groups), *order = g_new(gint64, n);
        g_autofree gint64 *sorted = g_new(gint64, n), *turned = g_new(gint64, n);
        g_autofree gint64 *position = g_new(gint64, n), *rest = g_new(gint64, n);
        g_autofree gint32 *narrow = g_new(gint32, n), *tally = g_new(gint32, groups);
        g_autofree gint32 *ends = g_new(gint32, groups);
        g_assert_true(kernel_narrow_i64(narrow, index, n));
        g_assert_true(kernel_tally_i32(tally, narrow, n, groups));
        g_assert_true(kernel_tally_ends_i32(ends, tally, groups));
        g_assert_true(kernel_sort_i64(sorted, order, index, n, groups));
        g_assert_true(kernel_invert_i64(turned, position, order, n));
        for (size_t i = 0; i < n; i++) {
            rest[i] = order[i] % 3;
        }
        gint64 *on_index = device_put_i64(index, n), *on_order = device_put_i64(order, n);
        gint32 *got_narrow = device_new_bytes(n * 4), *got_tally = device_new_bytes(groups * 4);
        gint32 *got_ends = device_new_bytes(groups * 4);
        gint64 *got_turned = device_new_bytes(n * 8), *got_position = device_new_bytes(n * 8);
        gint64 *got_rest = device_new_bytes(n * 8);
        DEVICE_OK(kernel_cuda_narrow_i64(device_lane, got_narrow, on_index, n));
        DEVICE_OK(kernel_cuda_tally(device_lane, got_tally, got_narrow, n, groups));
        DEVICE_OK(kernel_cuda_tally_ends(device_lane, got_ends, got_tally, groups));
        DEVICE_OK(kernel_cuda_invert(device_lane, got_turned, got_position, on_order, n));
        DEVICE_OK(kernel_cuda_remainder_i64(device_lane, got_rest, on_order, n, 3));
        device_equal_bytes("narrow", got_narrow, narrow, n * 4);
        device_equal_bytes("tally", got_tally, tally, groups * 4);
        device_equal_bytes("ends", got_ends, ends, groups * 4);
        device_equal_bytes("turned round", got_turned, turned, n * 8);
        device_equal_bytes("positions", got_position, position, n * 8);
        device_equal_bytes("rest", got_rest, rest, n * 8);
    }
}

static void test_numbers_outside_32_bits(void) {
    gint64 wide[] = {1, G_MAXINT32, (gint64)G_MAXINT32 + 1}, order[] = {1, 0, 3};
    gint32 index[] = {0, 2, -1}, want[] = {1, 0};
    uint32_t op;
    gint32 *narrow = device_new_bytes(sizeof index), *tally = device_new_bytes(sizeof want);
    gint64 *turned = device_new_bytes(sizeof order), *position = device_new_bytes(sizeof order);
    DEVICE_OK(kernel_cuda_narrow_i64(device_lane, narrow, device_put_i64(wide, 2), 2));
    g_assert_false(is_bad(&op));
    DEVICE_OK(kernel_cuda_narrow_i64(device_lane, narrow, device_put_i64(wide, 3), 3));
    g_assert_true(is_bad(&op));
    DEVICE_OK(kernel_cuda_tally(device_lane, tally, device_put_bytes(index, sizeof index), 3, 2));
    device_equal_bytes("tally", tally, want, sizeof want);
    g_assert_true(is_bad(&op));
    DEVICE_OK(kernel_cuda_invert(device_lane, turned, position, device_put_i64(order, 3), 3));
    g_assert_true(is_bad(&op));
}

static void test_numbers_outside(void) {
    enum {
        GROUPS = 4
    };
    gint64 index[] = {0, 3, GROUPS, 1, -1}, want_counts[GROUPS] = {1, 1, 0, 1};
    gint64 want_sorted[] = {0, 1, 3, GROUPS, GROUPS}, want_order[] = {0, 3, 1, 2, 4};
    gint64 many[] = {G_MAXINT32, 1, 0, 0};
    uint32_t op;
    gint64 *at = device_put_i64(index, 5), *counts = device_new_bytes(sizeof want_counts);
    gint64 *sorted = device_new_bytes(sizeof index), *order = device_new_bytes(sizeof index);
    gint32 *ends = device_new_bytes(GROUPS * sizeof *ends);
    kernel_cuda_tag(device_lane, 7);
    DEVICE_OK(kernel_cuda_count(device_lane, counts, at, 5, GROUPS));
    device_equal_bytes("counts", counts, want_counts, sizeof want_counts);
    g_assert_true(is_bad(&op) && op == 7);
    DEVICE_OK(kernel_cuda_sort(device_lane, sorted, order, at, 5, GROUPS));
    device_equal_bytes("sorted", sorted, want_sorted, sizeof want_sorted);
    device_equal_bytes("order", order, want_order, sizeof want_order);
    g_assert_true(is_bad(&op));
    DEVICE_OK(kernel_cuda_ends(device_lane, ends, counts, GROUPS));
    g_assert_false(is_bad(&op));
    DEVICE_OK(kernel_cuda_ends(device_lane, ends, device_put_i64(many, GROUPS), GROUPS));
    g_assert_true(is_bad(&op));
    many[0] = -1;
    DEVICE_OK(kernel_cuda_ends(device_lane, ends, device_put_i64(many, GROUPS), GROUPS));
    g_assert_true(is_bad(&op));
    g_assert_nonnull(kernel_cuda_top_k(device_lane, sorted, order, at, 1, 2, 3, KERNEL_CUDA_F32));
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Rows of one number, of fewer than a warp has lanes, and wide ones; several to a row, and none. */
static void test_rows(const DeviceCase *c) {
    static const size_t shapes[][3] = {
        {1, 1, 1}, {300, 1, 150}, {74, 5, 37}, {60, 48, 700}, {9, 520, 4}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t n = shapes[s][0], width = shapes[s][1], rows = shapes[s][2];
        g_autofree gint64 *index = new_indices(n, rows);
        g_autofree float *a = device_random(c, rows * width, -1, 1, 1);
        g_autofree float *x = device_random(c, n * width, -1, 1, 2);
        g_autofree float *want = g_new(float, MAX(n, rows) * width);
        gint64 *at = device_put_i64(index, n);
        void *on_device = device_put(c, a, rows * width), *y = device_new(c, rows * width);
        void *taken = device_new(c, n * width);
        g_assert_true(kernel_embedding_forward_f32(want, a, index, n, rows, width));
        DEVICE_OK(kernel_cuda_embedding_forward(device_lane, taken, on_device, at, n, rows, width,
                                                c->type));
        device_equal("rows of", c, taken, want, n * width);
        g_assert_true(kernel_add_to_rows_f32(want, a, x, index, n, width, rows));
        DEVICE_OK(kernel_cuda_add_to_rows(device_lane, y, on_device, device_put(c, x, n * width),
                                          at, n, rows, width, c->type));
        device_close("added to rows", c, y, want, rows * width, 1e-6, 1e-5);
    }
}

static void test_each(const DeviceCase *c) {
    static const size_t shapes[][3] = {{1, 1, 1}, {37, 2, 48}, {19, 8, 7}, {3, 1, 130}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], each = shapes[s][1], width = shapes[s][2];
        size_t few = rows * width, many = few * each;
        g_autofree float *x = device_random(c, many, -1, 1, 1), *want = g_new(float, many);
        void *y = device_new(c, few), *again = device_new(c, many);
        kernel_sum_each_f32(want, x, rows, each, width, width);
        DEVICE_OK(kernel_cuda_sum_each(device_lane, y, device_put(c, x, many), rows, each, width,
                                       width, c->type));
        device_close("sums", c, y, want, few, 1e-6, 1e-6);
        kernel_repeat_each_f32(want, x, rows, each, width);
        DEVICE_OK(kernel_cuda_repeat_each(device_lane, again, device_put(c, x, few), rows, each,
                                          width, c->type));
        device_equal("repeated", c, again, want, many);
    }
}

/* ---- products ------------------------------------------------------------------------------- */

/* m, n, k, groups: less than a tile and more (of 260 rows one of two groups has more), whole 16
 * bytes and not, more groups than a warp has lanes. */
static const size_t shapes[][4] = {{1, 1, 1, 1},      {37, 7, 5, 4},    {40, 24, 16, 3},
                                   {260, 136, 40, 2}, {70, 24, 48, 34}, {90, 33, 130, 2}};

/* Random ends; the first group and others may be empty. */
static gint32 *new_ends(size_t m, size_t groups) {
    gint32 *ends = g_new(gint32, groups);
    for (size_t g = 0; g < groups; g++) {
        ends[g] = g + 1 == groups ? (gint32)m : g_test_rand_int_range(0, (gint32)m + 1);
    }
    for (size_t g = 1; g < groups; g++) {
        for (size_t at = g; at && ends[at] < ends[at - 1]; at--) {
            gint32 larger = ends[at - 1];
            ends[at - 1] = ends[at];
            ends[at] = larger;
        }
    }
    return ends;
}

typedef struct {
    size_t m, n, k, groups;
    float *x, *w, *dy;
    gint32 *ends;
    void *on_x, *on_w, *on_dy;
    gint32 *on_ends;
} Product;

static Product new_product(const DeviceCase *c, size_t shape) {
    size_t m = shapes[shape][0], n = shapes[shape][1], k = shapes[shape][2];
    size_t groups = shapes[shape][3];
    Product p = {m, n, k, groups, .x = device_random(c, m * k, -1, 1, 1)};
    p.w = device_random(c, groups * n * k, -1, 1, 2);
    p.dy = device_random(c, m * n, -1, 1, 3);
    p.ends = new_ends(m, groups);
    p.on_x = device_put(c, p.x, m * k);
    p.on_w = device_put(c, p.w, groups * n * k);
    p.on_dy = device_put(c, p.dy, m * n);
    p.on_ends = device_put_bytes(p.ends, groups * sizeof *p.ends);
    return p;
}

static void product_clear(Product *p) {
    g_free(p->x);
    g_free(p->w);
    g_free(p->dy);
    g_free(p->ends);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Product, product_clear)

static void test_products(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        g_auto(Product) p = new_product(c, s);
        size_t m = p.m, n = p.n, k = p.k, groups = p.groups, of_w = groups * n * k;
        g_autofree float *want = g_new(float, MAX(of_w, MAX(m * n, m * k)));
        void *y = device_new(c, m * n), *dx = device_new(c, m * k), *dw = device_new(c, of_w);
        g_assert_true(kernel_grouped_linear_f32(want, p.x, p.w, p.ends, m, n, k, groups));
        DEVICE_OK(kernel_cuda_grouped_linear_forward(device_lane, y, p.on_x, p.on_w, p.on_ends, m,
                                                     n, k, groups, c->type));
        device_close("grouped product", c, y, want, m * n, 1e-6, 2e-5);
        size_t parts = n % 2 ? 1 : 2;
        void *apart = device_new(c, m * n);
        g_assert_true(kernel_grouped_parts_f32(want, p.x, p.w, p.ends, m, n, k, groups, parts));
        DEVICE_OK(kernel_cuda_grouped_parts_forward(device_lane, apart, p.on_x, p.on_w, p.on_ends,
                                                    m, n, k, groups, parts, c->type));
        device_close("its parts", c, apart, want, m * n, 1e-6, 2e-5);
        g_assert_true(kernel_grouped_linear_dx_f32(want, p.dy, p.w, p.ends, m, n, k, groups));
        DEVICE_OK(kernel_cuda_grouped_linear_backward_input(device_lane, dx, p.on_dy, p.on_w,
                                                            p.on_ends, m, n, k, groups, c->type));
        device_close("its dx", c, dx, want, m * k, 1e-6, 2e-5);
        g_assert_true(kernel_grouped_linear_dw_f32(want, p.dy, p.x, p.ends, m, n, k, groups));
        DEVICE_OK(kernel_cuda_grouped_linear_backward_weight(device_lane, dw, p.on_dy, p.on_x,
                                                             p.on_ends, m, n, k, groups, c->type));
        device_close("its dw", c, dw, want, of_w, 1e-6, 2e-5);
    }
}

/* The same bits twice. */
static void test_products_repeat(void) {
    DeviceCase c = {KERNEL_CUDA_BF16, 0, 0x1p-8};
    g_auto(Product) p = new_product(&c, 3);
    size_t bytes = p.m * p.n * 2;
    void *y[] = {device_new(&c, p.m * p.n), device_new(&c, p.m * p.n)};
    for (unsigned i = 0; i < G_N_ELEMENTS(y); i++) {
        DEVICE_OK(kernel_cuda_grouped_linear_forward(device_lane, y[i], p.on_x, p.on_w, p.on_ends,
                                                     p.m, p.n, p.k, p.groups, c.type));
    }
    g_autofree char *first = device_get_bytes(y[0], bytes);
    device_equal_bytes("again", y[1], first, bytes);
}

/* Nothing but the output is touched, whatever they are: guards lie around all arrays. Of ends that
 * fall, two groups may write one row. */
static void test_bad_ends(void) {
    static const gint32 bad[][3] = {
        {10, 20, 39}, {10, 20, 41},        {-3, 20, 40}, {10, 90, 40},
#ifndef KERNEL_RACED
        {10, 9, 40},  {G_MAXINT32, 0, 40},
#endif
    };
    DeviceCase c = {KERNEL_CUDA_F32, 0, 0};
    uint32_t op;
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_auto(Product) p = new_product(&c, 2);
        size_t m = p.m, n = p.n, k = p.k, groups = p.groups;
        gint32 *ends = device_put_bytes(bad[i], sizeof bad[i]);
        void *y = device_new(&c, m * n), *dx = device_new(&c, m * k);
        void *dw = device_new(&c, groups * n * k);
        kernel_cuda_tag(device_lane, 3);
        DEVICE_OK(kernel_cuda_grouped_linear_forward(device_lane, y, p.on_x, p.on_w, ends, m, n, k,
                                                     groups, c.type));
        g_assert_true(is_bad(&op) && op == 3);
        DEVICE_OK(kernel_cuda_grouped_linear_backward_input(device_lane, dx, p.on_dy, p.on_w, ends,
                                                            m, n, k, groups, c.type));
        g_assert_true(is_bad(&op));
        DEVICE_OK(kernel_cuda_grouped_linear_backward_weight(device_lane, dw, p.on_dy, p.on_x, ends,
                                                             m, n, k, groups, c.type));
        g_assert_true(is_bad(&op));
    }
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/experts/top-k", test_top_k);
    DEVICE_TEST_ONCE("/kernels-cuda/experts/sort", test_sort);
    DEVICE_TEST_ONCE("/kernels-cuda/experts/tally", test_tally);
    DEVICE_TEST_ONCE("/kernels-cuda/experts/numbers-outside", test_numbers_outside);
    DEVICE_TEST_ONCE("/kernels-cuda/experts/numbers-outside-32-bits", test_numbers_outside_32_bits);
    DEVICE_TEST("/kernels-cuda/experts/each", test_each);
    DEVICE_TEST("/kernels-cuda/experts/rows", test_rows);
    DEVICE_TEST("/kernels-cuda/experts/products", test_products);
    DEVICE_TEST_ONCE("/kernels-cuda/experts/products-repeat", test_products_repeat);
    DEVICE_TEST_ONCE("/kernels-cuda/experts/bad-ends", test_bad_ends);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
