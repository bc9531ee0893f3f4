/* tests/kernels/dropout.c - what is kept, how often, and that a cut tensor is the same tensor. */
#include "kernels/host/dropout.h"
#include "tests/kernels/check.h"

enum {
    N = 20011
};

static void test_forward(void) {
    static const float shares[] = {0, 0.1f, 0.5f, 0.9f};
    g_autofree float *x = check_random(N, -3, 3, 1);
    g_autofree uint8_t *mask = g_new(uint8_t, N + 1);
    for (unsigned s = 0; s < G_N_ELEMENTS(shares); s++) {
        double p = (double)shares[s];
        g_autofree float *y = check_poisoned(N);
        g_autofree double *want = g_new(double, N);
        mask[N] = 77;
        kernel_dropout_forward_f32(y, mask, x, N, shares[s], 5, 9, 0);
        size_t kept = 0;
        for (size_t i = 0; i < N; i++) {
            g_assert_cmpuint(mask[i], <=, 1);
            kept += mask[i];
            want[i] = mask[i] ? (double)x[i] / (1 - p) : 0;
        }
        check_close("dropout", y, want, N, 1e-6, 0);
        g_assert_cmpuint(mask[N], ==, 77);
        /* Five standard deviations of a binomial count. */
        g_assert_cmpfloat(fabs((double)kept - (1 - p) * N), <=, 5 * sqrt(p * (1 - p) * N));
    }
}

static void test_cut(void) {
    g_autofree float *x = check_random(N, -3, 3, 1);
    g_autofree float *whole = check_poisoned(N);
    g_autofree float *parts = check_poisoned(N);
    g_autofree uint8_t *mask = g_new(uint8_t, N);
    kernel_dropout_forward_f32(whole, mask, x, N, 0.3f, 5, 9, 1000);
    static const size_t cuts[] = {0, 1, 3, 1024, 1500, 7001, N};
    for (unsigned c = 0; c + 1 < G_N_ELEMENTS(cuts); c++) {
        kernel_dropout_forward_f32(parts + cuts[c], mask, x + cuts[c], cuts[c + 1] - cuts[c], 0.3f,
                                   5, 9, 1000 + cuts[c]);
    }
    check_same("dropout in parts", parts, whole, N);
    kernel_dropout_forward_f32(parts, mask, x, N, 0.3f, 5, 10, 1000);
    size_t differ = 0;
    for (size_t i = 0; i < N; i++) {
        differ += (parts[i] == 0) != (whole[i] == 0);
    }
    g_assert_cmpuint(differ, >, N / 3); /* of another stream: 2 x 0.3 x 0.7 of them */
}

static void test_backward(void) {
    g_autofree float *x = check_random(N, -3, 3, 1);
    g_autofree float *dy = check_random(N, -1, 1, 2);
    g_autofree float *y = check_poisoned(N);
    g_autofree float *dx = check_poisoned(N);
    g_autofree double *want = g_new(double, N);
    g_autofree uint8_t *mask = g_new(uint8_t, N);
    kernel_dropout_forward_f32(y, mask, x, N, 0.25f, 5, 9, 0);
    kernel_dropout_backward_f32(dx, dy, mask, N, 0.25f);
    for (size_t i = 0; i < N; i++) { /* y is linear in x: its slope is y / x */
        want[i] = (double)dy[i] * (double)y[i] / (double)x[i];
    }
    check_close("dropout backward", dx, want, N, 1e-6, 1e-12);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/dropout/keeps the share it should", test_forward);
    g_test_add_func("/kernels/dropout/is the same in parts", test_cut);
    g_test_add_func("/kernels/dropout/backward", test_backward);
    return g_test_run();
}
