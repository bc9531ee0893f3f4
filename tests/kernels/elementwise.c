/* tests/kernels/elementwise.c - one operation of IEEE arithmetic each, so the results are exact. */
#include "kernels/host/elementwise.h"
#include "tests/kernels/check.h"

static const size_t sizes[] = {0, 1, 3, 7, 33, 257};

static void test_binary(void) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s];
        g_autofree float *a = check_random(n, -3, 3, 1);
        g_autofree float *b = check_random(n, -3, 3, 2);
        g_autofree float *want = check_poisoned(n);
        g_autofree float *out = check_poisoned(n);

        for (size_t i = 0; i < n; i++) {
            want[i] = a[i] * b[i];
        }
        kernel_mul_f32(out, a, b, n);
        check_same("mul", out, want, n);
        for (size_t i = 0; i < n; i++) {
            volatile float product = 0.3f * b[i]; /* rounded before the sum */

            want[i] = a[i] + product;
        }
        kernel_add_scaled_f32(out, a, b, 0.3f, n);
        check_same("add_scaled", out, want, n);
        for (size_t i = 0; i < n; i++) {
            want[i] = a[i] + b[i];
        }
        kernel_add_f32(out, a, b, n);
        check_same("add", out, want, n);
        kernel_copy_f32(out, b, n);
        kernel_add_f32(out, a, out, n);
        check_same("add in place of b", out, want, n);
        kernel_copy_f32(out, a, n);
        check_same("copy", out, a, n);
        kernel_copy_f32(out, out, n);
        check_same("copy to itself", out, a, n);
        for (size_t i = 0; i < n; i++) {
            want[i] = a[i] + b[i];
        }
        kernel_add_inplace_f32(a, b, n);
        check_same("add_inplace", a, want, n);
    }
}

static void test_unary(void) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s];
        g_autofree float *x = check_random(n, -3, 3, 1);
        g_autofree float *want = check_poisoned(n);
        g_autofree float *out = check_poisoned(n);
        g_autofree gint64 *count = g_new(gint64, n + 1);

        kernel_fill_f32(out, 2.5f, n);
        for (size_t i = 0; i < n; i++) {
            want[i] = 2.5f;
        }
        check_same("fill", out, want, n);
        kernel_zero_f32(out, n);
        for (size_t i = 0; i < n; i++) {
            want[i] = 0.0f;
        }
        check_same("zero", out, want, n);
        for (size_t i = 0; i < n; i++) {
            want[i] = -1.7f * x[i];
        }
        kernel_scale_f32(out, x, -1.7f, n);
        check_same("scale", out, want, n);
        kernel_scale_f32(x, x, -1.7f, n);
        check_same("scale in place", x, want, n);

        count[n] = -77;
        kernel_arange_i64(count, G_GINT64_CONSTANT(1) << 40, -3, n);
        for (size_t i = 0; i < n; i++) {
            g_assert_cmpint(count[i], ==, (G_GINT64_CONSTANT(1) << 40) - 3 * (gint64)i);
        }
        g_assert_cmpint(count[n], ==, -77);
    }
}

static void test_rows(void) {
    const size_t rows = 5, width = 33, n = rows * width;
    g_autofree float *x = check_random(n, -3, 3, 1);
    g_autofree float *row = check_random(width, -3, 3, 2);
    g_autofree float *want = check_poisoned(n);
    g_autofree float *out = check_poisoned(n);

    for (size_t i = 0; i < n; i++) {
        want[i] = x[i] + row[i % width];
    }
    kernel_add_rows_f32(out, x, row, rows, width);
    check_same("add_rows", out, want, n);
    kernel_add_rows_f32(x, x, row, rows, width);
    check_same("add_rows in place", x, want, n);
}

static void test_broadcast_products(void) {
    const size_t shapes[][2] = {{1, 1}, {5, 33}, {7, 1}, {3, 257}};

    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], width = shapes[s][1], n = rows * width;
        g_autofree float *x = check_random(n, -3, 3, 1);
        g_autofree float *row = check_random(width, -3, 3, 2);
        g_autofree float *column = check_random(rows, -3, 3, 3);
        g_autofree float *want = check_poisoned(n);
        g_autofree float *out = check_poisoned(n);

        for (size_t i = 0; i < n; i++) {
            want[i] = x[i] * row[i % width];
        }
        kernel_mul_rows_f32(out, x, row, rows, width);
        check_same("mul_rows", out, want, n);
        for (size_t i = 0; i < n; i++) {
            want[i] = 0.3f * column[i / width];
        }
        kernel_spread_f32(out, column, 0.3f, rows, width);
        check_same("spread", out, want, n);
        for (size_t i = 0; i < n; i++) {
            want[i] = x[i] * column[i / width];
        }
        kernel_mul_columns_f32(out, x, column, rows, width);
        check_same("mul_columns", out, want, n);
        kernel_mul_columns_f32(x, x, column, rows, width);
        check_same("mul_columns in place", x, want, n);
    }
}

static void test_power(void) {
    static const double exponents[] = {1, 2, 3, 0.5, -0.5, 1.7, -2};

    for (size_t e = 0; e < G_N_ELEMENTS(exponents); e++) {
        for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
            size_t n = sizes[s];
            g_autofree float *x = check_random(n, 0.01, 9, 1);
            g_autofree float *out = check_poisoned(n);
            g_autofree double *want = g_new(double, n + 1);

            for (size_t i = 0; i < n; i++) {
                want[i] = pow((double)x[i], exponents[e]);
            }
            kernel_power_f32(out, x, exponents[e], n);
            check_close("power", out, want, n, 2e-7, 0);
        }
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/elementwise/binary", test_binary);
    g_test_add_func("/kernels/elementwise/unary", test_unary);
    g_test_add_func("/kernels/elementwise/rows", test_rows);
    g_test_add_func("/kernels/elementwise/broadcast-products", test_broadcast_products);
    g_test_add_func("/kernels/elementwise/power", test_power);
    return g_test_run();
}
