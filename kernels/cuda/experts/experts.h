/* kernels/cuda/experts/experts.h - choosing experts for rows, and sorting rows by expert; what
 * looks up columns and rows is attention/columns.h's and rows/embedding.h's, products by expert are
 * products/grouped.h's.
 *
 * Nothing depends on the order in which threads come, so results repeat bit by bit. Numbers outside
 * their table are told of (kernel_cuda_bad_index()). Bound: memory; of what is a number a token or
 * an expert, the launch.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of each row's scores x[rows, cols] the k largest in falling order, of equals the first first:
 * y[rows, k], and where they stand, index[rows, k]. Not a number counts as more than any. */
KernelCudaFault kernel_cuda_top_k(KernelCuda *lane, void *y, int64_t *index, const void *x,
                                  size_t rows, size_t cols, size_t k, KernelCudaType type);

/* counts[g]: how many of index[n] are g. */
KernelCudaFault kernel_cuda_count(KernelCuda *lane, int64_t *counts, const int64_t *index, size_t n,
                                  size_t groups);
/* sorted[i] = index[order[i]] rises; among equals order does. */
KernelCudaFault kernel_cuda_sort(KernelCuda *lane, int64_t *sorted, int64_t *order,
                                 const int64_t *index, size_t n, size_t groups);
/* ends[g] = counts[0] + ... + counts[g]. What 31 bits do not hold is told of as a bad index. */
KernelCudaFault kernel_cuda_ends(KernelCuda *lane, int32_t *ends, const int64_t *counts,
                                 size_t groups);
/* y = x / by, rounded towards zero. */
KernelCudaFault kernel_cuda_divide_down_i64(KernelCuda *lane, int64_t *y, const int64_t *x,
                                            size_t n, int64_t by);
/* y = what that leaves. */
KernelCudaFault kernel_cuda_remainder_i64(KernelCuda *lane, int64_t *y, const int64_t *x, size_t n,
                                          int64_t by);

/* The same in 32 bits: numbers that must fit, how many are each, where each group ends. */
KernelCudaFault kernel_cuda_narrow_i64(KernelCuda *lane, int32_t *y, const int64_t *x, size_t n);
KernelCudaFault kernel_cuda_tally(KernelCuda *lane, int32_t *tally, const int32_t *index, size_t n,
                                  size_t groups);
KernelCudaFault kernel_cuda_tally_ends(KernelCuda *lane, int32_t *ends, const int32_t *tally,
                                       size_t groups);
/* position[i] = i, and index[order[i]] too, of an order that names each of n places once. */
KernelCudaFault kernel_cuda_invert(KernelCuda *lane, int64_t *index, int64_t *position,
                                   const int64_t *order, size_t n);
/* y[rows, width] = the sum of `each` rows of x, one behind the other, which begin `row` elements
 * apart. */
KernelCudaFault kernel_cuda_sum_each(KernelCuda *lane, void *y, const void *x, size_t rows,
                                     size_t each, size_t width, size_t row, KernelCudaType type);
/* y[r, e, .] = x[r, .]. */
KernelCudaFault kernel_cuda_repeat_each(KernelCuda *lane, void *y, const void *x, size_t rows,
                                        size_t each, size_t width, KernelCudaType type);

#ifdef __cplusplus
}
#endif
