/* kernels/cuda/magnitude.cuh - largest magnitudes; for .cu files of this folder only.
 *
 * As bits magnitudes are in the order of numbers, NaN last, which is found where there is one.
 */
#pragma once
#include "kernels/cuda/device.cuh"

namespace cu {

static inline __device__ uint32_t magnitude_of(float x) {
    return __float_as_uint(x) & 0x7fffffffu;
}

static inline __device__ uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Over a block's threads, THREADS at most; the first has it. */
static inline __device__ uint32_t block_largest(uint32_t x) {
    BLOCK_SHARED(uint32_t[THREADS], all);
    all[threadIdx.x] = x;
    __syncthreads();
    for (unsigned by = blockDim.x / 2; by > 0; by /= 2) {
        if (threadIdx.x < by) {
            all[threadIdx.x] = larger(all[threadIdx.x], all[threadIdx.x + by]);
        }
        __syncthreads();
    }
    return all[0];
}

} // namespace cu
