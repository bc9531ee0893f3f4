/* kernels/cuda/rows/embedding.h - table lookup and its gradient.
 *
 * The gradient is the same bits in every run: positions are brought into the order of their index
 * by a stable counting sort, and each row of the table is then added up by one block, in the order
 * of the positions. Bound: memory, at random rows.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out[i] = weight[index[i]], rows of width; out[count, width], weight[vocab, width]. Rows of a bad
 * index become zero. */
KernelCudaFault kernel_cuda_embedding_forward(KernelCuda *lane, void *out, const void *weight,
                                              const int64_t *index, size_t count, size_t vocab,
                                              size_t width, KernelCudaType type);
/* dweight[vocab, width] = 0, then dweight[index[i]] += dout[i]; summed in fp32, rounded once. */
KernelCudaFault kernel_cuda_embedding_backward(KernelCuda *lane, void *dweight, const void *dout,
                                               const int64_t *index, size_t count, size_t vocab,
                                               size_t width, KernelCudaType type);
/* y[rows, width] = a, then y[index[i]] += x[i] for n rows of x; summed in fp32, rounded once. */
KernelCudaFault kernel_cuda_add_to_rows(KernelCuda *lane, void *y, const void *a, const void *x,
                                        const int64_t *index, size_t n, size_t rows, size_t width,
                                        KernelCudaType type);

/* The gradient of a lookup whose dout lies [width, count]: dweight[row, h] is the sum of dout[h, i]
 * over the i with index[i] = row (T5's relative bias). Also added in one order. */
KernelCudaFault kernel_cuda_bias_backward(KernelCuda *lane, void *dweight, const void *dout,
                                          const int64_t *index, size_t count, size_t vocab,
                                          size_t width, KernelCudaType type);

#ifdef __cplusplus
}
#endif
