/* tests/kernels/norm.c - layer norm and RMS norm against their definitions in double. */
#include "kernels/host/rows/norm.h"
#include "tests/kernels/check.h"

#define EPS 1e-5f

typedef struct {
    size_t rows, width;
} Size;

static const Size sizes[] = {{1, 1}, {3, 7}, {5, 3}, {2, 33}, {7, 40}};

/* in is x[rows, width], weight[width], bias[width]. */
static void layernorm(const double *in, double *out, gpointer data) {
    const Size *size = data;
    const double *weight = in + size->rows * size->width;
    const double *bias = weight + size->width;

    for (size_t r = 0; r < size->rows; r++) {
        const double *x = in + r * size->width;
        double mean = 0.0, variance = 0.0;

        for (size_t i = 0; i < size->width; i++) {
            mean += x[i] / (double)size->width;
        }
        for (size_t i = 0; i < size->width; i++) {
            variance += (x[i] - mean) * (x[i] - mean) / (double)size->width;
        }
        for (size_t i = 0; i < size->width; i++) {
            out[r * size->width + i] =
                (x[i] - mean) / sqrt(variance + (double)EPS) * weight[i] + bias[i];
        }
    }
}

/* in is x[rows, width], weight[width]. */
static void rmsnorm(const double *in, double *out, gpointer data) {
    const Size *size = data;
    const double *weight = in + size->rows * size->width;

    for (size_t r = 0; r < size->rows; r++) {
        const double *x = in + r * size->width;
        double square = 0.0;

        for (size_t i = 0; i < size->width; i++) {
            square += x[i] * x[i] / (double)size->width;
        }
        for (size_t i = 0; i < size->width; i++) {
            out[r * size->width + i] = x[i] / sqrt(square + (double)EPS) * weight[i];
        }
    }
}

static void test_layernorm(void) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        Size size = sizes[s];
        size_t n = size.rows * size.width, w = size.width, n_in = n + 2 * w;
        g_autofree float *in = check_random(n_in, 0, 3, (guint32)s);
        g_autofree float *dy = check_random(n, -1, 1, 9);
        g_autofree float *y = check_poisoned(n);
        g_autofree float *mean = check_poisoned(size.rows);
        g_autofree float *rstd = check_poisoned(size.rows);
        g_autofree float *d_in = check_poisoned(n_in);
        g_autofree float *only = check_poisoned(n);
        g_autofree double *wide = check_doubles(in, n_in);
        g_autofree double *want = g_new(double, n);

        layernorm(wide, want, &size);
        kernel_layernorm_forward_f32(y, mean, rstd, in, in + n, in + n + w, size.rows, w, EPS);
        check_close("layernorm_forward", y, want, n, 2e-6, 2e-6);
        check_guard("layernorm mean", mean, size.rows);
        check_guard("layernorm rstd", rstd, size.rows);
        for (size_t r = 0; r < size.rows; r++) {
            double sum = 0.0;

            for (size_t i = 0; i < w; i++) {
                sum += wide[r * w + i];
            }
            g_assert_cmpfloat_with_epsilon(mean[r], sum / (double)w, 1e-6);
            g_assert_true(rstd[r] > 0.0f);
        }

        kernel_layernorm_backward_f32(d_in, d_in + n, d_in + n + w, dy, in, mean, rstd, in + n,
                                      size.rows, w);
        check_gradient("layernorm_backward", d_in, layernorm, &size, wide, n_in, dy, n, 5e-6, 5e-6);
        kernel_layernorm_backward_f32(only, NULL, NULL, dy, in, mean, rstd, in + n, size.rows, w);
        check_same("layernorm_backward dx alone", only, d_in, n);
    }
}

static void test_rmsnorm(void) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        Size size = sizes[s];
        size_t n = size.rows * size.width, w = size.width, n_in = n + w;
        g_autofree float *in = check_random(n_in, 0.5, 3, (guint32)s);
        g_autofree float *dy = check_random(n, -1, 1, 9);
        g_autofree float *y = check_poisoned(n);
        g_autofree float *rstd = check_poisoned(size.rows);
        g_autofree float *d_in = check_poisoned(n_in);
        g_autofree double *wide = check_doubles(in, n_in);
        g_autofree double *want = g_new(double, n);

        rmsnorm(wide, want, &size);
        kernel_rmsnorm_forward_f32(y, rstd, in, in + n, size.rows, w, EPS);
        check_close("rmsnorm_forward", y, want, n, 1e-6, 1e-6);
        check_guard("rmsnorm rstd", rstd, size.rows);
        kernel_rmsnorm_backward_f32(d_in, d_in + n, dy, in, rstd, in + n, size.rows, w);
        check_gradient("rmsnorm_backward", d_in, rmsnorm, &size, wide, n_in, dy, n, 5e-6, 2e-6);
    }
}

/* Without weight and bias: the same as with ones and zeros. */
static void test_plain(void) {
    const size_t rows = 3, w = 33, n = rows * w;
    g_autofree float *x = check_random(n, -1, 1, 1);
    g_autofree float *dy = check_random(n, -1, 1, 2);
    g_autofree float *ones = check_random(w, 1, 1, 3);
    g_autofree float *zeros = check_random(w, 0, 0, 3);
    g_autofree float *mean = check_poisoned(rows);
    g_autofree float *rstd = check_poisoned(rows);
    g_autofree float *a = check_poisoned(n);
    g_autofree float *b = check_poisoned(n);

    kernel_layernorm_forward_f32(a, mean, rstd, x, ones, zeros, rows, w, EPS);
    kernel_layernorm_forward_f32(b, mean, rstd, x, NULL, NULL, rows, w, EPS);
    check_same("layernorm without weight", b, a, n);
    kernel_layernorm_backward_f32(a, NULL, NULL, dy, x, mean, rstd, ones, rows, w);
    kernel_layernorm_backward_f32(b, NULL, NULL, dy, x, mean, rstd, NULL, rows, w);
    check_same("layernorm_backward without weight", b, a, n);
    kernel_rmsnorm_forward_f32(a, rstd, x, ones, rows, w, EPS);
    kernel_rmsnorm_forward_f32(b, rstd, x, NULL, rows, w, EPS);
    check_same("rmsnorm without weight", b, a, n);
    kernel_rmsnorm_backward_f32(a, NULL, dy, x, rstd, ones, rows, w);
    kernel_rmsnorm_backward_f32(b, NULL, dy, x, rstd, NULL, rows, w);
    check_same("rmsnorm_backward without weight", b, a, n);
}

/* A mean a thousand deviations away, and more columns than one block of parameter gradients. */
static void test_far_and_wide(void) {
    Size size = {3, 2500};
    size_t n = size.rows * size.width, w = size.width;
    g_autofree float *in = check_random(n + 2 * w, 999, 1001, 5);
    g_autofree float *dy = check_random(n, -1, 1, 6);
    g_autofree float *y = check_poisoned(n);
    g_autofree float *mean = check_poisoned(size.rows);
    g_autofree float *rstd = check_poisoned(size.rows);
    g_autofree float *dweight = check_poisoned(w);
    g_autofree float *dbias = check_poisoned(w);
    g_autofree double *wide = check_doubles(in, n + 2 * w);
    g_autofree double *want = g_new(double, n);
    g_autofree double *want_weight = g_new0(double, w);
    g_autofree double *want_bias = g_new0(double, w);

    for (size_t i = 0; i < w; i++) {
        in[n + i] = 1.0f;
        in[n + w + i] = 0.0f;
        wide[n + i] = 1.0;
        wide[n + w + i] = 0.0;
    }
    layernorm(wide, want, &size);
    kernel_layernorm_forward_f32(y, mean, rstd, in, in + n, in + n + w, size.rows, w, EPS);
    check_close("layernorm far from 0", y, want, n, 1e-5, 1.5e-4); /* the mean is 24 bits */
    kernel_layernorm_backward_f32(NULL, dweight, dbias, dy, in, mean, rstd, in + n, size.rows, w);
    for (size_t i = 0; i < n; i++) {
        want_weight[i % w] += (double)dy[i] * want[i];
        want_bias[i % w] += (double)dy[i];
    }
    check_close("layernorm dweight", dweight, want_weight, w, 1e-5, 5e-4);
    check_close("layernorm dbias", dbias, want_bias, w, 1e-7, 1e-7);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/norm/layernorm", test_layernorm);
    g_test_add_func("/kernels/norm/rmsnorm", test_rmsnorm);
    g_test_add_func("/kernels/norm/plain", test_plain);
    g_test_add_func("/kernels/norm/far-and-wide", test_far_and_wide);
    return g_test_run();
}
