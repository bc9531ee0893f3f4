/* kernels/cuda/rows/loss.h - softmax, and cross entropy whole and as PyTorch's eager ops take it
 * apart.
 *
 * Rows are the last dimension; a block takes a row. y and dx may alias their first input. Bound:
 * memory; a row that is read twice comes from cache the second time (rows up to the size of a
 * block's registers: once).
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = exp(x - max) / sum for each row of x[rows, cols]. A row that is all -inf gives NaN. */
KernelCudaFault kernel_cuda_softmax_forward(KernelCuda *lane, void *y, const void *x, size_t rows,
                                            size_t cols, KernelCudaType type);
/* dx = y (dy - sum over the row of dy y), from the output y. */
KernelCudaFault kernel_cuda_softmax_backward(KernelCuda *lane, void *dx, const void *dy,
                                             const void *y, size_t rows, size_t cols,
                                             KernelCudaType type);
/* y = x - max - log(sum of exp(x - max)) for each row. */
KernelCudaFault kernel_cuda_log_softmax_forward(KernelCuda *lane, void *y, const void *x,
                                                size_t rows, size_t cols, KernelCudaType type);
/* dx = dy - exp(y) (sum over the row of dy), from the output y. */
KernelCudaFault kernel_cuda_log_softmax_backward(KernelCuda *lane, void *dx, const void *dy,
                                                 const void *y, size_t rows, size_t cols,
                                                 KernelCudaType type);

/* loss[0] = -(mean of logp[r, target[r]] over the rows whose target is not -100), total[0] = how
 * many those are. A target that is neither -100 nor a class is a bad index. */
KernelCudaFault kernel_cuda_nll_loss_forward(KernelCuda *lane, void *loss, void *total,
                                             const void *logp, const int64_t *target, size_t rows,
                                             size_t classes, KernelCudaType type);
/* dlogp[r, c] = -dloss[0] / total[0] at c = target[r], and 0 elsewhere. */
KernelCudaFault kernel_cuda_nll_loss_backward(KernelCuda *lane, void *dlogp, const void *dloss,
                                              const int64_t *target, const void *total, size_t rows,
                                              size_t classes, KernelCudaType type);

/* Softmax and loss at once: lse[r] = log(sum of exp(logits[r, c])) in float, loss[0] = mean of
 * lse[r] - logits[r, target[r]], total[0] = rows. Reads the logits once. */
KernelCudaFault kernel_cuda_cross_entropy_forward(KernelCuda *lane, void *loss, void *total,
                                                  float *lse, const void *logits,
                                                  const int64_t *target, size_t rows,
                                                  size_t classes, KernelCudaType type);
/* dlogits = (exp(logits - lse) - [c = target]) dloss / total; may be the logits themselves. */
KernelCudaFault kernel_cuda_cross_entropy_backward(KernelCuda *lane, void *dlogits,
                                                   const void *logits, const void *dloss,
                                                   const int64_t *target, const void *total,
                                                   const float *lse, size_t rows, size_t classes,
                                                   KernelCudaType type);

/* The same with two numbers kept a row, as a compiler has it: most[r] = the largest of the row,
 * log_sum[r] = log(sum of exp(logits[r, c] - most[r])), both in float. Rows whose target is -100 do
 * not count: not in total, and their gradient is 0. loss, total and dloss may have another type
 * (of_loss) than the logits. */
KernelCudaFault kernel_cuda_compiled_loss_forward(KernelCuda *lane, void *loss, void *total,
                                                  KernelCudaType of_loss, float *most,
                                                  float *log_sum, const void *logits,
                                                  const int64_t *target, size_t rows,
                                                  size_t classes, KernelCudaType type);
/* dlogits = (exp(logits - most - log_sum) - [c = target]) dloss / total + more (NULL: none); may be
 * the logits. */
KernelCudaFault kernel_cuda_compiled_loss_backward(
    KernelCuda *lane, void *dlogits, const void *logits, const void *more, const int64_t *target,
    const float *most, const float *log_sum, const void *dloss, const void *total,
    KernelCudaType of_loss, size_t rows, size_t classes, KernelCudaType type);

/* A part of the rows of a loss that is the mean of all_rows: its logits become their
 * gradients, in place; row_loss[rows] is room; *sum is what parts so far add to the mean (the first
 * one sets it), and loss[0] that number, which may be *sum itself. */
KernelCudaFault kernel_cuda_cross_entropy_part(KernelCuda *lane, void *loss, float *sum,
                                               float *row_loss, void *logits, const int64_t *target,
                                               size_t rows, size_t classes, size_t all_rows,
                                               bool is_first, KernelCudaType type);

#ifdef __cplusplus
}
#endif
