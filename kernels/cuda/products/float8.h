/* kernels/cuda/products/float8.h - casts to float8 and their scales.
 *
 * The same numbers as kernels/host/products/float8.h, bit by bit, but for what a norm or SwiGLU
 * makes.
 * Bound: memory, what is read once, and what is written.
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
    KERNEL_CUDA_SCALED_ALREADY, /* numbers that are cast as they come */
} KernelCudaAlong;

/* The first three stand as in KernelCudaType. */
typedef enum {
    KERNEL_CUDA_SCALE_F32,
    KERNEL_CUDA_SCALE_BF16,
    KERNEL_CUDA_SCALE_F16,
    KERNEL_CUDA_SCALE_F64,
} KernelCudaScaleType;

/* Scales as they are stored: in fp32 what a product multiplies by, and casts by its inverse; in
 * another type the largest magnitude of which either is found. */
typedef struct {
    void *at;
    KernelCudaScaleType type;
} KernelCudaFloat8Scale;

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
KernelCudaFault kernel_cuda_float8_scale(KernelCuda *lane, KernelCudaFloat8Scale scale,
                                         const KernelCudaFloat8Source *source,
                                         KernelCudaAlong along, double largest);
/* as_is[rows, cols], turned[cols, rows]; NULL: not wanted. */
KernelCudaFault kernel_cuda_float8_cast(KernelCuda *lane, uint8_t *as_is, uint8_t *turned,
                                        const KernelCudaFloat8Source *source,
                                        KernelCudaFloat8Scale scale, KernelCudaAlong along,
                                        KernelCudaFloat8 to);
/* x[rows, cols] times row[rows] and column[cols], in place. */
KernelCudaFault kernel_cuda_float8_unscale(KernelCuda *lane, void *x, KernelCudaFloat8Scale row,
                                           KernelCudaFloat8Scale column, size_t rows, size_t cols,
                                           KernelCudaType type);

/* As kernel_float8_delay() of kernels/host/products/float8.h. */
KernelCudaFault kernel_cuda_float8_delay(KernelCuda *lane, float *history, float *scale,
                                         size_t passes, size_t tensors, double largest);

/* One step of PyTorch's eager kernels, each rounded to what it writes: fp32 or fp64. */
typedef enum {
    KERNEL_CUDA_FLOAT8_MAGNITUDE,
    KERNEL_CUDA_FLOAT8_CONVERT,
    KERNEL_CUDA_FLOAT8_AT_LEAST, /* the least that a largest magnitude counts as, 1e-12 */
    KERNEL_CUDA_FLOAT8_INVERT,
    KERNEL_CUDA_FLOAT8_TIMES_LARGEST,
    KERNEL_CUDA_FLOAT8_TIMES_SCALE,
    KERNEL_CUDA_FLOAT8_BOUND,         /* to what float8 can hold */
    KERNEL_CUDA_FLOAT8_INVERSE_SCALE, /* of a largest magnitude: what a product multiplies by */
    KERNEL_CUDA_FLOAT8_INVERSE_OF_POWER,
} KernelCudaFloat8Step;

/* y[n] of x[n]; scale[0] is of one step alone. */
KernelCudaFault kernel_cuda_float8_step(KernelCuda *lane, void *y, KernelCudaScaleType y_type,
                                        const void *x, KernelCudaScaleType x_type, size_t n,
                                        KernelCudaFloat8Step step, double largest,
                                        const float *scale);

#ifdef __cplusplus
}
#endif
