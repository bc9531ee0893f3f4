/* tests/kernels/variants.c - what the loader did not choose computes the same.
 *
 * The other tests run the variant that suits this processor. Here each variant the processor can
 * run is called by its own name: element-by-element kernels must give the same bits, those with
 * sums the same to rounding.
 */
#include "kernels/host/activation.h"
#include "kernels/host/attention/attention.h"
#include "kernels/host/attention/rope.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/lists/optimizer.h"
#include "kernels/host/random.h"
#include "kernels/host/reduce.h"
#include "kernels/host/rows/loss.h"
#include "kernels/host/rows/norm.h"
#include "kernels/host/runtime.h"
#include "tests/kernels/check.h"

enum {
    ROWS = 5,
    WIDTH = 401,
    N = ROWS * WIDTH
};

/* Declares the three variants, and a table of them under the kernel's name. */
#define VARIANTS(name)                                                                             \
    extern __typeof__(name) name##_v1, name##_v3, name##_v4;                                       \
    static __typeof__(name) *const name##_table[] = {name##_v1, name##_v3, name##_v4}

VARIANTS(kernel_add_f32);
VARIANTS(kernel_add_scaled_f32);
VARIANTS(kernel_gelu_tanh_forward_f32);
VARIANTS(kernel_gelu_tanh_backward_f32);
VARIANTS(kernel_gelu_erf_forward_f32);
VARIANTS(kernel_gelu_erf_backward_f32);
VARIANTS(kernel_silu_forward_f32);
VARIANTS(kernel_silu_backward_f32);
VARIANTS(kernel_adam_f32);
VARIANTS(kernel_philox_normal_f32);
VARIANTS(kernel_philox_uniform_f32);
VARIANTS(kernel_column_sum_f32);
VARIANTS(kernel_row_sum_f32);
VARIANTS(kernel_mul_rows_f32);
VARIANTS(kernel_mul_columns_f32);
VARIANTS(kernel_spread_f32);
VARIANTS(kernel_power_f32);
VARIANTS(kernel_rope_forward_f32);
VARIANTS(kernel_softmax_forward_f32);
VARIANTS(kernel_softmax_backward_f32);
VARIANTS(kernel_log_softmax_forward_f32);
VARIANTS(kernel_log_softmax_backward_f32);
VARIANTS(kernel_layernorm_forward_f32);
VARIANTS(kernel_layernorm_backward_f32);
VARIANTS(kernel_rmsnorm_forward_f32);
VARIANTS(kernel_rmsnorm_backward_f32);
VARIANTS(kernel_norm_f32);
VARIANTS(kernel_attention_forward_f32);
VARIANTS(kernel_attention_backward_f32);

static size_t variants(void) {
    const char *isa = kernel_isa_name();

    return g_str_has_suffix(isa, "-v4") ? 3 : g_str_has_suffix(isa, "-v3") ? 2 : 1;
}

/* Calls name and each variant with an output of n floats, and holds them together. */
#define EQUAL(name, n, ...)                                                                        \
    do {                                                                                           \
        g_autofree float *want = check_poisoned(n);                                                \
        name(want, __VA_ARGS__);                                                                   \
        for (size_t level = 0; level < variants(); level++) {                                      \
            g_autofree float *got = check_poisoned(n);                                             \
            name##_table[level](got, __VA_ARGS__);                                                 \
            check_same(#name, got, want, n);                                                       \
        }                                                                                          \
    } while (0)

#define CLOSE(name, n, ...)                                                                        \
    do {                                                                                           \
        g_autofree float *want = check_poisoned(n);                                                \
        g_autofree double *wide = NULL;                                                            \
        name(want, __VA_ARGS__);                                                                   \
        wide = check_doubles(want, n);                                                             \
        for (size_t level = 0; level < variants(); level++) {                                      \
            g_autofree float *got = check_poisoned(n);                                             \
            name##_table[level](got, __VA_ARGS__);                                                 \
            check_close(#name, got, wide, n, 1e-6, 1e-6);                                          \
        }                                                                                          \
    } while (0)

static void test_equal(void) {
    g_autofree float *x = check_random(N, -6, 6, 1);
    g_autofree float *y = check_random(N, -6, 6, 2);
    g_autofree float *square = check_random(N, 0, 6, 3);

    g_test_message("the loader chose %s", kernel_isa_name());
    EQUAL(kernel_add_f32, N, x, y, N);
    EQUAL(kernel_add_scaled_f32, N, x, y, 0.3f, N);
    EQUAL(kernel_mul_rows_f32, N, x, y, ROWS, WIDTH);
    EQUAL(kernel_mul_columns_f32, N, x, y, ROWS, WIDTH);
    EQUAL(kernel_spread_f32, N, x, 0.3f, ROWS, WIDTH);
    EQUAL(kernel_power_f32, N, x, 3, N);
    EQUAL(kernel_power_f32, N, square, -0.5, N);
    EQUAL(kernel_gelu_tanh_forward_f32, N, x, N);
    EQUAL(kernel_gelu_tanh_backward_f32, N, y, x, N);
    EQUAL(kernel_gelu_erf_forward_f32, N, x, N);
    EQUAL(kernel_gelu_erf_backward_f32, N, y, x, N);
    EQUAL(kernel_silu_forward_f32, N, x, N);
    EQUAL(kernel_silu_backward_f32, N, y, x, N);
    EQUAL(kernel_philox_normal_f32, N, N, 1, 2, 3, 0.0f, 1.0f);
    EQUAL(kernel_philox_uniform_f32, N, N, 1, 2, 3, 0.0f, 1.0f);
    EQUAL(kernel_column_sum_f32, WIDTH, x, ROWS, WIDTH);
}

static void test_equal_in_place(void) {
    const KernelAdam adam = {1e-2, 0.9, 0.999, 1e-8, 0.1, KERNEL_ADAM_DECOUPLED, 3};
    g_autofree float *grad = check_random(N, -1, 1, 1);
    g_autofree float *want = check_random(N, -1, 1, 2);
    g_autofree float *table = check_random(ROWS * 20, -1, 1, 4);
    g_autofree float *turned = check_poisoned(ROWS * 20);
    KernelConstView from = kernel_const_view_bshd(grad, ROWS, 1, 20);

    for (size_t level = 0; level <= variants(); level++) {
        g_autofree float *param = check_random(N, -1, 1, 2);
        g_autofree float *m = check_random(N, -1, 1, 3);
        g_autofree float *v = check_random(N, 0, 1, 4);
        g_autofree float *out = check_poisoned(ROWS * 20);
        KernelView to = kernel_view_bshd(out, ROWS, 1, 20);

        if (level == 0) {
            kernel_adam_f32(param, m, v, grad, N, &adam);
            memcpy(want, param, N * sizeof *want);
            kernel_rope_forward_f32(to, from, table, table, 1, 1, ROWS, 20);
            memcpy(turned, out, ROWS * 20 * sizeof *out);
        } else {
            kernel_adam_f32_table[level - 1](param, m, v, grad, N, &adam);
            kernel_rope_forward_f32_table[level - 1](to, from, table, table, 1, 1, ROWS, 20);
        }
        check_same("adam", param, want, N);
        check_same("rope", out, turned, ROWS * 20);
    }
}

static void test_close(void) {
    g_autofree float *x = check_random(N, -2, 2, 1);
    g_autofree float *dy = check_random(N, -1, 1, 2);
    g_autofree float *y = check_random(N, 0, 0.01, 3);
    g_autofree float *logp = check_random(N, -9, -6, 3);
    g_autofree float *weight = check_random(WIDTH, -1, 1, 4);
    g_autofree float *mean = check_random(ROWS, -0.1, 0.1, 5);
    g_autofree float *rstd = check_random(ROWS, 0.5, 1, 6);
    g_autofree float *dweight = check_poisoned(WIDTH);
    g_autofree float *dbias = check_poisoned(WIDTH);

    CLOSE(kernel_row_sum_f32, ROWS, x, 0.25f, ROWS, WIDTH);
    CLOSE(kernel_softmax_forward_f32, N, x, ROWS, WIDTH);
    CLOSE(kernel_softmax_backward_f32, N, dy, y, ROWS, WIDTH);
    CLOSE(kernel_log_softmax_forward_f32, N, x, ROWS, WIDTH);
    CLOSE(kernel_log_softmax_backward_f32, N, dy, logp, ROWS, WIDTH);
    CLOSE(kernel_layernorm_backward_f32, N, dweight, dbias, dy, x, mean, rstd, weight, ROWS, WIDTH);
    CLOSE(kernel_rmsnorm_backward_f32, N, dweight, dy, x, rstd, weight, ROWS, WIDTH);
    CLOSE(kernel_layernorm_forward_f32, N, mean, rstd, x, weight, weight, ROWS, WIDTH, 1e-5f);
    CLOSE(kernel_rmsnorm_forward_f32, N, rstd, x, weight, ROWS, WIDTH, 1e-5f);
    CLOSE(kernel_norm_f32, 1, x, N);
}

static void test_attention(void) {
    enum {
        SEQ = 150,
        DIM = 16,
        SIZE = SEQ * DIM,
        PAIRS = SEQ * SEQ
    };
    const KernelAttentionShape shape = {1, 1, 1, SEQ, SEQ, DIM, 0.25f, true};
    g_autofree float *in = check_random(3 * SIZE, -2, 2, 1);
    g_autofree float *d_o = check_random(SIZE, -1, 1, 2);
    g_autofree float *bias = check_random(PAIRS, -1, 1, 3);
    g_autofree double *want_bias = g_new(double, PAIRS);
    g_autofree double *want_o = g_new(double, SIZE);
    g_autofree double *want = g_new(double, 3 * SIZE);
    KernelConstView q = kernel_const_view_bshd(in, SEQ, 1, DIM);
    KernelConstView k = kernel_const_view_bshd(in + SIZE, SEQ, 1, DIM);
    KernelConstView v = kernel_const_view_bshd(in + 2 * SIZE, SEQ, 1, DIM);

    for (size_t level = 0; level < variants(); level++) {
        g_autofree float *o = check_poisoned(SIZE);
        g_autofree float *lse = check_poisoned(SEQ);
        g_autofree float *d_in = check_poisoned(3 * SIZE);
        g_autofree float *d_bias = check_poisoned(PAIRS);

        kernel_attention_forward_f32_table[level](o, lse, SEQ, q, k, v, bias, &shape);
        kernel_attention_backward_f32_table[level](kernel_view_bshd(d_in, SEQ, 1, DIM),
                                                   kernel_view_bshd(d_in + SIZE, SEQ, 1, DIM),
                                                   kernel_view_bshd(d_in + 2 * SIZE, SEQ, 1, DIM),
                                                   d_bias, d_o, q, k, v, bias, o, lse, SEQ, &shape);
        for (size_t i = 0; level == 0 && i < 3 * SIZE; i++) {
            want[i] = (double)d_in[i];
            want_o[i % SIZE] = (double)o[i % SIZE];
        }
        for (size_t i = 0; level == 0 && i < PAIRS; i++) {
            want_bias[i] = (double)d_bias[i];
        }
        check_close("attention_backward, bias", d_bias, want_bias, PAIRS, 1e-5, 2e-5);
        check_close("attention_forward", o, want_o, SIZE, 1e-6, 1e-5);
        check_close("attention_backward", d_in, want, 3 * SIZE, 1e-5, 2e-5);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/variants/equal", test_equal);
    g_test_add_func("/kernels/variants/equal-in-place", test_equal_in_place);
    g_test_add_func("/kernels/variants/close", test_close);
    g_test_add_func("/kernels/variants/attention", test_attention);
    return g_test_run();
}
