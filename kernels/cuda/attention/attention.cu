/* kernels/cuda/attention/attention.cu - see attention.h: which way a shape takes. */
#include "kernels/cuda/attention/attention.h"

#include <initializer_list>

#include "kernels/cuda/attention/attention-private.h"

#ifndef KERNEL_CUDA_CUDNN
const char *kernel_cuda_cudnn_version(void) {
    return "no cuDNN";
}

void kernel_cuda_cudnn_free(KernelCuda *) {
}
#endif

#ifdef KERNEL_CUDA_CUDNN
static bool is_cudnns(KernelCuda *lane, const KernelCudaAttention *shape, bool backward) {
    return !lane->own_attention && !shape->ordered && shape->alibi == 0 && !shape->window &&
           !shape->v_dim && kernel_cuda_cudnn_takes(lane, shape, backward);
}
#endif

KernelCudaAttentionWay kernel_cuda_attention_way(KernelCuda *lane,
                                                 const KernelCudaAttention *shape) {
#ifdef KERNEL_CUDA_CUDNN
    if (is_cudnns(lane, shape, false) && is_cudnns(lane, shape, true)) {
        return KERNEL_CUDA_ATTENTION_CUDNN;
    }
#endif
    return KERNEL_CUDA_ATTENTION_OWN;
}

uint64_t kernel_cuda_attention_calls(const KernelCuda *lane, KernelCudaAttentionWay way) {
    return lane->attention_calls[way];
}

const char *kernel_cuda_attention_refusal(const KernelCuda *lane) {
    return lane->refusal[0] ? lane->refusal : NULL;
}

void kernel_cuda_attention_own_only(KernelCuda *lane, bool own_only) {
    lane->own_attention = own_only;
}

static bool is_empty(const KernelCudaAttention *a) {
    return !a->batch || !a->heads || !a->seq || !a->head_dim;
}

/* cuDNN's, where it takes the shape and all of these lie as its kernels load them. */
#ifdef KERNEL_CUDA_CUDNN
static bool goes_to_cudnn(KernelCuda *lane, const KernelCudaAttention *shape, bool backward,
                          std::initializer_list<const void *> arrays) {
    uintptr_t all = 0;
    for (const void *array : arrays) {
        all |= (uintptr_t)array;
    }
    return all % KERNEL_CUDA_CUDNN_ALIGNMENT == 0 && is_cudnns(lane, shape, backward);
}

/* Whether cuDNN has done it, or must say why it did not: what it planned and then could not run is
 * this room's own kernels'. */
static bool is_done(KernelCuda *lane, const KernelCudaAttention *shape, bool backward,
                    KernelCudaFault fault) {
    lane->attention_calls[KERNEL_CUDA_ATTENTION_CUDNN] += !fault;
    return !fault || kernel_cuda_cudnn_takes(lane, shape, backward);
}
#endif

KernelCudaFault kernel_cuda_attention_forward(KernelCuda *lane, void *o, float *lse, const void *q,
                                              const void *k, const void *v, const void *bias,
                                              const KernelCudaAttention *shape) {
    if (is_empty(shape)) {
        return NULL;
    }
#ifdef KERNEL_CUDA_CUDNN
    if (!bias && lse && goes_to_cudnn(lane, shape, false, {o, lse, q, k, v})) {
        KernelCudaFault fault = kernel_cuda_cudnn_forward(lane, o, lse, q, k, v, shape);
        if (is_done(lane, shape, false, fault)) {
            return fault;
        }
    }
#endif
    lane->attention_calls[KERNEL_CUDA_ATTENTION_OWN]++;
    return kernel_cuda_attention_own_forward(lane, o, lse, q, k, v, bias, shape);
}

KernelCudaFault kernel_cuda_attention_backward(KernelCuda *lane, void *dq, void *dk, void *dv,
                                               void *d_bias, const void *d_o, const void *q,
                                               const void *k, const void *v, const void *bias,
                                               const void *o, const float *lse,
                                               const KernelCudaAttention *shape) {
    if (is_empty(shape)) {
        return NULL;
    }
#ifdef KERNEL_CUDA_CUDNN
    if (!bias && goes_to_cudnn(lane, shape, true, {dq, dk, dv, d_o, q, k, v, o, lse})) {
        KernelCudaFault fault =
            kernel_cuda_cudnn_backward(lane, dq, dk, dv, d_o, q, k, v, o, lse, shape);
        if (is_done(lane, shape, true, fault)) {
            return fault;
        }
    }
#endif
    lane->attention_calls[KERNEL_CUDA_ATTENTION_OWN]++;
    return kernel_cuda_attention_own_backward(lane, dq, dk, dv, d_bias, d_o, q, k, v, bias, o, lse,
                                              shape);
}
