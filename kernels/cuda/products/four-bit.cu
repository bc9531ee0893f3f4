/* kernels/cuda/products/four-bit.cu - see four-bit.h. Bound: memory. What is quantized, which is
 * done once, has a block of numbers a warp, two of them a thread, or a block of bytes a block, one
 * a thread. What is dequantized, before each product, is written 16 bytes a thread: a warp reads 64
 * or 128 bytes of places that lie together. The 16 values lie in 16 banks of shared memory, so that
 * no two threads that want different ones wait for each other.
 */
#include "kernels/cuda/products/four-bit.h"

#include <string.h>

#include "kernels/cuda/each.cuh"
#include "kernels/cuda/magnitude.cuh"

using namespace cu;

namespace {

enum {
    BLOCKS = THREADS / LANES, /* of numbers, that a block of threads has at once */
    NUMBERS = 2,              /* of a thread: one byte */
};
static_assert(KERNEL_FOUR_BIT_BLOCK == LANES * (int)NUMBERS, "two numbers a thread");
static_assert(KERNEL_BYTE_BLOCK == (int)THREADS && KERNEL_BYTE_MAP == (int)THREADS,
              "a byte a thread");

/* What a block is multiplied by. */
__device__ float inverse(float absmax) {
    return absmax > 0 ? 1 / absmax : 0;
}

/* How many bounds between neighbours, of n values in order, x is above. */
template <typename Value> __device__ unsigned above(unsigned n, float x, Value value) {
    unsigned low = 0, high = n - 1;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (x > (value(middle) + value(middle + 1)) / 2) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- 4 bits --------------------------------------------------------------------------------- */

__device__ unsigned place_of(const KernelFourBitValues &code, float x) {
    unsigned sign = x < 0 ? code.sign : 0;
    unsigned place = above(code.n_places, code.sign ? fabsf(x) : x,
                           [&](unsigned i) { return code.values[code.places[i]]; });
    return sign | code.places[place];
}

/* The table, for all of a block's threads. */
__device__ void share(KernelFourBitValues &shared, const KernelFourBitValues &code) {
    if (threadIdx.x == 0) {
        shared = code;
    }
    __syncthreads();
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    quantize_kernel(uint8_t *packed, float *absmax, const T *w, size_t n,
                    KernelFourBitValues code) {
    BLOCK_SHARED(KernelFourBitValues, shared);
    share(shared, code);
    unsigned lane = threadIdx.x % LANES;
    size_t n_blocks = (n + KERNEL_FOUR_BIT_BLOCK - 1) / KERNEL_FOUR_BIT_BLOCK;
    for (size_t b = (size_t)blockIdx.x * BLOCKS + threadIdx.x / LANES; b < n_blocks;
         b += (size_t)gridDim.x * BLOCKS) {
        size_t i = b * KERNEL_FOUR_BIT_BLOCK + lane * NUMBERS;
        float x[NUMBERS];
        for (unsigned k = 0; k < NUMBERS; k++) {
            x[k] = i + k < n ? widen(w[i + k]) : 0.0f;
        }
        float largest =
            __uint_as_float(warp_largest(larger(magnitude_of(x[0]), magnitude_of(x[1]))));
        float factor = inverse(largest);
        if (lane == 0) {
            absmax[b] = largest;
        }
        if (i < n) {
            unsigned second = i + 1 < n ? place_of(shared, x[1] * factor) : code.of_zero;
            packed[i / 2] = (uint8_t)(place_of(shared, x[0] * factor) << 4 | second);
        }
    }
}

/* Places of V numbers, of which each byte has two, the first in its upper half. */
template <int V> struct Places { uint8_t bytes[V / 2]; };

template <int V> __device__ Places<V> get_places(const uint8_t *packed, size_t i) {
    Places<V> places;
    if constexpr (V == 8) {
        uint32_t word = *(const uint32_t *)(packed + i / 2);
        memcpy(places.bytes, &word, sizeof word);
    } else {
        uint16_t word = *(const uint16_t *)(packed + i / 2);
        memcpy(places.bytes, &word, sizeof word);
    }
    return places;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    dequantize_kernel(T *w, const uint8_t *packed, const float *absmax, size_t n,
                      KernelFourBitValues code) {
    constexpr int V = VECTOR<T>;
    BLOCK_SHARED(float[KERNEL_FOUR_BIT_VALUES], values);
    if (threadIdx.x == 0) { /* at places that a compiler knows: else it copies all of code */
#pragma unroll
        for (int v = 0; v < KERNEL_FOUR_BIT_VALUES; v++) {
            values[v] = code.values[v];
        }
    }
    __syncthreads();
    bool fits = is_aligned(w) && (uintptr_t)packed % (V / 2) == 0;
    Span span = fits ? Span{0, n / V * V} : Span{n, n};
    for_span<V, 4>(
        span, n, (size_t)blockIdx.x * blockDim.x + threadIdx.x, (size_t)gridDim.x * blockDim.x,
        [&](size_t i) {
            unsigned place = i % 2 ? packed[i / 2] & 15u : packed[i / 2] >> 4;
            narrow(&w[i], values[place] * absmax[i / KERNEL_FOUR_BIT_BLOCK]);
        },
        [&](size_t i) { return get_places<V>(packed, i); },
        [&](size_t i, const Places<V> &places) {
            float x[V], largest = absmax[i / KERNEL_FOUR_BIT_BLOCK];
#pragma unroll
            for (int v = 0; v < V; v += 2) {
                x[v] = values[places.bytes[v / 2] >> 4] * largest;
                x[v + 1] = values[places.bytes[v / 2] & 15u] * largest;
            }
            store<V>(w + i, x);
        });
}

/* ---- 8 bits --------------------------------------------------------------------------------- */

struct Map {
    float values[KERNEL_BYTE_MAP];
};

__global__ void __launch_bounds__(THREADS) put_map_kernel(float *map, Map of_host) {
    map[threadIdx.x] = of_host.values[threadIdx.x];
}

__global__ void __launch_bounds__(THREADS)
    quantize_bytes_kernel(uint8_t *bytes, float *absmax, const float *x, const float *map,
                          size_t n) {
    BLOCK_SHARED(float[KERNEL_BYTE_MAP], values);
    values[threadIdx.x] = map[threadIdx.x];
    size_t n_blocks = (n + KERNEL_BYTE_BLOCK - 1) / KERNEL_BYTE_BLOCK;
    for (size_t b = blockIdx.x; b < n_blocks; b += gridDim.x) {
        size_t i = b * KERNEL_BYTE_BLOCK + threadIdx.x;
        float mine = i < n ? x[i] : 0.0f;
        float largest = __uint_as_float(block_largest(magnitude_of(mine))); /* waits for values */
        float scaled = mine * inverse(largest);
        if (threadIdx.x == 0) {
            absmax[b] = largest;
        }
        if (i < n) {
            bytes[i] = (uint8_t)above(KERNEL_BYTE_MAP, scaled,
                                      [&](unsigned place) { return values[place]; });
        }
    }
}

__global__ void __launch_bounds__(THREADS)
    dequantize_bytes_kernel(float *x, const uint8_t *bytes, const float *absmax, const float *map,
                            size_t n) {
    constexpr int V = VECTOR<float>;
    BLOCK_SHARED(float[KERNEL_BYTE_MAP], values);
    values[threadIdx.x] = map[threadIdx.x];
    __syncthreads();
    bool fits = is_aligned(x) && (uintptr_t)bytes % V == 0;
    Span span = fits ? Span{0, n / V * V} : Span{n, n};
    for_span<V, 4>(
        span, n, (size_t)blockIdx.x * blockDim.x + threadIdx.x, (size_t)gridDim.x * blockDim.x,
        [&](size_t i) { x[i] = values[bytes[i]] * absmax[i / KERNEL_BYTE_BLOCK]; },
        [&](size_t i) { return *(const uint32_t *)(bytes + i); },
        [&](size_t i, uint32_t word) {
            float z[V], largest = absmax[i / KERNEL_BYTE_BLOCK];
#pragma unroll
            for (int v = 0; v < V; v++) {
                z[v] = values[word >> 8 * v & 255u] * largest;
            }
            store<V>(x + i, z);
        });
}

} // namespace

KernelCudaFault kernel_cuda_quantize_4bit(KernelCuda *lane, uint8_t *packed, float *absmax,
                                          const void *w, size_t n, KernelFourBitCode code,
                                          KernelCudaType type) {
    return with_type(type, [&](auto t) {
        return launch_for(lane, "quantize_4bit", divide_up(n, NUMBERS),
                          quantize_kernel<decltype(t)>, packed, absmax, (const decltype(t) *)w, n,
                          kernel_four_bit_values[code]);
    });
}

KernelCudaFault kernel_cuda_dequantize_4bit(KernelCuda *lane, void *w, const uint8_t *packed,
                                            const float *absmax, size_t n, KernelFourBitCode code,
                                            KernelCudaType type) {
    return with_type(type, [&](auto t) {
        return launch_for(lane, "dequantize_4bit", divide_up(n, VECTOR<decltype(t)>),
                          dequantize_kernel<decltype(t)>, (decltype(t) *)w, packed, absmax, n,
                          kernel_four_bit_values[code]);
    });
}

KernelCudaFault kernel_cuda_put_byte_map(KernelCuda *lane, float *map, const float *of_host) {
    Map values;
    memcpy(values.values, of_host, sizeof values.values);
    return launch(lane, "byte_map", put_map_kernel, dim3(1), dim3(THREADS), 0, map, values);
}

KernelCudaFault kernel_cuda_quantize_bytes(KernelCuda *lane, uint8_t *bytes, float *absmax,
                                           const float *x, const float *map, size_t n) {
    return launch_for(lane, "quantize_bytes", n, quantize_bytes_kernel, bytes, absmax, x, map, n);
}

KernelCudaFault kernel_cuda_dequantize_bytes(KernelCuda *lane, float *x, const uint8_t *bytes,
                                             const float *absmax, const float *map, size_t n) {
    return launch_for(lane, "dequantize_bytes", divide_up(n, VECTOR<float>),
                      dequantize_bytes_kernel, x, bytes, absmax, map, n);
}
