#include "exec/cuda/pinned.h"

#include "exec/cuda/calls.h"

gpointer exec_cuda_pinned_new(gsize bytes, const char *what, GError **error) {
    gpointer pinned = NULL;
    cudaError_t status = cudaMallocHost(&pinned, MAX(bytes, 1));
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED,
                    "this machine has no %" G_GSIZE_FORMAT " bytes left that can be pinned, for "
                    "%s; free memory, or let fewer ranks run here",
                    bytes, what);
        return NULL;
    }
    return exec_cuda_ok(status, "cudaMallocHost", error) ? pinned : NULL;
}

void exec_cuda_pinned_free(gpointer pinned) {
    cudaFreeHost(pinned);
}
