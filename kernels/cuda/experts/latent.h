/* kernels/cuda/experts/latent.h - routing as networks have it that use latent attention. (What that
 * attention takes beside itself are norms, turns and columns of longer rows: rows/norm.h,
 * attention/rope.h, columns.h.) Bound: memory; of the mask, the launch.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = 1 / (1 + exp(-x)), and dx = dy y (1 - y) from that. */
KernelCudaFault kernel_cuda_sigmoid(KernelCuda *lane, void *y, const void *x, size_t n,
                                    KernelCudaType type);
KernelCudaFault kernel_cuda_sigmoid_backward(KernelCuda *lane, void *dx, const void *dy,
                                             const void *y, size_t n, KernelCudaType type);
/* In place: mask[r, index[r, j]] = 0, for index[rows, k] and a mask of `cols` columns; of a row no
 * two indices are one. */
KernelCudaFault kernel_cuda_unset_columns(KernelCuda *lane, uint8_t *mask, const int64_t *index,
                                          size_t rows, size_t cols, size_t k);

#ifdef __cplusplus
}
#endif
