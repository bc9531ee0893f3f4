/* kernels/cuda/products/grouped.h - products of rows that lie group by group, each group with a
 * matrix of its own: what a mixture of experts multiplies.
 *
 * Group g has rows ends[g - 1] to ends[g] of m; the last end is m. Ends that are none are told of
 * (kernel_cuda_bad_index()), and then the output is undefined, but nothing else is touched. Halves
 * are multiplied by tensor cores; fp32 is exact, whatever the lane's math. Each element is summed
 * in fp32 in one order, so results repeat bit by bit. Bound: arithmetic.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y[m, n] = x[m, k] times, row by row, its group's w[groups, n, k], transposed. */
KernelCudaFault kernel_cuda_grouped_linear_forward(KernelCuda *lane, void *y, const void *x,
                                                   const void *w, const int32_t *ends, size_t m,
                                                   size_t n, size_t k, size_t groups,
                                                   KernelCudaType type);
/* The same; y is so many matrices, one behind the other, each of as many of its columns. */
KernelCudaFault kernel_cuda_grouped_parts_forward(KernelCuda *lane, void *y, const void *x,
                                                  const void *w, const int32_t *ends, size_t m,
                                                  size_t n, size_t k, size_t groups, size_t parts,
                                                  KernelCudaType type);
/* dx[m, k] = dy[m, n] times its group's w. */
KernelCudaFault kernel_cuda_grouped_linear_backward_input(KernelCuda *lane, void *dx,
                                                          const void *dy, const void *w,
                                                          const int32_t *ends, size_t m, size_t n,
                                                          size_t k, size_t groups,
                                                          KernelCudaType type);
/* dw[groups, n, k] = dy^T x of each group's rows; 0 of a group that has none. */
KernelCudaFault kernel_cuda_grouped_linear_backward_weight(KernelCuda *lane, void *dw,
                                                           const void *dy, const void *x,
                                                           const int32_t *ends, size_t m, size_t n,
                                                           size_t k, size_t groups,
                                                           KernelCudaType type);

#ifdef __cplusplus
}
#endif
