/* kernels/cuda/reduce.h - many elements to one.
 *
 * Two stages: each of a fixed number of blocks adds its part in a fixed order, then one block adds
 * the parts; so results repeat bit by bit on any GPU. Bound: memory, the input once.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out[0] = sum of x / n */
KernelCudaFault kernel_cuda_mean_forward(KernelCuda *lane, void *out, const void *x, size_t n,
                                         KernelCudaType type);
/* dx[i] = dout[0] / n */
KernelCudaFault kernel_cuda_mean_backward(KernelCuda *lane, void *dx, const void *dout, size_t n,
                                          KernelCudaType type);
/* out[j] = sum over r of x[r, j]: the gradient of what was broadcast over rows. */
KernelCudaFault kernel_cuda_column_sum(KernelCuda *lane, void *out, const void *x, size_t rows,
                                       size_t cols, KernelCudaType type);
/* out[r] = factor times the sum over j of x[r, j] */
KernelCudaFault kernel_cuda_row_sum(KernelCuda *lane, void *out, const void *x, size_t rows,
                                    size_t cols, double factor, KernelCudaType type);
/* out[r] = the largest x[r, j]; numbers that are none are passed over, of none it is -infinity. */
KernelCudaFault kernel_cuda_row_max(KernelCuda *lane, void *out, const void *x, size_t rows,
                                    size_t cols, KernelCudaType type);
/* out[0] = 2-norm of x, of any type. Of a list of tensors: kernel_cuda_norms() (lists/optimizer.h).
 */
KernelCudaFault kernel_cuda_norm(KernelCuda *lane, void *out, KernelCudaType out_type,
                                 const void *x, size_t n, KernelCudaType type);

#ifdef __cplusplus
}
#endif
