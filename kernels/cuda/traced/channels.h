/* kernels/cuda/traced/channels.h - norms by channels, of tensors [samples, channels, ..] of any
 * dtype, seen through strides.
 *
 * The numbers are gone over three times (backward twice), in double through a fixed tree, the same
 * on every device. Bound: memory.
 */
#pragma once
#include "kernels/cuda/runtime.h"
#include "kernels/host/traced/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tensors of a number a channel; where NULL, weight is 1, bias 0, and the others are not kept. */
typedef struct {
    const KernelTensor *weight, *bias;
    const KernelTensor *mean, *rstd;                /* of this batch */
    const KernelTensor *running_mean, *running_var; /* both, or neither; updated */
    double momentum, eps;
} KernelCudaChannels;

/* y = (x - mean) rstd weight + bias, with mean and variance of each channel; running numbers follow
 * them by `momentum`, the variance as one of n - 1. */
KernelCudaFault kernel_cuda_channel_norm(KernelCuda *lane, const KernelTensor *y,
                                         const KernelTensor *x, const KernelCudaChannels *c);

/* Of mean, rstd and weight. Each result may be NULL. */
KernelCudaFault kernel_cuda_channel_norm_backward(KernelCuda *lane, const KernelTensor *dx,
                                                  const KernelTensor *dw, const KernelTensor *db,
                                                  const KernelTensor *dy, const KernelTensor *x,
                                                  const KernelCudaChannels *c);

#ifdef __cplusplus
}
#endif
