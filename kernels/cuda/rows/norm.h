/* kernels/cuda/rows/norm.h - layer norm and RMS norm over the last dimension, alone or of a sum.
 *
 * A block takes a row and holds it in registers, so that it is read once. Weight gradients are
 * summed in two stages: each block of a fixed number keeps sums over its rows, then they are added
 * in order. Bound: memory; forward 2 arrays (of a sum: 4), backward 3 (with dsum: 4), of
 * [rows, width] each.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t rows, width;
    float eps;
    KernelCudaType type;
    size_t row;            /* elements from a row of x (forward: of a) to the next; 0: width */
    KernelCudaType narrow; /* beside type F32, if it is of 16 bits, that of y, r and dy alone */
    bool wide_weight;      /* weight, bias and their gradients are of fp32, whatever the type */
} KernelCudaNorm;

/* x = a + r, written to sum (rounded to the type before it is normed), or a alone where r and sum
 * are NULL. y = (x - mean) rstd weight + bias, with mean[rows] and rstd[rows] = 1 / sqrt(variance +
 * eps) in float. weight, bias: [width], each may be NULL (1 and 0). y may alias a. */
KernelCudaFault kernel_cuda_layernorm_forward(KernelCuda *lane, void *sum, void *y, float *mean,
                                              float *rstd, const void *a, const void *r,
                                              const void *weight, const void *bias,
                                              const KernelCudaNorm *norm);

/* Writes dx[rows, width], dweight[width] and dbias[width]; each may be NULL to leave it out.
 * dsum, what else flows into x, is added to dx; it may be NULL. dx may alias dy or dsum. */
KernelCudaFault kernel_cuda_layernorm_backward(KernelCuda *lane, void *dx, void *dweight,
                                               void *dbias, const void *dsum, const void *dy,
                                               const void *x, const float *mean, const float *rstd,
                                               const void *weight, const KernelCudaNorm *norm);

/* y = x rstd weight, with rstd[rows] = 1 / sqrt(mean of x^2 + eps) in float; x as above. */
KernelCudaFault kernel_cuda_rmsnorm_forward(KernelCuda *lane, void *sum, void *y, float *rstd,
                                            const void *a, const void *r, const void *weight,
                                            const KernelCudaNorm *norm);
KernelCudaFault kernel_cuda_rmsnorm_backward(KernelCuda *lane, void *dx, void *dweight,
                                             const void *dsum, const void *dy, const void *x,
                                             const float *rstd, const void *weight,
                                             const KernelCudaNorm *norm);

#ifdef __cplusplus
}
#endif
