/* kernels/cuda/products/matmul.h - matrix products, over cuBLASLt.
 *
 * Products of bf16 and fp16 are summed in fp32 (tensor cores); of fp32 as the lane's math says.
 * Weights lie as torch.nn.Linear's: w[n, k] for x[m, k] -> y[m, n]. What cuBLASLt's heuristics
 * choose for a shape is asked once a lane and kept. Of halves whose n is no multiple of 8, large
 * products of a linear layer without a bias go by way of up to 256 MiB of scratch memory (and a
 * copy of w, for dx), where that can be had. Bound: arithmetic, 2 m n k operations, unless one of
 * m, n, k is small.
 */
#pragma once
#include "kernels/cuda/activation.h"
#include "kernels/cuda/products/float8.h"
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y[m, n] = x[m, k] w[n, k]^T + bias[n]; bias may be NULL. Where cuBLASLt has nothing that adds a
 * bias as this one lies, another kernel does, and y is rounded twice. */
KernelCudaFault kernel_cuda_linear_forward(KernelCuda *lane, void *y, const void *x, const void *w,
                                           const void *bias, size_t m, size_t n, size_t k,
                                           KernelCudaType type);
/* before = x w^T + bias, y = gelu(before). With tanh in the product's own epilogue where cuBLASLt
 * has that for the shape and type; else by a second kernel, which erf always takes. */
KernelCudaFault kernel_cuda_linear_gelu_forward(KernelCuda *lane, void *y, void *before,
                                                const void *x, const void *w, const void *bias,
                                                size_t m, size_t n, size_t k,
                                                KernelCudaActivation gelu, KernelCudaType type);
/* dx[m, k] = dy[m, n] w[n, k]. */
KernelCudaFault kernel_cuda_linear_backward_input(KernelCuda *lane, void *dx, const void *dy,
                                                  const void *w, size_t m, size_t n, size_t k,
                                                  KernelCudaType type);
/* dw[n, k] = dy[m, n]^T x[m, k]. */
KernelCudaFault kernel_cuda_linear_backward_weight(KernelCuda *lane, void *dw, const void *dy,
                                                   const void *x, size_t m, size_t n, size_t k,
                                                   KernelCudaType type);
/* dw += dy^T x, rounded each time. */
KernelCudaFault kernel_cuda_linear_backward_weight_add(KernelCuda *lane, void *dw, const void *dy,
                                                       const void *x, size_t m, size_t n, size_t k,
                                                       KernelCudaType type);
/* dx[m, k] = gelu'(before[m, k]) (dy w), gelu with tanh; db[k], the sum of dx's rows (NULL: not
 * wanted). In one product where cuBLASLt has that; else rows are added up by a kernel of their own,
 * after they were rounded; else GELU's gradient is another's, and what goes into it was rounded. */
KernelCudaFault kernel_cuda_linear_gelu_backward_input(KernelCuda *lane, void *dx, void *db,
                                                       const void *dy, const void *w,
                                                       const void *before, size_t m, size_t n,
                                                       size_t k, KernelCudaType type);
/* dw as above, and db[n], the sum of dy's rows: in one product where cuBLASLt has that. */
KernelCudaFault kernel_cuda_linear_backward_weight_bias(KernelCuda *lane, void *dw, void *db,
                                                        const void *dy, const void *x, size_t m,
                                                        size_t n, size_t k, KernelCudaType type);

/* y[m, n] = alpha a b + beta y; of a beta of 0 y is not read. a is [m, k], b is [k, n], and either
 * may be turned: lie as [k, m], or [n, k]. */
KernelCudaFault kernel_cuda_product(KernelCuda *lane, void *y, const void *a, bool a_turned,
                                    const void *b, bool b_turned, size_t m, size_t n, size_t k,
                                    double alpha, double beta, KernelCudaType type);

/* A matrix for each head of each sequence: element (r, c) of the matrix of (b, h) lies at b
 * batch_stride + h head_stride + r row_stride + c, a transposed one with r and c exchanged. */
typedef struct {
    void *data;
    size_t batch_stride, head_stride, row_stride;
    bool transposed;
} KernelCudaMatrices;

/* y[m, n] = a[m, k] b[k, n] for each (b, h). The output is not transposed: whoever wants that
 * exchanges a and b and transposes them. One strided batch where the strides allow it, else one for
 * each sequence. */
KernelCudaFault kernel_cuda_heads_matmul(KernelCuda *lane, KernelCudaMatrices y,
                                         KernelCudaMatrices a, KernelCudaMatrices b, size_t batch,
                                         size_t heads, size_t m, size_t n, size_t k,
                                         KernelCudaType type);

/* What was cast, each row so long as what is summed, and in the device's memory what the product is
 * multiplied by for it; NULL: nothing. */
typedef struct {
    const uint8_t *numbers;
    const float *scale;
    KernelCudaFloat8 type;
} KernelCudaFloat8Factor;

/* y[m, n] = a[m, k] b[n, k]^T times both scales. GPUs from compute capability 8.9 on have it, for
 * sides that 16 divides. quick: sums may be kept less exactly on the way (what cuBLASLt calls fast
 * accumulation, as PyTorch has it forward). */
KernelCudaFault kernel_cuda_float8_product(KernelCuda *lane, void *y, KernelCudaFloat8Factor a,
                                           KernelCudaFloat8Factor b, size_t m, size_t n, size_t k,
                                           bool quick, KernelCudaType type);

/* In MXFP8: what was cast, and its exponents in the order that products read them in (mxfp8.h). */
typedef struct {
    const uint8_t *numbers, *exponents;
} KernelCudaMxfp8Factor;

/* Likewise, of GPUs from compute capability 10.0 on; 128 divides all sides. */
KernelCudaFault kernel_cuda_mxfp8_product(KernelCuda *lane, void *y, KernelCudaMxfp8Factor a,
                                          KernelCudaMxfp8Factor b, size_t m, size_t n, size_t k,
                                          KernelCudaType type);

#ifdef __cplusplus
}
#endif
