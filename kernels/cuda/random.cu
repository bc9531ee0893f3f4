/* kernels/cuda/random.cu - see random.h. A thread makes a block of four numbers, of dropout those
 * of 16 bytes. Bound: arithmetic, some 100 integer operations a block. */
#include "kernels/cuda/random.h"

#include "kernels/cuda/philox.cuh"

using namespace cu;

namespace {

/* The four numbers of a block. */
struct Normal {
    float mean, std;
    __device__ void operator()(float (&number)[4], const Words &w) const {
#pragma unroll
        for (int p = 0; p < 4; p += 2) {
            float a, b;
            normal_pair(w.word[p], w.word[p + 1], &a, &b);
            number[p] = __fadd_rn(mean, __fmul_rn(std, a));
            number[p + 1] = __fadd_rn(mean, __fmul_rn(std, b));
        }
    }
};

struct Uniform {
    float low, span;
    __device__ void operator()(float (&number)[4], const Words &w) const {
#pragma unroll
        for (int v = 0; v < 4; v++) {
            number[v] = __fadd_rn(low, __fmul_rn(unit(w.word[v]), span));
        }
    }
};

/* Threads stride over the stream's blocks that hold elements first .. first + n - 1; f(i, block's
 * numbers, v) is called for each element i that is number v of its block. */
template <typename Make, typename F>
__device__ void for_numbers(size_t n, const KernelCudaRandom &r, const Make &make, F f) {
    uint64_t first_block = r.first_index / 4, last_block = (r.first_index + n + 3) / 4;
    for (uint64_t block = first_block + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
         block < last_block; block += (uint64_t)gridDim.x * blockDim.x) {
        float number[4];
        make(number, philox(block, r.seed, r.stream_id));
#pragma unroll
        for (int v = 0; v < 4; v++) {
            uint64_t index = block * 4 + v;
            if (index >= r.first_index && index < r.first_index + n) {
                f((size_t)(index - r.first_index), number[v]);
            }
        }
    }
}

template <typename T, typename Make>
__global__ void __launch_bounds__(THREADS)
    numbers_kernel(T *out, size_t n, KernelCudaRandom random, Make make) {
    for_numbers(n, random, make, [&](size_t i, float number) { narrow(&out[i], number); });
}

/* Whether V numbers of an array, and as many bytes of the mask, begin together. */
template <int V, typename T>
__device__ Span masked_span(size_t n, const uint8_t *mask, const T *x, const T *y) {
    Span span = span_of<V>(n, x, y);
    return (uintptr_t)(mask + span.head) % V == 0 ? span : Span{n, n};
}

template <int V> __device__ void put_mask(uint8_t *to, const uint8_t (&keep)[V]) {
    unsigned bits[V / 4];
    memcpy(bits, keep, sizeof bits);
#pragma unroll
    for (int w = 0; w < V / 4; w++) {
        ((unsigned *)to)[w] = bits[w];
    }
}

/* A thread takes 16 bytes and the blocks of their numbers, where those begin together; else a
 * block. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    dropout_kernel(T *y, uint8_t *mask, const T *x, size_t n, float p, float scale,
                   KernelCudaRandom random) {
    constexpr int V = VECTOR<T>;
    Uniform uniform = {0, 1};
    auto one = [&](size_t i, float number) {
        bool keep = number >= p;
        mask[i] = keep;
        narrow(&y[i], keep ? widen(x[i]) * scale : 0.0f);
    };
    Span span = masked_span<V>(n, mask, x, y);
    if (span.head == n || (random.first_index + span.head) % 4 != 0) {
        for_numbers(n, random, uniform, one);
        return;
    }
    for_span<V>(
        span, n, (size_t)blockIdx.x * blockDim.x + threadIdx.x, (size_t)gridDim.x * blockDim.x,
        [&](size_t i) {
            uint64_t index = random.first_index + i;
            float number[4];
            uniform(number, philox(index / 4, random.seed, random.stream_id));
#pragma unroll
            for (unsigned v = 0; v < 4; v++) {
                if (v == index % 4) {
                    one(i, number[v]);
                }
            }
        },
        [&](size_t i) {
            float z[V];
            uint8_t keep[V];
            load<V>(z, x + i);
#pragma unroll
            for (int first = 0; first < V; first += 4) {
                float number[4];
                uint64_t block = (random.first_index + i + first) / 4;
                uniform(number, philox(block, random.seed, random.stream_id));
#pragma unroll
                for (int v = 0; v < 4; v++) {
                    keep[first + v] = number[v] >= p;
                    z[first + v] = keep[first + v] ? z[first + v] * scale : 0.0f;
                }
            }
            put_mask(mask + i, keep);
            store<V>(y + i, z);
        });
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    dropout_backward_kernel(T *dx, const T *dy, const uint8_t *mask, size_t n, float scale) {
    constexpr int V = VECTOR<T>;
    for_span<V>(
        masked_span<V>(n, mask, dy, dx), n, (size_t)blockIdx.x * blockDim.x + threadIdx.x,
        (size_t)gridDim.x * blockDim.x,
        [&](size_t i) { narrow(&dx[i], mask[i] ? widen(dy[i]) * scale : 0.0f); },
        [&](size_t i) {
            float x[V];
            union {
                unsigned bits[V / 4];
                uint8_t keep[V];
            } kept;
            load<V>(x, dy + i);
#pragma unroll
            for (int w = 0; w < V / 4; w++) {
                kept.bits[w] = ((const unsigned *)(mask + i))[w];
            }
#pragma unroll
            for (int v = 0; v < V; v++) {
                x[v] = kept.keep[v] ? x[v] * scale : 0.0f;
            }
            store<V>(dx + i, x);
        });
}

template <typename Make>
KernelCudaFault numbers(KernelCuda *lane, const char *name, void *out, size_t n,
                        const KernelCudaRandom &random, KernelCudaType type, Make make) {
    if (!n) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, name, numbers_kernel<T, Make>, dim3(grid_for(lane, n / 4 + 2)),
                      dim3(THREADS), 0, (T *)out, n, random, make);
    });
}

} // namespace

KernelCudaFault kernel_cuda_philox_normal(KernelCuda *lane, void *out, size_t n,
                                          KernelCudaRandom random, float mean, float std,
                                          KernelCudaType type) {
    return numbers(lane, "philox_normal", out, n, random, type, Normal{mean, std});
}

KernelCudaFault kernel_cuda_philox_uniform(KernelCuda *lane, void *out, size_t n,
                                           KernelCudaRandom random, float low, float high,
                                           KernelCudaType type) {
    return numbers(lane, "philox_uniform", out, n, random, type, Uniform{low, high - low});
}

KernelCudaFault kernel_cuda_dropout_forward(KernelCuda *lane, void *y, uint8_t *mask, const void *x,
                                            size_t n, float p, KernelCudaRandom random,
                                            KernelCudaType type) {
    if (!n) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "dropout", dropout_kernel<T>, dim3(grid_for(lane, n / 4 + 2)),
                      dim3(THREADS), 0, (T *)y, mask, (const T *)x, n, p, 1 / (1 - p), random);
    });
}

KernelCudaFault kernel_cuda_dropout_backward(KernelCuda *lane, void *dx, const void *dy,
                                             const uint8_t *mask, size_t n, float p,
                                             KernelCudaType type) {
    if (!n) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "dropout_backward", dropout_backward_kernel<T>,
                      dim3(grid_for(lane, divide_up(n, VECTOR<T>))), dim3(THREADS), 0, (T *)dx,
                      (const T *)dy, mask, n, 1 / (1 - p));
    });
}
