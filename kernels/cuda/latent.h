/* kernels/cuda/latent.h - what latent attention needs beside attention (whose values have a length
 * of their own, attention.h), and routing as networks have it that use it.
 *
 * Rows are longer than what is looked at: x points to the first number of it in the first row, and
 * rows begin `row` elements behind each other. Bound: memory.
 */
#pragma once
#include "kernels/cuda/norm.h"
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As kernel_cuda_rmsnorm_forward() and backward (norm.h), of the first norm->width numbers of x's
 * rows; y, dy and dx are dense. */
KernelCudaFault kernel_cuda_norm_columns(KernelCuda *lane, void *y, float *rstd, const void *x,
                                         const void *weight, const KernelCudaNorm *norm,
                                         size_t row);
KernelCudaFault kernel_cuda_norm_columns_backward(KernelCuda *lane, void *dx, void *dweight,
                                                  const void *dy, const void *x, const float *rstd,
                                                  const void *weight, const KernelCudaNorm *norm,
                                                  size_t row);

/* y[tokens, heads, dim] = x turns, as kernel_cuda_turn() (rope.h); x has a row for each head. */
KernelCudaFault kernel_cuda_turn_columns(KernelCuda *lane, float *y, const float *x,
                                         const float *turns, size_t tokens, size_t heads,
                                         size_t dim, size_t seq, size_t row);

/* y[rows, a_cols + b_cols]: a_cols of each row of a, then row r / each of b[., b_cols]. */
KernelCudaFault kernel_cuda_join_heads(KernelCuda *lane, void *y, const void *a, const void *b,
                                       size_t rows, size_t a_cols, size_t b_cols, size_t row,
                                       size_t each, KernelCudaType type);

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
