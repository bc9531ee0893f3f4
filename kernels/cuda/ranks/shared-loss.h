/* kernels/cuda/ranks/shared-loss.h - a loss over logits of which each of several ranks has some
 * columns, as a compiler takes it apart: logits in any type, all else in fp32.
 *
 * Logits are [rows, width], from column `first` on of `all`; a target below 0 does not count.
 * Between the steps ranks settle on the largest number and the sum of each row (maximum, sum) and
 * on what is picked (sum). Bound: memory.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* most[r] = the largest of the row. */
KernelCudaFault kernel_cuda_largest(KernelCuda *lane, float *most, const void *logits, size_t rows,
                                    size_t width, KernelCudaType type);
/* sum[r] = sum of exp(logits[r, i] - most[r]). */
KernelCudaFault kernel_cuda_sum_of_exps(KernelCuda *lane, float *sum, const void *logits,
                                        const float *most, size_t rows, size_t width,
                                        KernelCudaType type);
/* counted[r]: whether the target counts. Where its column is this rank's, picked[r] is the
 * logarithm of the softmax there and less[r, column] becomes -1; else picked[r] is 0. A target that
 * is no column of all is a bad index. */
KernelCudaFault kernel_cuda_pick_targets(KernelCuda *lane, float *picked, uint8_t *counted,
                                         float *less, const int64_t *target, const void *logits,
                                         const float *most, const float *sum, size_t rows,
                                         size_t width, int64_t first, int64_t all,
                                         KernelCudaType type);
/* loss[0] = minus the mean of what is picked where the target counts (of none: NaN), total[0] = how
 * many those are. */
KernelCudaFault kernel_cuda_mean_picked(KernelCuda *lane, float *loss, float *total,
                                        const int64_t *target, const float *picked, size_t rows);
/* y = less + the softmax; y may be less. */
KernelCudaFault kernel_cuda_add_softmax(KernelCuda *lane, float *y, const float *less,
                                        const void *logits, const float *most, const float *sum,
                                        size_t rows, size_t width, KernelCudaType type);
/* dlogits = y dloss / total in rows that count, else 0. */
KernelCudaFault kernel_cuda_scale_counted(KernelCuda *lane, void *dlogits, const float *y,
                                          const uint8_t *counted, const float *dloss,
                                          const float *total, size_t rows, size_t width,
                                          KernelCudaType type);

#ifdef __cplusplus
}
#endif
