/* tests/kernels/runtime.c - setting up, and what the machine says of itself. */
#include "kernels/host/runtime.h"
#include "kernels/host/matmul.h"
#include "tests/kernels/check.h"

static void
test_names(void)
{
    g_assert_cmpstr(kernel_isa_name(), !=, "");
    g_assert_cmpstr(kernel_blas_name(), !=, "");
    g_test_message("%s; %s", kernel_isa_name(), kernel_blas_name());
}

/* Threads may change how fast a product is, not what it is. */
static void
test_threads(void)
{
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

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/runtime/names", test_names);
    g_test_add_func("/kernels/runtime/threads", test_threads);
    return g_test_run();
}
