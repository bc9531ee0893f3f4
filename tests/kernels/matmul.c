/* tests/kernels/matmul.c - matrix products against triple loops in double. */
#include "kernels/host/products/matmul.h"
#include "kernels/host/reduce.h"
#include "tests/kernels/check.h"

static const size_t sizes[] = {1, 3, 7, 33};

/* Element (i, j) of op(x), rows of the stored x being ld apart. */
static double at(const float *x, size_t ld, KernelTranspose transpose, size_t i, size_t j) {
    return (double)(transpose == KERNEL_TRANSPOSE ? x[j * ld + i] : x[i * ld + j]);
}

static void try_gemm(KernelTranspose ta, KernelTranspose tb, size_t m, size_t n, size_t k,
                     float alpha, float beta, size_t slack) {
    size_t lda = (ta == KERNEL_TRANSPOSE ? m : k) + slack;
    size_t ldb = (tb == KERNEL_TRANSPOSE ? k : n) + slack;
    size_t ldc = n + slack;
    g_autofree float *a = check_random(lda * (ta == KERNEL_TRANSPOSE ? k : m), -1, 1, 1);
    g_autofree float *b = check_random(ldb * (tb == KERNEL_TRANSPOSE ? n : k), -1, 1, 2);
    g_autofree float *c = beta == 0.0f ? check_poisoned(m * ldc) : check_random(m * ldc, -1, 1, 3);
    g_autofree double *want = check_doubles(c, m * ldc);
    g_autofree double *row = g_new(double, n);
    g_autofree float *got = check_poisoned(n);

    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double sum = beta == 0.0f ? 0.0 : (double)beta * want[i * ldc + j];

            for (size_t l = 0; l < k; l++) {
                sum += (double)alpha * at(a, lda, ta, i, l) * at(b, ldb, tb, l, j);
            }
            want[i * ldc + j] = sum;
        }
    }
    kernel_gemm_f32(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            got[j] = c[i * ldc + j];
            row[j] = want[i * ldc + j];
        }
        check_close("gemm", got, row, n, 1e-6, 1e-6 * (double)(k + 1));
        for (size_t j = n; j < ldc; j++) { /* the gap between rows is left alone */
            g_assert_true(isnan(c[i * ldc + j]) == isnan(want[i * ldc + j]));
            g_assert_true(isnan(want[i * ldc + j]) || (double)c[i * ldc + j] == want[i * ldc + j]);
        }
    }
    check_guard("gemm", c, m * ldc);
}

static void test_gemm(void) {
    const KernelTranspose both[] = {KERNEL_NO_TRANSPOSE, KERNEL_TRANSPOSE};

    for (size_t s = 0; s < 64; s++) {
        for (size_t t = 0; t < 4; t++) {
            try_gemm(both[t & 1], both[t >> 1], sizes[s & 3], sizes[s >> 2 & 3], sizes[s >> 4],
                     1.5f, (s & 1) != 0 ? 0.0f : -0.5f, t);
        }
    }
}

static void test_empty(void) {
    g_autofree float *c = check_poisoned(12);
    g_autofree double *zero = g_new0(double, 12);

    kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_NO_TRANSPOSE, 3, 4, 0, 1.0f, c, 1, c, 4, 0.0f, c,
                    4);
    check_close("gemm with k = 0", c, zero, 12, 0.0, 0.0);
    kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_NO_TRANSPOSE, 0, 4, 2, 1.0f, c, 2, c, 4, 0.0f, c,
                    4);
    kernel_linear_forward_f32(c, c, c, c, 0, 4, 2);
    check_close("gemm with m = 0", c, zero, 12, 0.0, 0.0);
}

typedef struct {
    size_t m, n, k;
} Linear;

/* in is x[m, k], w[n, k], bias[n] one after the other. */
static void linear(const double *in, double *out, gpointer data) {
    const Linear *size = data;
    const double *w = in + size->m * size->k;
    const double *bias = w + size->n * size->k;

    for (size_t i = 0; i < size->m; i++) {
        for (size_t j = 0; j < size->n; j++) {
            double sum = bias[j];

            for (size_t l = 0; l < size->k; l++) {
                sum += in[i * size->k + l] * w[j * size->k + l];
            }
            out[i * size->n + j] = sum;
        }
    }
}

static void try_linear(size_t m, size_t n, size_t k) {
    Linear size = {m, n, k};
    size_t n_in = m * k + n * k + n;
    g_autofree float *in = check_random(n_in, -1, 1, 4);
    g_autofree float *dy = check_random(m * n, -1, 1, 5);
    g_autofree float *y = check_poisoned(m * n);
    g_autofree float *plain = check_poisoned(m * n);
    g_autofree float *d_in = check_poisoned(n_in);
    g_autofree double *wide = check_doubles(in, n_in);
    g_autofree double *want = g_new(double, m *n);
    const float *x = in, *w = in + m * k, *bias = w + n * k;
    double bound = 1e-6 * (double)(k + n + m);

    linear(wide, want, &size);
    kernel_linear_forward_f32(y, x, w, bias, m, n, k);
    check_close("linear_forward", y, want, m * n, 1e-6, bound);

    kernel_linear_backward_input_f32(d_in, dy, w, m, n, k);
    kernel_linear_backward_weight_f32(d_in + m * k, dy, x, m, n, k);
    kernel_column_sum_f32(d_in + m * k + n * k, dy, m, n);
    check_gradient("linear_backward", d_in, linear, &size, wide, n_in, dy, m * n, 1e-6, bound);

    for (size_t i = 0; i < m * n; i++) {
        want[i] -= (double)bias[i % n];
    }
    kernel_linear_forward_f32(plain, x, w, NULL, m, n, k);
    check_close("linear_forward without bias", plain, want, m * n, 1e-6, bound);
}

static void test_linear(void) {
    try_linear(1, 1, 1);
    try_linear(3, 7, 1);
    try_linear(1, 9, 7);
    try_linear(7, 3, 9);
    try_linear(9, 11, 13);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/matmul/gemm", test_gemm);
    g_test_add_func("/kernels/matmul/empty", test_empty);
    g_test_add_func("/kernels/matmul/linear", test_linear);
    return g_test_run();
}
