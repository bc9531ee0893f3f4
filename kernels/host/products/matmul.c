/* kernels/host/products/matmul.c - see matmul.h. */
#include "kernels/host/products/matmul.h"
#include "kernels/host/elementwise.h"
#include <cblas.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of one device's operands; one past the BLAS' range is the caller's slip. */
static int blas_int(size_t value) {
    if (value > INT_MAX) {
        abort();
    }
    return (int)value;
}

static CBLAS_TRANSPOSE blas_transpose(KernelTranspose transpose) {
    return transpose == KERNEL_TRANSPOSE ? CblasTrans : CblasNoTrans;
}

/* An empty sum: c = beta c, which not every BLAS does when k is 0. */
static void scale_rows(float *c, size_t ldc, size_t m, size_t n, float beta) {
    for (size_t i = 0; i < m; i++) {
        if (beta == 0.0f) {
            kernel_zero_f32(c + i * ldc, n);
        } else {
            kernel_scale_f32(c + i * ldc, c + i * ldc, beta, n);
        }
    }
}

void kernel_gemm_f32(KernelTranspose ta, KernelTranspose tb, size_t m, size_t n, size_t k,
                     float alpha, const float *a, size_t lda, const float *b, size_t ldb,
                     float beta, float *c, size_t ldc) {
    if (m == 0 || n == 0) {
        return;
    }
    if (k == 0) {
        scale_rows(c, ldc, m, n, beta);
        return;
    }
    cblas_sgemm(CblasRowMajor, blas_transpose(ta), blas_transpose(tb), blas_int(m), blas_int(n),
                blas_int(k), alpha, a, blas_int(lda), b, blas_int(ldb), beta, c, blas_int(ldc));
}

/* With a bias, y starts as the bias in every row and the product is added to it. */
void kernel_linear_forward_f32(float *y, const float *x, const float *w, const float *bias,
                               size_t m, size_t n, size_t k) {
    for (size_t i = 0; bias != NULL && n > 0 && i < m; i++) {
        memcpy(y + i * n, bias, n * sizeof *y);
    }
    kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_TRANSPOSE, m, n, k, 1.0f, x, k, w, k,
                    bias != NULL ? 1.0f : 0.0f, y, n);
}

void kernel_linear_backward_input_f32(float *dx, const float *dy, const float *w, size_t m,
                                      size_t n, size_t k) {
    kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_NO_TRANSPOSE, m, k, n, 1.0f, dy, n, w, k, 0.0f, dx,
                    k);
}

void kernel_linear_backward_weight_f32(float *dw, const float *dy, const float *x, size_t m,
                                       size_t n, size_t k) {
    kernel_gemm_f32(KERNEL_TRANSPOSE, KERNEL_NO_TRANSPOSE, n, k, m, 1.0f, dy, n, x, k, 0.0f, dw, k);
}
