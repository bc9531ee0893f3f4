/* tests/kernels/reduce.c - sums against sums in double. */
#include "kernels/host/reduce.h"
#include "tests/kernels/check.h"

static const size_t sizes[] = {1, 3, 7, 33, 1000, 12345};

static void mean(const double *in, double *out, gpointer data) {
    size_t n = *(size_t *)data;

    out[0] = 0.0;
    for (size_t i = 0; i < n; i++) {
        out[0] += in[i] / (double)n;
    }
}

static void test_whole(void) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s];
        g_autofree float *x = check_random(n, -1, 3, (guint32)s);
        g_autofree float *out = check_poisoned(1);
        g_autofree double *wide = check_doubles(x, n);
        double average = 0.0, squares = 0.0, root;

        for (size_t i = 0; i < n; i++) {
            average += wide[i] / (double)n;
            squares += wide[i] * wide[i];
        }
        root = sqrt(squares);
        kernel_mean_forward_f32(out, x, n);
        check_close("mean", out, &average, 1, 1e-7, 1e-12);
        kernel_norm_f32(out, x, n);
        check_close("norm", out, &root, 1, 1e-7, 0.0);
    }
}

static void test_mean_backward(void) {
    for (size_t s = 0; s < 4; s++) {
        size_t n = sizes[s];
        g_autofree float *x = check_random(n, -1, 3, (guint32)s);
        g_autofree float *dout = check_random(1, -1, 1, 5);
        g_autofree float *dx = check_poisoned(n);
        g_autofree double *wide = check_doubles(x, n);

        kernel_mean_backward_f32(dx, dout, n);
        check_gradient("mean_backward", dx, mean, &n, wide, n, dout, 1, 1e-6, 1e-9);
    }
}

/* A float accumulator would lose the small ones. */
static void test_precision(void) {
    const size_t n = 1000001;
    g_autofree float *x = check_poisoned(n);
    g_autofree float *out = check_poisoned(1);
    double want = (1e6 + (double)0.01f * 1e6) / (double)n;

    for (size_t i = 0; i < n; i++) {
        x[i] = 0.01f;
    }
    x[0] = 1e6f;
    kernel_mean_forward_f32(out, x, n);
    check_close("mean", out, &want, 1, 1e-7, 0.0);
}

static void test_columns(void) {
    const size_t shapes[][2] = {{1, 1}, {7, 3}, {33, 33}, {5, 2500}};

    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], cols = shapes[s][1];
        g_autofree float *x = check_random(rows * cols, -1, 1, 1);
        g_autofree float *out = check_poisoned(cols);
        g_autofree double *want = g_new0(double, cols);

        for (size_t i = 0; i < rows * cols; i++) {
            want[i % cols] += (double)x[i];
        }
        kernel_column_sum_f32(out, x, rows, cols);
        check_close("column_sum", out, want, cols, 1e-7, 1e-12);
    }
}

static void test_rows(void) {
    const size_t shapes[][2] = {{1, 1}, {7, 3}, {33, 33}, {5, 2500}};

    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], cols = shapes[s][1];
        g_autofree float *x = check_random(rows * cols, -1, 1, 1);
        g_autofree float *out = check_poisoned(rows);
        g_autofree double *want = g_new0(double, rows);

        for (size_t i = 0; i < rows * cols; i++) {
            want[i / cols] += 0.25 * (double)x[i];
        }
        kernel_row_sum_f32(out, x, 0.25f, rows, cols);
        check_close("row_sum", out, want, rows, 1e-7, 1e-12);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/reduce/whole", test_whole);
    g_test_add_func("/kernels/reduce/mean-backward", test_mean_backward);
    g_test_add_func("/kernels/reduce/precision", test_precision);
    g_test_add_func("/kernels/reduce/columns", test_columns);
    g_test_add_func("/kernels/reduce/rows", test_rows);
    return g_test_run();
}
