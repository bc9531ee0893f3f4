/* tests/emulator/cudnn.cc - where cuDNN would be asked, so that what goes to it is seen without a GPU.
 *
 * It takes each shape that kernels/cuda would ask cuDNN for, computes with this project's own
 * kernels, and refuses arrays that do not begin on 16 bytes, which a GPU would fault on.
 */
#include "kernels/cuda/attention-private.h"

static bool is_aligned(const void *array) {
    return (uintptr_t)array % KERNEL_CUDA_CUDNN_ALIGNMENT == 0;
}

const char *kernel_cuda_cudnn_version(void) {
    return "emulated cuDNN";
}

void kernel_cuda_cudnn_free(KernelCuda *) {
}

bool kernel_cuda_cudnn_takes(KernelCuda *, const KernelCudaAttention *shape) {
    return kernel_cuda_cudnn_fits(shape);
}

KernelCudaFault kernel_cuda_cudnn_forward(KernelCuda *lane, void *o, float *lse, const void *q,
                                          const void *k, const void *v,
                                          const KernelCudaAttention *shape) {
    for (const void *array : {(const void *)o, (const void *)lse, q, k, v}) {
        if (!is_aligned(array)) {
            return kernel_cuda_fault("emulated cuDNN: %p does not begin on 16 bytes", array);
        }
    }
    return kernel_cuda_attention_own_forward(lane, o, lse, q, k, v, nullptr, shape);
}

KernelCudaFault kernel_cuda_cudnn_backward(KernelCuda *lane, void *dq, void *dk, void *dv,
                                           const void *d_o, const void *q, const void *k,
                                           const void *v, const void *o, const float *lse,
                                           const KernelCudaAttention *shape) {
    for (const void *array : {(const void *)dq, (const void *)dk, (const void *)dv, d_o, q, k, v, o,
                              (const void *)lse}) {
        if (!is_aligned(array)) {
            return kernel_cuda_fault("emulated cuDNN: %p does not begin on 16 bytes", array);
        }
    }
    return kernel_cuda_attention_own_backward(lane, dq, dk, dv, nullptr, d_o, q, k, v, nullptr, o,
                                              lse, shape);
}
