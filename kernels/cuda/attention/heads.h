/* kernels/cuda/attention/heads.h - attention with its scores in memory: what lies around its
 * products (products/matmul.h) and its softmax (rows/loss.h), and T5's relative bias.
 *
 * "apart" is [batch, heads, seq, dim], "inside" is [batch, seq, heads, dim]. Bound: memory.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t batch, seq, heads, dim;
    KernelCudaType type;
} KernelCudaHeads;

/* x has its `heads` inside rows of tokens that lie row_stride apart, and lends each to `repeats`
 * heads of y, which lie apart or inside. */
KernelCudaFault kernel_cuda_repeat_heads(KernelCuda *lane, void *y, const void *x,
                                         const KernelCudaHeads *heads, size_t row_stride,
                                         size_t repeats, bool apart);
/* The gradient of it: sums over repeats in their order; either lies apart or inside. */
KernelCudaFault kernel_cuda_sum_heads(KernelCuda *lane, void *y, const void *x,
                                      const KernelCudaHeads *heads, size_t repeats, bool x_apart,
                                      bool y_apart);
/* y apart from x inside rows that lie row_stride apart; back: y inside (dense) from x apart. */
KernelCudaFault kernel_cuda_heads_copy(KernelCuda *lane, void *y, const void *x,
                                       const KernelCudaHeads *heads, size_t row_stride, bool back);

/* Masks: a byte each, 1 or 0. */
KernelCudaFault kernel_cuda_ones_mask(KernelCuda *lane, uint8_t *mask, size_t n);
/* mask[i, j] = j > i ? all[i, j] : 0 */
KernelCudaFault kernel_cuda_upper_mask(KernelCuda *lane, uint8_t *mask, const uint8_t *all,
                                       size_t rows, size_t cols);
/* y[o, i, j] = mask[i] ? value : x[o, i, j], for x[outer, n, inner]; y may alias x. */
KernelCudaFault kernel_cuda_masked_fill(KernelCuda *lane, void *y, const void *x,
                                        const uint8_t *mask, size_t outer, size_t n, size_t inner,
                                        double value, KernelCudaType type);

/* Of a window: mask[i, j] = position[j] > index[i], or not later: position[j] <= index[i]; mask[i]
 * = one[i mod n_one] and other[i], for n; and y[b, i] = one number where the mask is set, else the
 * other, for y[batch, n]. */
KernelCudaFault kernel_cuda_compare_mask(KernelCuda *lane, uint8_t *mask, const int64_t *position,
                                         const int64_t *index, size_t rows, size_t cols,
                                         bool later);
KernelCudaFault kernel_cuda_both_mask(KernelCuda *lane, uint8_t *mask, const uint8_t *one,
                                      const uint8_t *other, size_t n, size_t n_one);
KernelCudaFault kernel_cuda_mask_to_bias(KernelCuda *lane, void *y, const uint8_t *mask,
                                         const void *shown, const void *hidden, size_t n,
                                         size_t batch, KernelCudaType type);

/* Relative positions, int64. distance[i, j] = position[j] - position[i] */
KernelCudaFault kernel_cuda_distances(KernelCuda *lane, int64_t *distance, const int64_t *position,
                                      size_t n);
KernelCudaFault kernel_cuda_absolute_i64(KernelCuda *lane, int64_t *out, const int64_t *x,
                                         size_t n);
KernelCudaFault kernel_cuda_at_most_i64(KernelCuda *lane, int64_t *out, const int64_t *x, size_t n,
                                        int64_t limit);
KernelCudaFault kernel_cuda_positive_mask(KernelCuda *lane, uint8_t *mask, const int64_t *x,
                                          size_t n);
/* y[b, h, i] = x[b, h, i] + bias[i, h], for x[batch, heads, n]; y may alias x. Beside type F32 x
 * may be of 16 bits. The lookup of the bias and its gradient: rows/embedding.h. */
KernelCudaFault kernel_cuda_bias_add(KernelCuda *lane, void *y, const void *x,
                                     KernelCudaType x_type, const void *bias, size_t batch,
                                     size_t heads, size_t n, KernelCudaType type);

#ifdef __cplusplus
}
#endif
