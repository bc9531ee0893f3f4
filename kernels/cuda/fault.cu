/* kernels/cuda/fault.cu - the text of a fault, one for each thread. */
#include <stdarg.h>
#include <stdio.h>

#include "kernels/cuda/lane.h"

static thread_local char fault_text[256];

KernelCudaFault kernel_cuda_fault(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault_text, sizeof fault_text, format, arguments);
    va_end(arguments);
    return fault_text;
}

KernelCudaFault kernel_cuda_check(const char *call, cudaError_t error) {
    return error == cudaSuccess ? NULL
                                : kernel_cuda_fault("%s: %s (%s)", call, cudaGetErrorString(error),
                                                    cudaGetErrorName(error));
}
