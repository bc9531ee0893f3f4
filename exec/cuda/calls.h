/* exec/cuda/calls.h - a failed call of CUDA, or of a kernel, becomes an error that names it. */
#pragma once

#include <cuda_runtime_api.h>
#include <glib.h>

#include "exec/error.h"
#include "kernels/cuda/runtime.h"

/* True when all is well; else error says which call failed, and why. */
static inline bool exec_cuda_ok(cudaError_t status, const char *call, GError **error) {
    if (status != cudaSuccess) {
        cudaGetLastError(); /* or the next call would find it again */
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "%s failed: %s (%s)", call,
                    cudaGetErrorString(status), cudaGetErrorName(status));
    }
    return status == cudaSuccess;
}

static inline bool exec_cuda_kernel_ok(KernelCudaFault fault, GError **error) {
    if (fault) {
        g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_FAILED, fault);
    }
    return !fault;
}
