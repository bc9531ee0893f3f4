/* kernels/cuda/products/turned.h - matrices whose rows become columns. Bound: memory. */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out[cols, rows] of x[rows, cols], numbers of 1, 2 or 4 bytes. */
KernelCudaFault kernel_cuda_exchange_sides(KernelCuda *lane, void *out, const void *x, size_t rows,
                                           size_t cols, size_t bytes);
/* y[cols, rows] += number x[rows, cols], turned; each in its type. */
KernelCudaFault kernel_cuda_add_turned(KernelCuda *lane, void *y, KernelCudaType y_type,
                                       const void *x, KernelCudaType x_type, size_t rows,
                                       size_t cols, double number);

#ifdef __cplusplus
}
#endif
