/* tests/kernels/experts.c - routing against what it must be, products by expert against sums in
 * double.
 */
#include "kernels/host/experts.h"

#include <glib.h>
#include <math.h>

#include "tests/kernels/check.h"

enum {
    ROWS = 37,
    COLS = 6,
    K = 3,
    PAIRS = ROWS * K,
    WIDTH = 5,
    OUT = 7
};

static void test_top_k(void) {
    g_autofree float *x = check_random(ROWS * COLS, -1, 1, 1), *y = check_poisoned(PAIRS);
    int64_t index[PAIRS];
    x[0] = x[3] = x[5] = 9;          /* equals: the first first */
    x[COLS + 1] = x[COLS + 4] = NAN; /* before all numbers, as torch.topk has them */
    x[COLS + 2] = INFINITY;
    kernel_top_k_f32(y, index, x, ROWS, COLS, K);
    check_guard("top_k", y, PAIRS);
    g_assert_cmpint(index[0], ==, 0);
    g_assert_cmpint(index[1], ==, 3);
    g_assert_cmpint(index[2], ==, 5);
    g_assert_cmpint(index[K], ==, 1);
    g_assert_cmpint(index[K + 1], ==, 4);
    g_assert_cmpint(index[K + 2], ==, 2);
    g_assert_true(isnan(y[K]) && isnan(y[K + 1]) && isinf(y[K + 2]));
    for (size_t r = 2; r < ROWS; r++) {
        unsigned above_last = 0;
        for (size_t j = 0; j < K; j++) {
            g_assert_cmpfloat(y[r * K + j], ==, x[r * COLS + (size_t)index[r * K + j]]);
            g_assert_true(j == 0 || y[r * K + j] <= y[r * K + j - 1]);
        }
        for (size_t c = 0; c < COLS; c++) {
            above_last += x[r * COLS + c] > y[r * K + K - 1];
        }
        g_assert_cmpuint(above_last, <, K);
    }
}

static void test_pick_columns(void) {
    const float x[2 * 3] = {1, 2, 3, 4, 5, 6};
    const double picked[4] = {3, 1, 5, 5}, back[6] = {1, 0, 3, 0, 10, 0};
    int64_t index[4] = {2, 0, 1, 1};
    g_autofree float *y = check_poisoned(4), *dx = check_poisoned(6);
    g_assert_true(kernel_pick_columns_f32(y, x, index, 2, 3, 2));
    check_close("pick_columns", y, picked, 4, 0, 0);
    g_assert_true(kernel_pick_columns_backward_f32(dx, y, index, 2, 3, 2));
    check_close("pick_columns_backward", dx, back, 6, 0, 0);
    index[3] = 3;
    g_assert_false(kernel_pick_columns_f32(y, x, index, 2, 3, 2));
    g_assert_false(kernel_pick_columns_backward_f32(dx, y, index, 2, 3, 2));
}

static void test_columns(void) {
    const float x[4] = {1, 2, 3, 4}, column[2] = {2, 4};
    g_autofree float *y = check_poisoned(4);
    kernel_add_column_f32(y, x, column, 2, 2);
    check_close("add_column", y, (double[]){3, 4, 7, 8}, 4, 0, 0);
    kernel_divide_column_f32(y, x, column, 2, 2);
    check_close("divide_column", y, (double[]){0.5, 1, 0.75, 1}, 4, 0, 0);
}

/* An expert without rows is among them. */
static void test_sort(void) {
    enum {
        GROUPS = 5
    };
    int64_t index[PAIRS], counts[GROUPS], sorted[PAIRS], order[PAIRS], tokens[PAIRS];
    int32_t ends[GROUPS];
    for (size_t i = 0; i < PAIRS; i++) {
        index[i] = (int64_t)(i * 7 % GROUPS);
        index[i] = index[i] == 2 ? 4 : index[i];
    }
    g_assert_true(kernel_count_i64(counts, index, PAIRS, GROUPS));
    g_assert_true(kernel_sort_i64(sorted, order, index, PAIRS, GROUPS));
    g_assert_true(kernel_ends_i32(ends, counts, GROUPS));
    kernel_divide_down_i64(tokens, order, K, PAIRS);
    g_assert_cmpint(counts[2], ==, 0);
    g_assert_cmpint(ends[GROUPS - 1], ==, PAIRS);
    for (size_t i = 0; i < PAIRS; i++) {
        g_assert_cmpint(sorted[i], ==, index[order[i]]);
        g_assert_cmpint(tokens[i], ==, order[i] / K);
        g_assert_cmpint((int64_t)i, <, ends[sorted[i]]);
        g_assert_true(i == 0 || sorted[i] > sorted[i - 1] ||
                      (sorted[i] == sorted[i - 1] && order[i] > order[i - 1]));
    }
    index[1] = GROUPS;
    g_assert_false(kernel_count_i64(counts, index, PAIRS, GROUPS));
    g_assert_false(kernel_sort_i64(sorted, order, index, PAIRS, GROUPS));
    counts[0] = INT32_MAX;
    counts[1] = 1;
    g_assert_false(kernel_ends_i32(ends, counts, 2));
}

/* y, dx and dw by the rows of each group in double. */
static void test_products(void) {
    enum {
        GROUPS = 4
    };
    static const int32_t ends[GROUPS] = {10, 10, 30, ROWS};
    static double want_y[ROWS * OUT], want_dx[ROWS * WIDTH], want_dw[GROUPS * OUT * WIDTH];
    g_autofree float *x = check_random(ROWS * WIDTH, -1, 1, 2);
    g_autofree float *w = check_random(GROUPS * OUT * WIDTH, -1, 1, 3);
    g_autofree float *dy = check_random(ROWS * OUT, -1, 1, 4), *y = check_poisoned(ROWS * OUT);
    g_autofree float *dx = check_poisoned(ROWS * WIDTH);
    g_autofree float *dw = check_poisoned(GROUPS * OUT * WIDTH);
    for (size_t r = 0, g = 0; r < ROWS; r++) {
        while ((int32_t)r >= ends[g]) {
            g++;
        }
        for (size_t n = 0; n < OUT; n++) {
            for (size_t k = 0; k < WIDTH; k++) {
                size_t at = (g * OUT + n) * WIDTH + k;
                want_y[r * OUT + n] += (double)x[r * WIDTH + k] * (double)w[at];
                want_dx[r * WIDTH + k] += (double)dy[r * OUT + n] * (double)w[at];
                want_dw[at] += (double)dy[r * OUT + n] * (double)x[r * WIDTH + k];
            }
        }
    }
    g_assert_true(kernel_grouped_linear_f32(y, x, w, ends, ROWS, OUT, WIDTH, GROUPS));
    g_assert_true(kernel_grouped_linear_dx_f32(dx, dy, w, ends, ROWS, OUT, WIDTH, GROUPS));
    g_assert_true(kernel_grouped_linear_dw_f32(dw, dy, x, ends, ROWS, OUT, WIDTH, GROUPS));
    check_close("grouped_linear", y, want_y, ROWS * OUT, 1e-6, 1e-6);
    check_close("grouped_linear_dx", dx, want_dx, ROWS * WIDTH, 1e-6, 1e-6);
    check_close("grouped_linear_dw", dw, want_dw, GROUPS * OUT * WIDTH, 1e-6, 1e-6);
    static const int32_t falling[GROUPS] = {10, 9, 30, ROWS}, short_of[GROUPS] = {10, 10, 30, 36};
    g_assert_false(kernel_grouped_linear_f32(y, x, w, falling, ROWS, OUT, WIDTH, GROUPS));
    g_assert_false(kernel_grouped_linear_dx_f32(dx, dy, w, short_of, ROWS, OUT, WIDTH, GROUPS));
    g_assert_false(kernel_grouped_linear_dw_f32(dw, dy, x, falling, ROWS, OUT, WIDTH, GROUPS));
}

/* The same numbers as the whole product's, one matrix of columns behind the other. */
static void test_parts(void) {
    enum {
        GROUPS = 3,
        PARTS = 2,
        COLUMNS = 4
    };
    static const int32_t ends[GROUPS] = {10, 10, ROWS}, falling[GROUPS] = {10, 9, ROWS};
    static double want[ROWS * PARTS * COLUMNS];
    g_autofree float *x = check_random(ROWS * WIDTH, -1, 1, 2);
    g_autofree float *w = check_random(GROUPS * PARTS * COLUMNS * WIDTH, -1, 1, 3);
    g_autofree float *y = check_poisoned(ROWS * PARTS * COLUMNS);
    for (size_t r = 0; r < ROWS; r++) {
        size_t g = r < 10 ? 0 : 2; /* no row is the second's */
        for (size_t c = 0; c < PARTS * COLUMNS; c++) {
            double *to = &want[(c / COLUMNS * ROWS + r) * COLUMNS + c % COLUMNS];
            for (size_t k = 0; k < WIDTH; k++) {
                *to += (double)x[r * WIDTH + k] * (double)w[(g * PARTS * COLUMNS + c) * WIDTH + k];
            }
        }
    }
    g_assert_true(
        kernel_grouped_parts_f32(y, x, w, ends, ROWS, PARTS * COLUMNS, WIDTH, GROUPS, PARTS));
    check_close("grouped_parts", y, want, ROWS * PARTS * COLUMNS, 1e-6, 1e-6);
    g_assert_false(
        kernel_grouped_parts_f32(y, x, w, falling, ROWS, PARTS * COLUMNS, WIDTH, GROUPS, PARTS));
}

static void test_narrow(void) {
    enum {
        GROUPS = 4
    };
    int64_t x[5] = {0, 0, 3, 1, 3};
    int32_t narrow[5], tally[GROUPS], ends[GROUPS];
    static const int32_t of_each[GROUPS] = {2, 1, 0, 2}, up_to[GROUPS] = {2, 3, 3, 5};
    g_assert_true(kernel_narrow_i64(narrow, x, 5));
    g_assert_true(kernel_tally_i32(tally, narrow, 5, GROUPS));
    g_assert_true(kernel_tally_ends_i32(ends, tally, GROUPS));
    for (size_t i = 0; i < 5; i++) {
        g_assert_cmpint(narrow[i], ==, x[i]);
    }
    for (size_t g = 0; g < GROUPS; g++) {
        g_assert_cmpint(tally[g], ==, of_each[g]);
        g_assert_cmpint(ends[g], ==, up_to[g]);
    }
    narrow[4] = GROUPS;
    g_assert_false(kernel_tally_i32(tally, narrow, 5, GROUPS));
    tally[0] = INT32_MAX;
    tally[1] = 1;
    g_assert_false(kernel_tally_ends_i32(ends, tally, GROUPS));
    x[2] = (int64_t)INT32_MAX + 1;
    g_assert_false(kernel_narrow_i64(narrow, x, 5));
}

static void test_invert(void) {
    int64_t order[4] = {2, 0, 3, 1}, index[4], position[4];
    g_assert_true(kernel_invert_i64(index, position, order, 4));
    for (int64_t i = 0; i < 4; i++) {
        g_assert_cmpint(index[order[i]], ==, i);
        g_assert_cmpint(position[i], ==, i);
    }
    order[1] = 4;
    g_assert_false(kernel_invert_i64(index, position, order, 4));
}

static void test_each(void) {
    const float x[12] = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60};
    const double twice[8] = {9, 12, 9, 12, 90, 120, 90, 120};
    g_autofree float *sums = check_poisoned(4), *repeated = check_poisoned(8);
    kernel_sum_each_f32(sums, x, 2, 3, 2, 2);
    check_close("sum_each", sums, (double[]){9, 12, 90, 120}, 4, 0, 0);
    check_guard("sum_each", sums, 4);
    kernel_repeat_each_f32(repeated, sums, 2, 2, 2);
    check_close("repeat_each", repeated, twice, 8, 0, 0);
    check_guard("repeat_each", repeated, 8);
}

static void test_add_to_rows(void) {
    const float a[6] = {1, 2, 3, 4, 5, 6}, x[6] = {10, 20, 30, 40, 50, 60};
    int64_t index[3] = {2, 0, 2};
    g_autofree float *y = check_poisoned(6);
    g_assert_true(kernel_add_to_rows_f32(y, a, x, index, 3, 2, 3));
    check_close("add_to_rows", y, (double[]){31, 42, 3, 4, 65, 86}, 6, 0, 0);
    index[0] = -1;
    g_assert_false(kernel_add_to_rows_f32(y, a, x, index, 3, 2, 3));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/experts/the largest, of equals the first", test_top_k);
    g_test_add_func("/kernels/experts/picked columns", test_pick_columns);
    g_test_add_func("/kernels/experts/a number a row", test_columns);
    g_test_add_func("/kernels/experts/sorted by expert", test_sort);
    g_test_add_func("/kernels/experts/products by expert", test_products);
    g_test_add_func("/kernels/experts/products by expert in parts", test_parts);
    g_test_add_func("/kernels/experts/numbers in 32 bits", test_narrow);
    g_test_add_func("/kernels/experts/an order turned round", test_invert);
    g_test_add_func("/kernels/experts/sums of a row's terms", test_each);
    g_test_add_func("/kernels/experts/rows added to rows", test_add_to_rows);
    return g_test_run();
}
