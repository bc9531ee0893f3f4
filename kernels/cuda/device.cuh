/* kernels/cuda/device.cuh - how the kernels are written; for .cu files of kernels/cuda only.
 *
 * Loads and stores go 16 bytes a thread. Where arrays do not begin on 16 bytes, but all miss it by
 * the same number of elements, that many are done one by one first (a Span); where they miss it by
 * different numbers, all are. Sums go through a fixed tree: lanes, warps, blocks.
 *
 * The same sources are compiled by a C++ compiler for the tests' emulator (tests/emulator), which
 * is why a launch is a call of launch() and shared memory is asked for by BLOCK_SHARED() and a
 * function.
 */
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <string.h>

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

/* Two numbers of 16 bits in a word, the first in its lower half: one instruction packs both. */
static inline __device__ unsigned pack(float first, float second, __nv_bfloat16) {
    __nv_bfloat162 two = __floats2bfloat162_rn(first, second);
    unsigned word;
    memcpy(&word, &two, sizeof word);
    return word;
}
static inline __device__ unsigned pack(float first, float second, __half) {
    __half2 two = __floats2half2_rn(first, second);
    unsigned word;
    memcpy(&word, &two, sizeof word);
    return word;
}

static inline __device__ void unpack(float *x, unsigned word, __nv_bfloat16) {
    x[0] = __uint_as_float(word << 16);
    x[1] = __uint_as_float(word & 0xffff0000u);
}
static inline __device__ void unpack(float *x, unsigned word, __half) {
    __half2 two;
    memcpy(&two, &word, sizeof two);
    float2 wide = __half22float2(two);
    x[0] = wide.x;
    x[1] = wide.y;
}

/* Elements of 16 bytes; of two types, of the smaller one. */
template <typename T, typename U = T>
constexpr int VECTOR = 16 / (sizeof(T) < sizeof(U) ? (int)sizeof(T) : (int)sizeof(U));

/* V elements as they lie. Loaded first and widened later, so that several loads are under way
 * together; `at` is a multiple of 16 bytes. Of one element it is any place. */
template <int V, typename T> struct Raw { uint4 part[V * sizeof(T) / 16]; };
template <typename T> struct Raw<1, T> { T one; };

template <int V, typename T> static inline __device__ Raw<V, T> load_raw(const T *at) {
    Raw<V, T> raw;
    if constexpr (V == 1) {
        raw.one = *at;
    } else {
#pragma unroll
        for (int p = 0; p < V * (int)sizeof(T) / 16; p++) {
            raw.part[p] = ((const uint4 *)at)[p];
        }
    }
    return raw;
}

/* The four words, or eight numbers, of 16 bytes. */
static inline __device__ void widen_part(float *x, const uint4 &bits, float) {
    x[0] = __uint_as_float(bits.x);
    x[1] = __uint_as_float(bits.y);
    x[2] = __uint_as_float(bits.z);
    x[3] = __uint_as_float(bits.w);
}
template <typename T> static inline __device__ void widen_part(float *x, const uint4 &bits, T t) {
    unpack(x, bits.x, t);
    unpack(x + 2, bits.y, t);
    unpack(x + 4, bits.z, t);
    unpack(x + 6, bits.w, t);
}
static inline __device__ uint4 narrow_part(const float *x, float) {
    return make_uint4(__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
                      __float_as_uint(x[3]));
}
template <typename T> static inline __device__ uint4 narrow_part(const float *x, T t) {
    return make_uint4(pack(x[0], x[1], t), pack(x[2], x[3], t), pack(x[4], x[5], t),
                      pack(x[6], x[7], t));
}

template <int V, typename T>
static inline __device__ void widen_raw(float (&x)[V], const Raw<V, T> &raw) {
    if constexpr (V == 1) {
        x[0] = widen(raw.one);
    } else {
#pragma unroll
        for (int p = 0; p < V * (int)sizeof(T) / 16; p++) {
            widen_part(x + p * (16 / (int)sizeof(T)), raw.part[p], T());
        }
    }
}
template <int V, typename T> static inline __device__ Raw<V, T> narrow_raw(const float (&x)[V]) {
    Raw<V, T> raw;
    if constexpr (V == 1) {
        narrow(&raw.one, x[0]);
    } else {
#pragma unroll
        for (int p = 0; p < V * (int)sizeof(T) / 16; p++) {
            raw.part[p] = narrow_part(x + p * (16 / (int)sizeof(T)), T());
        }
    }
    return raw;
}

/* 16 (8) bytes of global memory by one instruction: left to choose, the compiler takes several of 4
 * at times. */
static inline __device__ void put(uint4 *to, const uint4 &bits) {
#ifdef KERNEL_EMULATED
    emulator_must_be_global(to);
    *to = bits;
#else
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(bits.x), "r"(bits.y),
                 "r"(bits.z), "r"(bits.w)
                 : "memory");
#endif
}
static inline __device__ void put(uint2 *to, const uint2 &bits) {
#ifdef KERNEL_EMULATED
    emulator_must_be_global(to);
    *to = bits;
#else
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(bits.x), "r"(bits.y) : "memory");
#endif
}

template <int V, typename T> static inline __device__ void store_raw(T *at, const Raw<V, T> &raw) {
    if constexpr (V == 1) {
        *at = raw.one;
    } else {
#pragma unroll
        for (int p = 0; p < V * (int)sizeof(T) / 16; p++) {
            put((uint4 *)at + p, raw.part[p]);
        }
    }
}

template <int V, typename T> static inline __device__ void load(float (&x)[V], const T *at) {
    widen_raw(x, load_raw<V>(at));
}
template <int V, typename T> static inline __device__ void store(T *at, const float (&x)[V]) {
    store_raw(at, narrow_raw<V, T>(x));
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

/* Calls one(i) for each element outside the middle; `at` is this thread's number of `threads`. */
template <typename One>
static inline __device__ void for_rest(Span span, size_t n, size_t at, size_t threads, One one) {
    size_t rest = span.head + (n - span.tail);
    for (size_t i = at; i < rest; i += threads) {
        one(i < span.head ? i : span.tail + (i - span.head));
    }
}

/* Likewise, and many(i) for each V inside it. */
template <int V, typename One, typename Many>
static inline __device__ void for_span(Span span, size_t n, size_t at, size_t threads, One one,
                                       Many many) {
    for (size_t i = span.head + at * V; i < span.tail; i += threads * V) {
        many(i);
    }
    for_rest(span, n, at, threads, one);
}

/* Likewise many(i, what get(i) has read): of TURNS pieces all is asked for before any is used. */
template <int V, int TURNS, typename One, typename Get, typename Many>
static inline __device__ void for_span(Span span, size_t n, size_t at, size_t threads, One one,
                                       Get get, Many many) {
    size_t stride = threads * V;
    for (size_t i = span.head + at * V; i < span.tail; i += stride * TURNS) {
        decltype(get(i)) got[TURNS];
#pragma unroll
        for (int u = 0; u < TURNS; u++) {
            if (i + u * stride < span.tail) {
                got[u] = get(i + u * stride);
            }
        }
#pragma unroll
        for (int u = 0; u < TURNS; u++) {
            if (i + u * stride < span.tail) {
                many(i + u * stride, got[u]);
            }
        }
    }
    for_rest(span, n, at, threads, one);
}

/* Turns for so many bytes of a piece, so that 2048 threads of a multiprocessor have 64 KB under
 * way: an H100's memory wants some 32, an H200's 48 (NVIDIA's CCCL, transform's
 * arch_to_min_bytes_in_flight). */
template <int BYTES> constexpr int TURNS_OF = BYTES >= 32 ? 1 : 2;

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

template <typename T> static inline __device__ void widen_half4(float (&x)[4], const Raw4 &raw) {
    unpack(x, raw.bits.x, T());
    unpack(x + 2, raw.bits.y, T());
}

static inline __device__ void widen4(float (&x)[4], const Raw4 &raw, KernelCudaType type) {
    if (type == KERNEL_CUDA_F32) {
        widen_part(x, raw.bits, float());
    } else if (type == KERNEL_CUDA_BF16) {
        widen_half4<__nv_bfloat16>(x, raw);
    } else {
        widen_half4<__half>(x, raw);
    }
}

template <typename T> static inline __device__ void store_half4(T *at, const float (&x)[4]) {
    put((uint2 *)at, make_uint2(pack(x[0], x[1], T()), pack(x[2], x[3], T())));
}

static inline __device__ void store4(void *array, KernelCudaType type, size_t at,
                                     const float (&x)[4]) {
    if (type == KERNEL_CUDA_F32) {
        put((uint4 *)((float *)array + at), narrow_part(x, float()));
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

/* ---- shared memory --------------------------------------------------------------------------- */

/* Declares a variable that a block's threads share: BLOCK_SHARED(float[2][LANES], parts); */
template <typename T> using As = T;
#ifdef KERNEL_EMULATED
#define BLOCK_SHARED(type, name)                                                                   \
    static EmulatorSite name##_site;                                                               \
    cu::As<type> &name = *(cu::As<type> *)emulator_shared_at(&name##_site, sizeof(cu::As<type>))
#else
#define BLOCK_SHARED(type, name) __shared__ cu::As<type> name
#endif

/* The block's dynamic shared memory, at 16 bytes. */
template <typename T> static inline __device__ T *shared_memory() {
#ifdef KERNEL_EMULATED
    return (T *)emulator_shared_memory();
#else
    extern __shared__ uint4 kernel_cuda_shared[];
    return (T *)kernel_cuda_shared;
#endif
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

/* Over each `lanes` neighbours, a power of two up to 32, for all of them. */
static inline __device__ float lanes_sum(float x, unsigned lanes) {
    for (unsigned bits = lanes / 2; bits > 0; bits /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, (int)bits);
    }
    return x;
}

/* Over blockDim.x threads (a multiple of 32, or a power of two below), for all of them; of one row
 * of threads if blockDim.x is at most 32, else of the whole block, which then has one row. */
static inline __device__ float row_sum(float x) {
    BLOCK_SHARED(float[LANES], parts);
    if (blockDim.x < LANES) {
        return lanes_sum(x, blockDim.x);
    }
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

/* Likewise the largest, of rows of at least 32 threads. NaN is passed over, as by fmaxf(). */
static inline __device__ float row_max(float x) {
    BLOCK_SHARED(float[LANES], parts);
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

/* A kernel's code is loaded when it is first launched, or something is asked of it (CUDA's
 * programming guide, "Lazy Loading": a program that has taken all memory may fail there). So what
 * fails for want of memory is tried once more, if somebody gives some back. */
template <typename F>
static inline KernelCudaFault with_room(KernelCuda *lane, const char *name, F call) {
    cudaError_t error = call();
    if (error != cudaSuccess && kernel_cuda_made_room(lane, error)) {
        error = call();
    }
    return kernel_cuda_check(name, error);
}

/* What others have left behind as the last error is not this launch's: libraries try what a GPU may
 * refuse, and need not clean up (CUB did not: "CUDA global error state sanitization", 2020). */
template <typename... P, typename... A>
static inline KernelCudaFault launch(KernelCuda *lane, const char *name, void (*kernel)(P...),
                                     dim3 grid, dim3 block, size_t shared_bytes, A... arguments) {
    cudaGetLastError();
    return with_room(lane, name, [=] {
#ifdef KERNEL_EMULATED
        emulator_launch(name, (const void *)kernel, grid, block, shared_bytes, lane->stream,
                        [=] { kernel(P(arguments)...); });
#else
        kernel<<<grid, block, shared_bytes, lane->stream>>>(P(arguments)...);
#endif
        return cudaGetLastError();
    });
}

/* More shared memory for a block than a kernel may be launched with unasked. */
template <typename... P>
static inline KernelCudaFault allow_shared(KernelCuda *lane, void (*kernel)(P...), size_t bytes) {
    return with_room(lane, "cudaFuncSetAttribute", [=] {
        return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    (int)bytes);
    });
}

/* A block for each of n. Of more than a grid has there are none, which a launch refuses: what 32
 * bits leave of their number would be some, and do a part of the work. */
static inline unsigned block_each(size_t n) {
    return n <= INT32_MAX ? (unsigned)n : 0;
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

/* Likewise with two numbers: of the type, and of the narrower one, which what is stored in 16 bits
 * beside fp32 has, and else is the same. */
template <typename F>
static inline KernelCudaFault with_narrower(KernelCudaType type, KernelCudaType narrower, F f) {
    if (type == KERNEL_CUDA_F32 && narrower == KERNEL_CUDA_BF16) {
        return f(float(), __nv_bfloat16());
    }
    if (type == KERNEL_CUDA_F32 && narrower == KERNEL_CUDA_F16) {
        return f(float(), __half());
    }
    return with_type(type, [&](auto t) { return f(t, t); });
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
