/* kernels/cuda/random.h - the host's random numbers (kernels/host/random.h), on the device.
 *
 * Philox 4x32-10: a number is a function of (seed, stream_id, index), and the same bits as the
 * host's, normals included (polynomials without fused multiply-adds). Bound: arithmetic.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint64_t seed, stream_id, first_index;
} KernelCudaRandom;

/* Elements first_index .. of the stream, normal; rounded to the type. */
KernelCudaFault kernel_cuda_philox_normal(KernelCuda *lane, void *out, size_t n,
                                          KernelCudaRandom random, float mean, float std,
                                          KernelCudaType type);
/* Uniform in [low, high). */
KernelCudaFault kernel_cuda_philox_uniform(KernelCuda *lane, void *out, size_t n,
                                           KernelCudaRandom random, float low, float high,
                                           KernelCudaType type);

/* mask[i] says whether element i is kept (its uniform number is p or more); y = x / (1 - p) there,
 * else 0. y may alias x. 0 <= p < 1. Bound: memory, 2 arrays and a byte an element. */
KernelCudaFault kernel_cuda_dropout_forward(KernelCuda *lane, void *y, uint8_t *mask, const void *x,
                                            size_t n, float p, KernelCudaRandom random,
                                            KernelCudaType type);
/* dx = mask ? dy / (1 - p) : 0; dx may alias dy. */
KernelCudaFault kernel_cuda_dropout_backward(KernelCuda *lane, void *dx, const void *dy,
                                             const uint8_t *mask, size_t n, float p,
                                             KernelCudaType type);

#ifdef __cplusplus
}
#endif
