/* kernels/cuda/experts/exchange.h - rows that ranks send to those who have their experts: how many,
 * and in which order they are taken.
 *
 * counts[ranks, experts]: rows of each rank for each of this rank's experts (or of this rank for
 * each expert of each rank). Numbers outside their table are told of (kernel_cuda_bad_index()).
 * Bound: the launch; of place_rows, memory.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* sums[ranks] over experts; own[experts] over ranks; turned[experts, ranks]. */
KernelCudaFault kernel_cuda_splits(KernelCuda *lane, int64_t *sums, const int64_t *counts,
                                   size_t ranks, size_t experts);
KernelCudaFault kernel_cuda_own_counts(KernelCuda *lane, int64_t *own, const int64_t *counts,
                                       size_t ranks, size_t experts);
KernelCudaFault kernel_cuda_by_expert(KernelCuda *lane, int64_t *turned, const int64_t *counts,
                                      size_t ranks, size_t experts);

/* Tells of a bad index unless all n numbers are the first. */
KernelCudaFault kernel_cuda_check_alike(KernelCuda *lane, const int64_t *x, size_t n);

/* y[i] = x[0] + ... + x[i]. */
KernelCudaFault kernel_cuda_running_sum(KernelCuda *lane, int64_t *y, const int64_t *x, size_t n);
/* y = a + sign b. */
KernelCudaFault kernel_cuda_combine_i64(KernelCuda *lane, int64_t *y, const int64_t *a,
                                        const int64_t *b, size_t n, int64_t sign);

/* index[i]: the first segment that ends behind place[i], where end[segments] never falls; the last
 * one where none does. */
KernelCudaFault kernel_cuda_segment(KernelCuda *lane, int64_t *index, const int64_t *end,
                                    const int64_t *place, size_t n, size_t segments);
/* y[i] = table[index[i]] of so many segments. */
KernelCudaFault kernel_cuda_of_segment(KernelCuda *lane, int64_t *y, const int64_t *table,
                                       const int64_t *index, size_t n, size_t segments);

/* Row index[i] of y[n, width] becomes x's row i; no two have one place. */
KernelCudaFault kernel_cuda_place_rows(KernelCuda *lane, void *y, const void *x,
                                       const int64_t *index, size_t n, size_t width,
                                       KernelCudaType type);

#ifdef __cplusplus
}
#endif
