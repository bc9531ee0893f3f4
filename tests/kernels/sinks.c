/* tests/kernels/sinks.c - sinks behind rows of scores, and numbers held within limits. */
#include "kernels/host/sinks.h"

#include <glib.h>
#include <math.h>

#include "tests/kernels/check.h"

enum {
    BATCH = 2,
    HEADS = 3,
    ROWS = 5,
    COLS = 4,
    ALL_ROWS = BATCH * HEADS * ROWS,
    JOINED = ALL_ROWS * (COLS + 1)
};

static void test_join(void) {
    g_autofree float *x = check_random(ALL_ROWS * COLS, -1, 1, 1),
                     *sink = check_random(HEADS, -1, 1, 2), *y = check_poisoned(JOINED);
    double want[JOINED];
    for (size_t b = 0, to = 0; b < BATCH; b++) {
        for (size_t h = 0; h < HEADS; h++) {
            for (size_t r = 0; r < ROWS; r++) {
                for (size_t c = 0; c < COLS; c++) {
                    want[to++] = (double)x[((b * HEADS + h) * ROWS + r) * COLS + c];
                }
                want[to++] = (double)sink[h];
            }
        }
    }
    kernel_join_sinks_f32(y, x, sink, BATCH, HEADS, ROWS, COLS);
    check_guard("join_sinks", y, JOINED);
    check_close("join_sinks", y, want, JOINED, 0, 0);
}

static void test_sum(void) {
    g_autofree float *x = check_random(JOINED, -1, 1, 3), *y = check_poisoned(HEADS);
    double want[HEADS] = {0};
    for (size_t r = 0; r < ALL_ROWS; r++) {
        want[r / ROWS % HEADS] += (double)x[r * (COLS + 1) + COLS];
    }
    kernel_sum_sinks_f32(y, x, BATCH, HEADS, ROWS, COLS);
    check_guard("sum_sinks", y, HEADS);
    check_close("sum_sinks", y, want, HEADS, 1e-6, 0);
}

/* The odd numbers of pairs, one of which is no number, and the first two of rows of three. */
static void test_clamp(void) {
    const float pairs[] = {0, 8, 0, -8, 0, 7, 0, NAN}, rows[] = {1, 2, 9, 3, 4, 9};
    const double two[] = {1, 2, 2.5, 2.5};
    g_autofree float *y = check_poisoned(4);
    kernel_clamp_columns_f32(y, pairs, 4, 1, 2, 1, -7, 7);
    g_assert_cmpfloat(y[0], ==, 7);
    g_assert_cmpfloat(y[1], ==, -7);
    g_assert_cmpfloat(y[2], ==, 7);
    g_assert_true(isnan(y[3]));
    kernel_clamp_columns_f32(y, rows, 2, 2, 3, 0, -INFINITY, 2.5f);
    check_close("clamp_columns", y, two, 4, 0, 0);
}

static void test_limits(void) {
    const float pairs[] = {0, 8, 0, -8, 0, 7, 0, NAN}, dy[] = {1, 2, 3, 4};
    const uint8_t at_most[] = {0, 1, 1, 0}, at_least[] = {1, 0, 1, 0};
    const double kept[] = {0, 2, 3, 0};
    uint8_t mask[4];
    g_autofree float *dx = check_poisoned(4);
    kernel_limit_mask_f32(mask, pairs, 4, 1, 2, 1, -1, 7);
    g_assert_cmpmem(mask, 4, at_least, 4);
    kernel_limit_mask_f32(mask, pairs, 4, 1, 2, 1, 1, 7);
    g_assert_cmpmem(mask, 4, at_most, 4);
    kernel_where_mask_f32(dx, mask, dy, 0, 4);
    check_close("where_mask", dx, kept, 4, 0, 0);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sinks/join", test_join);
    g_test_add_func("/sinks/sum", test_sum);
    g_test_add_func("/sinks/clamp", test_clamp);
    g_test_add_func("/sinks/limits", test_limits);
    return g_test_run();
}
