/* kernels/host/products/matmul.h - matrix products, over CBLAS.
 *
 * The pieces of a linear layer are separate kernels, because each is an op of its own with outputs
 * of its own lifetime. Weights are laid out as torch.nn.Linear's: w[n, k] for x[m, k] -> y[m, n].
 * Every dimension must fit the BLAS' int; all are bound by arithmetic, 2 m n k operations, unless
 * one of m, n, k is small.
 */
#pragma once
#include <stddef.h>

typedef enum {
    KERNEL_NO_TRANSPOSE,
    KERNEL_TRANSPOSE,
} KernelTranspose;

/* c[m, n] = alpha op(a) op(b) + beta c, where op(a) is [m, k] and op(b) is [k, n]. Rows of the
 * stored a, b, c start lda, ldb, ldc elements apart. With beta 0, c is not read. */
void kernel_gemm_f32(KernelTranspose ta, KernelTranspose tb, size_t m, size_t n, size_t k,
                     float alpha, const float *a, size_t lda, const float *b, size_t ldb,
                     float beta, float *c, size_t ldc);

/* y[m, n] = x[m, k] w[n, k]^T + bias[n]; bias may be NULL. */
void kernel_linear_forward_f32(float *y, const float *x, const float *w, const float *bias,
                               size_t m, size_t n, size_t k);

/* dx[m, k] = dy[m, n] w[n, k]. */
void kernel_linear_backward_input_f32(float *dx, const float *dy, const float *w, size_t m,
                                      size_t n, size_t k);

/* dw[n, k] = dy[m, n]^T x[m, k]. */
void kernel_linear_backward_weight_f32(float *dw, const float *dy, const float *x, size_t m,
                                       size_t n, size_t k);
