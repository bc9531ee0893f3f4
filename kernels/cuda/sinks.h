/* kernels/cuda/sinks.h - what gpt-oss adds to attention and to its experts' gate, as
 * kernels/host/sinks.h has it. Bound: memory.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of `cols` scores: [batch, heads, rows, cols]. */
typedef struct {
    size_t batch, heads, rows, cols;
    KernelCudaType type;
} KernelCudaSinks;

/* y: each row of x, and its head's sink behind it. */
KernelCudaFault kernel_cuda_join_sinks(KernelCuda *lane, void *y, const void *x, const void *sink,
                                       const KernelCudaSinks *shape);
/* y[h]: the sum of the last numbers of a head's rows of x, which have one more than cols. */
KernelCudaFault kernel_cuda_sum_sinks(KernelCuda *lane, void *y, const void *x,
                                      const KernelCudaSinks *shape);

/* Columns of x as columns.h has them: `cols` from column `from` on, in rows of `width`. */
typedef struct {
    size_t rows, cols, width, from;
    KernelCudaType type;
} KernelCudaChosen;

/* y: each of them within the limits; mask: whether sign * x is at most the limit. */
KernelCudaFault kernel_cuda_clamp_columns(KernelCuda *lane, void *y, const void *x,
                                          const KernelCudaChosen *chosen, float least, float most);
KernelCudaFault kernel_cuda_limit_mask(KernelCuda *lane, void *mask, const void *x,
                                       const KernelCudaChosen *chosen, float sign, float limit);
/* y: each of them times a number. */
KernelCudaFault kernel_cuda_times_columns(KernelCuda *lane, void *y, const void *x,
                                          const KernelCudaChosen *chosen, float number);
/* y[n] = x where the mask is set, and the one number of zero elsewhere. */
KernelCudaFault kernel_cuda_where_mask(KernelCuda *lane, void *y, const void *mask, const void *x,
                                       const void *zero, size_t n, KernelCudaType type);

#ifdef __cplusplus
}
#endif
