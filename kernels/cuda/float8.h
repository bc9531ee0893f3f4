/* kernels/cuda/float8.h - casts to float8 and their scales.
 *
 * The same numbers as kernels/host/float8.h, bit by bit, but for what a norm or SwiGLU makes. A
 * scale is stored in fp32 as what a product multiplies by; casts multiply by its inverse. Bound:
 * memory, what is read once, and what is written.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    KERNEL_CUDA_E4M3,
    KERNEL_CUDA_E5M2,
} KernelCudaFloat8;

/* What a scale is of. */
typedef enum {
    KERNEL_CUDA_WHOLE,
    KERNEL_CUDA_EACH_ROW,
    KERNEL_CUDA_EACH_COLUMN,
} KernelCudaAlong;

/* A matrix, or what is made of it as it is read: silu(x) up, or x rstd[row] weight[column]; NULL:
 * not. rstd is fp32. */
typedef struct {
    const void *x, *up, *weight;
    const float *rstd;
    size_t rows, cols;
    KernelCudaType type;
} KernelCudaFloat8Source;

/* scale[1], [rows] or [cols]: largest magnitude / largest, for each row or column so that its
 * inverse is a power of two. NaN where a number is. */
KernelCudaFault kernel_cuda_float8_scale(KernelCuda *lane, float *scale,
                                         const KernelCudaFloat8Source *source,
                                         KernelCudaAlong along, double largest);
/* as_is[rows, cols], turned[cols, rows]; NULL: not wanted. */
KernelCudaFault kernel_cuda_float8_cast(KernelCuda *lane, uint8_t *as_is, uint8_t *turned,
                                        const KernelCudaFloat8Source *source, const float *scale,
                                        KernelCudaAlong along, KernelCudaFloat8 to);
/* x[rows, cols] times row[rows] and column[cols], in place. */
KernelCudaFault kernel_cuda_float8_unscale(KernelCuda *lane, void *x, const float *row,
                                           const float *column, size_t rows, size_t cols,
                                           KernelCudaType type);

#ifdef __cplusplus
}
#endif
