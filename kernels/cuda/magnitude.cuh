/* kernels/cuda/magnitude.cuh - largest magnitudes; for .cu files of kernels/cuda only.
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

static inline __device__ uint32_t warp_largest(uint32_t x) {
#pragma unroll
    for (int bits = LANES / 2; bits > 0; bits /= 2) {
        x = larger(x, __shfl_xor_sync(0xffffffffu, x, bits));
    }
    return x;
}

/* Over a block's threads, for all of them. */
static inline __device__ uint32_t block_largest(uint32_t x) {
    BLOCK_SHARED(uint32_t[LANES], parts);
    unsigned lane = threadIdx.x % LANES;
    x = warp_largest(x);
    __syncthreads(); /* the parts before are read */
    if (lane == 0) {
        parts[threadIdx.x / LANES] = x;
    }
    __syncthreads();
    return warp_largest(lane < blockDim.x / LANES ? parts[lane] : 0);
}

} // namespace cu
