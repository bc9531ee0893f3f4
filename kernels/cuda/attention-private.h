/* kernels/cuda/attention-private.h - the two ways to compute attention; for .cu files of this
 * folder only. Arguments as in attention.h.
 */
#pragma once
#include "kernels/cuda/attention.h"
#include "kernels/cuda/lane.h"

/* From row to row of what has so many heads: dq, or dk and dv. */
static inline size_t kernel_cuda_gradient_stride(const KernelCudaAttention *a, size_t heads) {
    return a->gradient_stride ? a->gradient_stride : heads * a->head_dim;
}

KernelCudaFault kernel_cuda_attention_own_forward(KernelCuda *lane, void *o, float *lse,
                                                  const void *q, const void *k, const void *v,
                                                  const void *bias,
                                                  const KernelCudaAttention *shape);
KernelCudaFault kernel_cuda_attention_own_backward(KernelCuda *lane, void *dq, void *dk, void *dv,
                                                   void *d_bias, const void *d_o, const void *q,
                                                   const void *k, const void *v, const void *bias,
                                                   const void *o, const float *lse,
                                                   const KernelCudaAttention *shape);

#ifdef KERNEL_CUDA_CUDNN
/* Bytes at which arrays begin that go to cuDNN. */
static const unsigned KERNEL_CUDA_CUDNN_ALIGNMENT = 16;

/* Shapes that it is asked for at all. */
static inline bool kernel_cuda_cudnn_fits(const KernelCudaAttention *a) {
    return a->type != KERNEL_CUDA_F32 && a->head_dim % 8 == 0 && a->head_dim <= 128 &&
           a->q_stride % 8 == 0 && a->kv_stride % 8 == 0 && a->gradient_stride % 8 == 0;
}

/* Whether cuDNN is there and has a kernel for the shape; asked once a shape, then known. */
bool kernel_cuda_cudnn_takes(KernelCuda *lane, const KernelCudaAttention *shape);
KernelCudaFault kernel_cuda_cudnn_forward(KernelCuda *lane, void *o, float *lse, const void *q,
                                          const void *k, const void *v,
                                          const KernelCudaAttention *shape);
KernelCudaFault kernel_cuda_cudnn_backward(KernelCuda *lane, void *dq, void *dk, void *dv,
                                           const void *d_o, const void *q, const void *k,
                                           const void *v, const void *o, const float *lse,
                                           const KernelCudaAttention *shape);
#endif
