/* kernels/cuda/traced/tensor.h - tensors of any dtype, seen through strides, as
 * kernels/host/traced/tensor*.h has them; for networks that were traced.
 *
 * Computed in float, or in double where an operand is an integer or fp64, and rounded once. Bound:
 * memory; where sides do not lie as one, the divisions that find an element.
 */
#pragma once
#include "kernels/cuda/runtime.h"
#include "kernels/host/traced/tensor-rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As kernel_tensor_each(); an input without data is a number, numbers[i] (NULL: none is one). */
KernelCudaFault kernel_cuda_tensor_each(KernelCuda *lane, KernelEach what, const KernelTensor *y,
                                        const KernelTensor *inputs, const double *numbers,
                                        unsigned n_inputs, double p, double q);

/* y = factor times the sum of x over the sides in `summed` (bits), as kernel_tensor_sum(): in
 * double, through a fixed tree. Where x's last side is summed a block adds up each element of y;
 * else 8 threads do, for 32 elements side by side. Where those blocks would be few, several share
 * out what is summed, and their sums are added in order. */
KernelCudaFault kernel_cuda_tensor_sum(KernelCuda *lane, const KernelTensor *y,
                                       const KernelTensor *x, unsigned summed, double factor);

/* Element i of y, of one side, is start + i step. */
KernelCudaFault kernel_cuda_tensor_count_up(KernelCuda *lane, const KernelTensor *y, double start,
                                            double step);

/* y = x where column - row <= diagonal in each matrix of the last two sides (lower), or >= it; else
 * 0. Both have the same sizes. */
KernelCudaFault kernel_cuda_tensor_triangle(KernelCuda *lane, const KernelTensor *y,
                                            const KernelTensor *x, int64_t diagonal, bool lower);

#ifdef __cplusplus
}
#endif
