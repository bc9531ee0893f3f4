/* tests/kernels/runtime.c - setting up, and what the machine says of itself. */
#include "kernels/host/runtime.h"
#include "kernels/host/attention/attention.h"
#include "kernels/host/products/matmul.h"
#include "tests/kernels/check.h"

static void test_names(void) {
    g_assert_cmpstr(kernel_isa_name(), !=, "");
    g_assert_cmpstr(kernel_blas_name(), !=, "");
    g_test_message("%s; %s", kernel_isa_name(), kernel_blas_name());
}

/* A BLAS that took its oldest kernels would do better with others, unless the processor is as old
 * as they. */
static void test_better_core(void) {
    if (g_test_subprocess()) {
        const char *core = kernel_blas_better_core();
        g_print("oldest: %s\n", core ? core : "none");
        return;
    }
    if (!strstr(kernel_blas_name(), "OpenBLAS") || !strstr(kernel_blas_name(), "DYNAMIC_ARCH")) {
        g_test_skip("no OpenBLAS of many kernels");
        return;
    }
    g_autofree char *was = g_strdup(g_getenv("OPENBLAS_CORETYPE"));
    g_setenv("OPENBLAS_CORETYPE", "Prescott", TRUE);
    g_test_trap_subprocess(NULL, 0, (GTestSubprocessFlags)0);
    g_test_trap_assert_passed();
    const char *isa = kernel_isa_name();
    g_test_trap_assert_stdout(g_str_equal(isa, "x86-64-v4")   ? "*oldest: SkylakeX*"
                              : g_str_equal(isa, "x86-64-v3") ? "*oldest: Haswell*"
                                                              : "*oldest: none*");
    if (was) {
        g_setenv("OPENBLAS_CORETYPE", was, TRUE);
    } else {
        g_unsetenv("OPENBLAS_CORETYPE");
    }
}

/* Threads may change how fast a product is, not what it is. */
static void test_threads(void) {
    const size_t n = 150;
    g_autofree float *a = check_random(n * n, -1, 1, 1);
    g_autofree float *one = check_poisoned(n * n);
    g_autofree float *two = check_poisoned(n * n);
    g_autofree double *want = NULL;

    kernel_set_threads(1);
    kernel_linear_forward_f32(one, a, a, NULL, n, n, n);
    want = check_doubles(one, n * n);
    kernel_set_threads(2);
    kernel_linear_forward_f32(two, a, a, NULL, n, n, n);
    check_close("product with two threads", two, want, n * n, 1e-6, 1e-4);
    kernel_set_threads(1);
}

enum {
    SIDE = 130,
    ROUNDS = 20
};

/* Products and attention, again and again, into the caller's own arrays. */
static gpointer work(gpointer data) {
    const KernelAttentionShape shape = {1, 1, 1, SIDE, SIDE, SIDE, 0.1f, true};
    const float *in = data;
    float *out = check_poisoned(2 * SIDE * SIDE);
    g_autofree float *lse = check_poisoned(SIDE);
    KernelConstView x = kernel_const_view_bshd(in, SIDE, 1, SIDE);

    for (int i = 0; i < ROUNDS; i++) {
        kernel_linear_forward_f32(out, in, in, NULL, SIDE, SIDE, SIDE);
        kernel_attention_forward_f32(out + SIDE * SIDE, lse, SIDE, x, x, x, NULL, &shape);
    }
    return out;
}

/* Callers on several threads do not disturb each other. */
static void test_callers(void) {
    g_autofree float *in = check_random(SIDE * SIDE, -1, 1, 1);
    g_autofree float *want = NULL;
    GThread *threads[4];

    kernel_set_threads(1);
    want = work(in);
    for (size_t t = 0; t < G_N_ELEMENTS(threads); t++) {
        threads[t] = g_thread_new("caller", work, in);
    }
    for (size_t t = 0; t < G_N_ELEMENTS(threads); t++) {
        g_autofree float *got = g_thread_join(threads[t]);

        check_same("a caller on a thread", got, want, 2 * SIDE * SIDE);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/runtime/names", test_names);
    g_test_add_func("/kernels/runtime/better core", test_better_core);
    g_test_add_func("/kernels/runtime/threads", test_threads);
    g_test_add_func("/kernels/runtime/callers", test_callers);
    return g_test_run();
}
