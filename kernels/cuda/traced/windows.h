/* kernels/cuda/traced/windows.h - what looks through windows (kernels/windows.h), of tensors of any
 * dtype, seen through strides: convolutions and pools.
 *
 * Convolutions are products of matrices that are nowhere written out: a tile's numbers are looked
 * up where they lie, and added up in fp32 in a fixed order. Bound: the divisions and loads that
 * find them, one for every 32 multiplications; no tensor cores. A weight's gradient has a block for
 * each 64 by 64 of it, so that of few channels leaves most of a GPU idle. Pools: a thread an
 * element, memory.
 */
#pragma once
#include "kernels/cuda/runtime.h"
#include "kernels/host/traced/tensor.h"
#include "kernels/windows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y [samples, out, ..] of x [samples, in, ..], weight [out, in / groups, ..] and bias [out] (may be
 * NULL). */
KernelCudaFault kernel_cuda_convolution(KernelCuda *lane, const KernelTensor *y,
                                        const KernelTensor *x, const KernelTensor *weight,
                                        const KernelTensor *bias, const KernelWindows *w);
/* bias [in] (may be NULL) is of transposed convolutions, which make what this makes. */
KernelCudaFault kernel_cuda_convolution_dx(KernelCuda *lane, const KernelTensor *dx,
                                           const KernelTensor *dy, const KernelTensor *weight,
                                           const KernelTensor *bias, const KernelWindows *w);
KernelCudaFault kernel_cuda_convolution_dw(KernelCuda *lane, const KernelTensor *dw,
                                           const KernelTensor *dy, const KernelTensor *x,
                                           const KernelWindows *w);

/* The largest of each window, and where it lies in its channel; of equals the first, and NaN is the
 * largest. in is the number of channels. */
KernelCudaFault kernel_cuda_max_pool(KernelCuda *lane, const KernelTensor *y,
                                     const KernelTensor *places, const KernelTensor *x,
                                     const KernelWindows *w);
KernelCudaFault kernel_cuda_max_pool_backward(KernelCuda *lane, const KernelTensor *dx,
                                              const KernelTensor *dy, const KernelTensor *places,
                                              const KernelWindows *w);

#ifdef __cplusplus
}
#endif
