/* kernels/cuda/traced/tensor-places.h - tensors of any dtype, seen through strides, that are looked
 * up and written by index along one side, repeated and added up along it.
 *
 * An index outside its side is told (kernel_cuda_bad_index()); nothing is read or written there.
 * Bound: memory, and the divisions that find an element; of a scatter and a running sum, whose
 * lines along the side are a thread's each so that they come out the same every time, the longest
 * line.
 */
#pragma once
#include "kernels/cuda/runtime.h"
#include "kernels/host/traced/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y[.., i, ..] = x[.., index[.., i, ..], ..] along `side`; y has the index's sizes, and x is as
 * long at least on the other sides. */
KernelCudaFault kernel_cuda_tensor_gather(KernelCuda *lane, const KernelTensor *y,
                                          const KernelTensor *x, const KernelTensor *index,
                                          unsigned side);

/* y[.., index[.., i, ..], ..] = source[.., i, ..] along `side`, or adds it to what is there; of
 * equal indices the last counts. Source and y are as long as the index at least; without a source
 * (NULL) it is `number`. */
KernelCudaFault kernel_cuda_tensor_scatter(KernelCuda *lane, const KernelTensor *y,
                                           const KernelTensor *index, const KernelTensor *source,
                                           double number, unsigned side, bool adds);

/* y[.., i, ..] = x[.., index[i], ..] along `side`; the index's elements in a row. */
KernelCudaFault kernel_cuda_tensor_index_select(KernelCuda *lane, const KernelTensor *y,
                                                const KernelTensor *x, const KernelTensor *index,
                                                unsigned side);

/* y[.., i, ..] = x[.., 0, ..] + .. + x[.., i, ..] along `side`, in double. */
KernelCudaFault kernel_cuda_tensor_running_sum(KernelCuda *lane, const KernelTensor *y,
                                               const KernelTensor *x, unsigned side);

/* y = x again and again along each side, matched from the last. */
KernelCudaFault kernel_cuda_tensor_repeat(KernelCuda *lane, const KernelTensor *y,
                                          const KernelTensor *x);

#ifdef __cplusplus
}
#endif
