/* kernels/cuda/ranks/shared.h - what layers that ranks share need: tables of which each rank has
 * `part` rows, and a loss over logits of which it has some columns.
 *
 * An index is of the whole table; this rank's part begins at row `first`. Masks are bytes, 0 or 1.
 * A target below 0 does not count. Bound: memory; most are of a number a token and take what a
 * launch takes.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether each of n indices lies before this rank's part, behind it, either. */
KernelCudaFault kernel_cuda_outside_mask(KernelCuda *lane, uint8_t *below, uint8_t *above,
                                         uint8_t *outside, const int64_t *index, size_t n,
                                         int64_t first, int64_t part);
/* copy = index; local = index - first, and 0 where it is outside. */
KernelCudaFault kernel_cuda_local_index(KernelCuda *lane, int64_t *copy, int64_t *local,
                                        const int64_t *index, const uint8_t *outside, size_t n,
                                        int64_t first);
/* In place: rows of x[rows, width] whose mask is set become 0; the others are not touched. */
KernelCudaFault kernel_cuda_zero_masked(KernelCuda *lane, void *x, const uint8_t *mask, size_t rows,
                                        size_t width, KernelCudaType type);

/* counted: whether a target counts; and the target, 0 where it does not. */
KernelCudaFault kernel_cuda_safe_target(KernelCuda *lane, uint8_t *counted, int64_t *index,
                                        const int64_t *target, size_t n);
/* counted; and how many of n count. */
KernelCudaFault kernel_cuda_count_targets(KernelCuda *lane, uint8_t *counted, int64_t *ret_count,
                                          const int64_t *target, size_t n);
/* counted; and y = x where a target counts, else 0. spread: x is one number, for all. */
KernelCudaFault kernel_cuda_keep_counted(KernelCuda *lane, uint8_t *counted, void *y, const void *x,
                                         const int64_t *target, size_t n, bool spread,
                                         KernelCudaType type);
/* The mask as numbers; and those less 1: -1 where the target is this rank's. */
KernelCudaFault kernel_cuda_picked_gradient(KernelCuda *lane, void *wide, void *y,
                                            const uint8_t *mask, size_t n, KernelCudaType type);
/* In place: x[position[i], index[i]] = y[i] for each of rows; no two positions are one. */
KernelCudaFault kernel_cuda_put_column(KernelCuda *lane, void *x, const void *y,
                                       const int64_t *index, const int64_t *position, size_t rows,
                                       size_t cols, KernelCudaType type);

#ifdef __cplusplus
}
#endif
