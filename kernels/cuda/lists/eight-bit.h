/* kernels/cuda/lists/eight-bit.h - AdamW with states in 8 bits, as
 * kernels/host/lists/eight-bit.h has it.
 *
 * Bound: memory, what is read once, and what is written.
 */
#pragma once
#include "kernels/cuda/runtime.h"
#include "kernels/eight-bit-step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* param and grad of a type, n a multiple of 256. */
KernelCudaFault kernel_cuda_adam_8bit(KernelCuda *lane, void *param, const void *grad,
                                      const KernelState8bit *exp_avg,
                                      const KernelState8bit *exp_avg_sq, size_t n, float least,
                                      const KernelAdamOne *one, KernelCudaType type);
KernelCudaFault kernel_cuda_adam_8bit_scaled(KernelCuda *lane, void *param, const void *grad,
                                             const KernelState8bit *exp_avg,
                                             const KernelState8bit *exp_avg_sq, size_t n,
                                             float least, const KernelAdamOne *one,
                                             KernelCudaType type);
KernelCudaFault kernel_cuda_adam_8bit_update(KernelCuda *lane, void *param, const void *grad,
                                             const KernelState8bit *exp_avg,
                                             const KernelState8bit *exp_avg_sq, size_t n,
                                             const KernelAdamOne *one, KernelCudaType type);
KernelCudaFault kernel_cuda_put_codes(KernelCuda *lane, uint8_t *codes, const float *x,
                                      const float *map, size_t n);
/* All of a type. */
KernelCudaFault kernel_cuda_adam_one(KernelCuda *lane, void *param, void *exp_avg, void *exp_avg_sq,
                                     const void *grad, size_t n, const KernelAdamOne *one,
                                     KernelCudaType type);

#ifdef __cplusplus
}
#endif
