/* The NCCL of this machine, where there is one, has every function that exec/cuda/comm/nccl.c
 * calls; it can be asked without a GPU which version it is.
 */
#include "exec/cuda/comm/nccl-library.h"

static void test_found(void) {
    g_autoptr(GError) error = NULL;
    const ExecCudaNccl *nccl = exec_cuda_nccl(&error);
    if (error && g_str_has_prefix(error->message, "NCCL cannot be loaded: ")) {
        g_test_skip(error->message);
        return;
    }
    g_assert_no_error(error);
    int version = 0;
    g_assert_cmpint(nccl->GetVersion(&version), ==, ncclSuccess);
    g_assert_cmpint(version / 10000, ==, NCCL_MAJOR);
    g_assert_cmpstr(nccl->GetErrorString(ncclSuccess), ==, "no error");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exec/nccl-library/found", test_found);
    return g_test_run();
}
