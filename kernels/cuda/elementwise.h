/* kernels/cuda/elementwise.h - one output element from the input elements beside it.
 *
 * All of them: n elements; out may alias any input of its own type. Bound: memory, the bytes of
 * each array once.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

KernelCudaFault kernel_cuda_fill(KernelCuda *lane, void *out, size_t n, double value,
                                 KernelCudaType type);
/* first + i step */
KernelCudaFault kernel_cuda_arange_i64(KernelCuda *lane, int64_t *out, size_t n, int64_t first,
                                       int64_t step);

/* out[i] = a[i] + b[i mod nb]: b repeats over leading dimensions; nb divides n. */
KernelCudaFault kernel_cuda_add(KernelCuda *lane, void *out, const void *a, const void *b, size_t n,
                                size_t nb, KernelCudaType type);
/* out[r, i] = x[r, i] + row[i] of n numbers. Here and for mul_row x and the row are of one type, or
 * one of them of fp32 and the other of any; out is of the wider type. */
KernelCudaFault kernel_cuda_add_row(KernelCuda *lane, void *out, const void *x, const void *row,
                                    size_t n, size_t cols, KernelCudaType type,
                                    KernelCudaType row_type);
KernelCudaFault kernel_cuda_mul(KernelCuda *lane, void *out, const void *a, const void *b, size_t n,
                                KernelCudaType type);
/* a + factor b; out may alias a. */
KernelCudaFault kernel_cuda_add_scaled(KernelCuda *lane, void *out, const void *a, const void *b,
                                       size_t n, double factor, KernelCudaType type);
KernelCudaFault kernel_cuda_divide(KernelCuda *lane, void *out, const void *a, const void *b,
                                   size_t n, KernelCudaType type);
KernelCudaFault kernel_cuda_exp(KernelCuda *lane, void *out, const void *x, size_t n,
                                KernelCudaType type);
KernelCudaFault kernel_cuda_log(KernelCuda *lane, void *out, const void *x, size_t n,
                                KernelCudaType type);

/* out[r, i] = x[r, i] row[i]; x[r, i] column[r], +, - and / likewise, all of one type; factor
 * column[r]. */
KernelCudaFault kernel_cuda_mul_row(KernelCuda *lane, void *out, const void *x, const void *row,
                                    size_t rows, size_t cols, KernelCudaType type,
                                    KernelCudaType row_type);
KernelCudaFault kernel_cuda_mul_column(KernelCuda *lane, void *out, const void *x,
                                       const void *column, size_t rows, size_t cols,
                                       KernelCudaType type);
KernelCudaFault kernel_cuda_add_column(KernelCuda *lane, void *out, const void *x,
                                       const void *column, size_t rows, size_t cols,
                                       KernelCudaType type);
KernelCudaFault kernel_cuda_sub_column(KernelCuda *lane, void *out, const void *x,
                                       const void *column, size_t rows, size_t cols,
                                       KernelCudaType type);
KernelCudaFault kernel_cuda_divide_column(KernelCuda *lane, void *out, const void *x,
                                          const void *column, size_t rows, size_t cols,
                                          KernelCudaType type);
KernelCudaFault kernel_cuda_spread(KernelCuda *lane, void *out, const void *column, size_t rows,
                                   size_t cols, double factor, KernelCudaType type);

/* out = factor x, from one storage to another; out may alias x if their types are one. */
KernelCudaFault kernel_cuda_scale(KernelCuda *lane, void *out, KernelCudaType out_type,
                                  const void *x, KernelCudaType x_type, size_t n, double factor);
/* out = x, from one storage to another. */
KernelCudaFault kernel_cuda_cast(KernelCuda *lane, void *out, KernelCudaType out_type,
                                 const void *x, KernelCudaType x_type, size_t n);
/* sum += x, accumulated in place. */
KernelCudaFault kernel_cuda_accumulate(KernelCuda *lane, void *sum, KernelCudaType sum_type,
                                       const void *x, KernelCudaType x_type, size_t n);

typedef enum {
    KERNEL_CUDA_POWER,        /* x to the power of `by` */
    KERNEL_CUDA_ADD_NUMBER,   /* x + by */
    KERNEL_CUDA_TIMES_NUMBER, /* x by */
    KERNEL_CUDA_AT_MOST,      /* min(x, by) */
    KERNEL_CUDA_AT_LEAST,     /* max(x, by) */
} KernelCudaNumber;

/* out[i] from x[i] and a number, in fp32 at memory speed; powers other than 1, 2, 3, 1/2 and -1/2
 * in double. */
KernelCudaFault kernel_cuda_number(KernelCuda *lane, void *out, const void *x, size_t n,
                                   KernelCudaNumber op, double by, KernelCudaType type);

#ifdef __cplusplus
}
#endif
