/* kernels/cuda/device.cuh - how the kernels are written; for .cu files of this folder only.
 *
 * Loads and stores go 16 bytes a thread. Where arrays do not begin on 16 bytes, but all miss it by
 * the same number of elements, that many are done one by one first (a Span); where they miss it by
 * different numbers, all are. Sums go through a fixed tree: lanes, warps, blocks.
 *
 * The same sources are compiled by a C++ compiler for the tests' emulator (tests/emulator), which
 * is why a launch is a call of launch() and dynamic shared memory is asked for.
 */
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernels/cuda/lane.h"

namespace cu {

enum {
    LANES = 32,
    THREADS = 256, /* of a block, where a kernel says nothing else */
};

/* ---- stored numbers ------------------------------------------------------------------------- */

static inline __device__ float widen(float x) {
    return x;
}
static inline __device__ float widen(__nv_bfloat16 x) {
    return __bfloat162float(x);
}
static inline __device__ float widen(__half x) {
    return __half2float(x);
}

static inline __device__ void narrow(float *to, float x) {
    *to = x;
}
static inline __device__ void narrow(__nv_bfloat16 *to, float x) {
    *to = __float2bfloat16_rn(x);
}
static inline __device__ void narrow(__half *to, float x) {
    *to = __float2half_rn(x);
}

/* What a number becomes by being stored. */
template <typename T> static inline __device__ float rounded(float x) {
    T stored;
    narrow(&stored, x);
    return widen(stored);
}

/* Elements of 16 bytes; of two types, of the smaller one. */
template <typename T, typename U = T>
constexpr int VECTOR = 16 / (sizeof(T) < sizeof(U) ? (int)sizeof(T) : (int)sizeof(U));

/* V elements, at a multiple of 16 bytes. */
template <int V, typename T> static inline __device__ void load(float (&x)[V], const T *at) {
    constexpr int PARTS = V * (int)sizeof(T) / 16;
    union {
        uint4 part[PARTS];
        T number[V];
    } raw = {};
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        raw.part[p] = ((const uint4 *)at)[p];
    }
#pragma unroll
    for (int v = 0; v < V; v++) {
        x[v] = widen(raw.number[v]);
    }
}

template <int V, typename T> static inline __device__ void store(T *at, const float (&x)[V]) {
    constexpr int PARTS = V * (int)sizeof(T) / 16;
    union {
        uint4 part[PARTS];
        T number[V];
    } raw = {};
#pragma unroll
    for (int v = 0; v < V; v++) {
        narrow(&raw.number[v], x[v]);
    }
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        ((uint4 *)at)[p] = raw.part[p];
    }
}

/* Elements [head, tail) of an array go V at a time, what lies before and after one by one. */
struct Span {
    size_t head, tail;
};

template <typename T> static inline __device__ bool is_aligned(const T *at) {
    return (uintptr_t)at % 16 == 0;
}

template <int V, typename T, typename... P>
static inline __device__ Span span_of(size_t n, const T *first, const P *...others) {
    size_t head = (16 - (uintptr_t)first % 16) % 16 / sizeof(T);
    bool fits = head < n && (is_aligned(first + head) && ... && is_aligned(others + head));
    if (!fits) {
        return Span{n, n};
    }
    return Span{head, head + (n - head) / V * V};
}

/* Calls one(i) for each element outside the middle, many(i) for each V inside it; `at` is this
 * thread's number of `threads`. */
template <int V, typename One, typename Many>
static inline __device__ void for_span(Span span, size_t n, size_t at, size_t threads, One one,
                                       Many many) {
    for (size_t i = span.head + at * V; i < span.tail; i += threads * V) {
        many(i);
    }
    size_t rest = span.head + (n - span.tail);
    for (size_t i = at; i < rest; i += threads) {
        one(i < span.head ? i : span.tail + (i - span.head));
    }
}

/* ---- numbers whose type is known when the kernel runs --------------------------------------- */

/* Four elements as they lie: 16 bytes of floats, 8 of halves. Loaded first and widened later, so
 * that the loads of several arrays are under way together. */
struct Raw4 {
    uint4 bits;
};

static inline __device__ size_t bytes_of(KernelCudaType type) {
    return type == KERNEL_CUDA_F32 ? 4 : 2;
}

/* `at` counts elements, and is where 16 (8) bytes begin. */
static inline __device__ Raw4 load_raw(const void *array, KernelCudaType type, size_t at) {
    Raw4 raw;
    if (type == KERNEL_CUDA_F32) {
        raw.bits = *(const uint4 *)((const float *)array + at);
    } else {
        uint2 half = *(const uint2 *)((const __half *)array + at);
        raw.bits = make_uint4(half.x, half.y, 0, 0);
    }
    return raw;
}

template <typename T> static inline __device__ void widen_raw(float (&x)[4], const Raw4 &raw) {
    const T *number = (const T *)&raw.bits;
#pragma unroll
    for (int v = 0; v < 4; v++) {
        x[v] = widen(number[v]);
    }
}

static inline __device__ void widen4(float (&x)[4], const Raw4 &raw, KernelCudaType type) {
    if (type == KERNEL_CUDA_F32) {
        widen_raw<float>(x, raw);
    } else if (type == KERNEL_CUDA_BF16) {
        widen_raw<__nv_bfloat16>(x, raw);
    } else {
        widen_raw<__half>(x, raw);
    }
}

template <typename T> static inline __device__ void store_half4(T *at, const float (&x)[4]) {
    union {
        uint2 bits;
        T number[4];
    } raw = {};
#pragma unroll
    for (int v = 0; v < 4; v++) {
        narrow(&raw.number[v], x[v]);
    }
    *(uint2 *)at = raw.bits;
}

static inline __device__ void store4(void *array, KernelCudaType type, size_t at,
                                     const float (&x)[4]) {
    if (type == KERNEL_CUDA_F32) {
        *(float4 *)((float *)array + at) = make_float4(x[0], x[1], x[2], x[3]);
    } else if (type == KERNEL_CUDA_BF16) {
        store_half4((__nv_bfloat16 *)array + at, x);
    } else {
        store_half4((__half *)array + at, x);
    }
}

static inline __device__ float load1(const void *array, KernelCudaType type, size_t at) {
    return type == KERNEL_CUDA_F32    ? ((const float *)array)[at]
           : type == KERNEL_CUDA_BF16 ? widen(((const __nv_bfloat16 *)array)[at])
                                      : widen(((const __half *)array)[at]);
}

static inline __device__ void store1(void *array, KernelCudaType type, size_t at, float x) {
    if (type == KERNEL_CUDA_F32) {
        ((float *)array)[at] = x;
    } else if (type == KERNEL_CUDA_BF16) {
        narrow((__nv_bfloat16 *)array + at, x);
    } else {
        narrow((__half *)array + at, x);
    }
}

/* Where four elements may be loaded at once. */
static inline __device__ bool is_aligned4(const void *array, KernelCudaType type, size_t at) {
    size_t bytes = bytes_of(type);
    return ((uintptr_t)array + at * bytes) % (4 * bytes) == 0;
}

/* ---- sums ----------------------------------------------------------------------------------- */

static inline __device__ float warp_sum(float x) {
#pragma unroll
    for (int bits = LANES / 2; bits > 0; bits /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, bits);
    }
    return x;
}

static inline __device__ float warp_max(float x) {
#pragma unroll
    for (int bits = LANES / 2; bits > 0; bits /= 2) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, bits));
    }
    return x;
}

/* Over blockDim.x threads (a multiple of 32), for all of them; of one row of threads if blockDim.x
 * is 32, else of the whole block, which then has one row. */
static inline __device__ float row_sum(float x) {
    __shared__ float parts[LANES];
    x = warp_sum(x);
    if (blockDim.x == LANES) {
        return x;
    }
    __syncthreads(); /* the parts of the sum before are read */
    if (threadIdx.x % LANES == 0) {
        parts[threadIdx.x / LANES] = x;
    }
    __syncthreads();
    unsigned lane = threadIdx.x % LANES;
    return warp_sum(lane < blockDim.x / LANES ? parts[lane] : 0.0f);
}

static inline __device__ float row_max(float x) {
    __shared__ float parts[LANES];
    x = warp_max(x);
    if (blockDim.x == LANES) {
        return x;
    }
    __syncthreads();
    if (threadIdx.x % LANES == 0) {
        parts[threadIdx.x / LANES] = x;
    }
    __syncthreads();
    unsigned lane = threadIdx.x % LANES;
    return warp_max(lane < blockDim.x / LANES ? parts[lane] : parts[0]);
}

/* ---- indices -------------------------------------------------------------------------------- */

static inline __device__ bool is_inside(int64_t index, size_t n) {
    return index >= 0 && (uint64_t)index < n;
}

/* The first op to tell is kept (kernel_cuda_bad_index()). */
static inline __device__ void tell_bad_index(unsigned *flag, unsigned tag) {
    atomicCAS_system(flag, 0u, tag + 1);
}

/* ---- launches ------------------------------------------------------------------------------- */

/* The block's dynamic shared memory, at 16 bytes. */
template <typename T> static inline __device__ T *shared_memory() {
#ifdef KERNEL_EMULATED
    return (T *)emulator_shared_memory();
#else
    extern __shared__ uint4 kernel_cuda_shared[];
    return (T *)kernel_cuda_shared;
#endif
}

template <typename... P, typename... A>
static inline KernelCudaFault launch(KernelCuda *lane, const char *name, void (*kernel)(P...),
                                     dim3 grid, dim3 block, size_t shared_bytes, A... arguments) {
#ifdef KERNEL_EMULATED
    emulator_launch(name, grid, block, shared_bytes, lane->stream,
                    [=] { kernel(P(arguments)...); });
#else
    kernel<<<grid, block, shared_bytes, lane->stream>>>(P(arguments)...);
#endif
    return kernel_cuda_check(name, cudaGetLastError());
}

/* Calls f with a number of the type that is meant. */
template <typename F> static inline KernelCudaFault with_type(KernelCudaType type, F f) {
    switch (type) {
    case KERNEL_CUDA_F32:
        return f(float());
    case KERNEL_CUDA_BF16:
        return f(__nv_bfloat16());
    case KERNEL_CUDA_F16:
        return f(__half());
    }
    return kernel_cuda_fault("a type that is none");
}

static inline size_t divide_up(size_t n, size_t by) {
    return (n + by - 1) / by;
}

/* Blocks for n pieces of work of a thread each, in a kernel that strides over its grid: enough to
 * fill the device many times over, so that the last wave is a small part. */
static inline unsigned grid_for(const KernelCuda *lane, size_t n) {
    size_t most = (size_t)lane->processors * 32, blocks = divide_up(n, THREADS);
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

} // namespace cu
