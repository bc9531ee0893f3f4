/* kernels/cuda/activation.h - nonlinearities, forward and backward.
 *
 * n elements each; an output may alias any input. Backward kernels take what PyTorch saves for
 * them: the input x, except tanh and relu, which take their own output y. Bound: memory.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    KERNEL_CUDA_GELU_TANH, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    KERNEL_CUDA_GELU_ERF,  /* x/2 (1 + erf(x / sqrt 2)) */
    KERNEL_CUDA_TANH,      /* tanh(x) */
    KERNEL_CUDA_RELU,      /* max(x, 0); NaN stays NaN */
    KERNEL_CUDA_SILU,      /* x / (1 + exp(-x)) */
} KernelCudaActivation;

KernelCudaFault kernel_cuda_activation_forward(KernelCuda *lane, void *y, const void *x, size_t n,
                                               KernelCudaActivation kind, KernelCudaType type);
/* saved: x, or for tanh and relu y. */
KernelCudaFault kernel_cuda_activation_backward(KernelCuda *lane, void *dx, const void *dy,
                                                const void *saved, size_t n,
                                                KernelCudaActivation kind, KernelCudaType type);

/* y = silu(gate) up; one pass over three arrays. */
KernelCudaFault kernel_cuda_swiglu_forward(KernelCuda *lane, void *y, const void *gate,
                                           const void *up, size_t n, KernelCudaType type);
/* One pass over five arrays. */
KernelCudaFault kernel_cuda_swiglu_backward(KernelCuda *lane, void *dgate, void *dup,
                                            const void *dy, const void *gate, const void *up,
                                            size_t n, KernelCudaType type);

#ifdef __cplusplus
}
#endif
