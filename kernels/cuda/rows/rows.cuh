/* kernels/cuda/rows/rows.cuh - how a block goes through a row of logits; for .cu files of
 * kernels/cuda only. Where the arrays of a row meet a border of 16 bytes at the same element, so
 * many go at a time.
 */
#pragma once
#include "kernels/cuda/each.cuh"

namespace cu {

/* exp(x) for x up to 0, or for a difference of logits. Where numbers are stored in 16 bits it comes
 * within 2^-21 (and |x| 2^-23), by one instruction of the unit for such functions and a product:
 * expf() and what surrounds it would take longer than the two bytes to arrive. */
template <typename T> static inline __device__ float exp_of(float x) {
    if (sizeof(T) == 4) {
        return expf(x);
    }
    float y = x * 1.44269504f; /* log2(e) */
#ifdef KERNEL_EMULATED
    return exp2f(y);
#else
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(y));
    return power;
#endif
}

/* Calls f(x) for this thread's elements of a row. */
template <typename T, typename F>
static inline __device__ void read_row(const T *x, size_t cols, F f) {
    constexpr int V = VECTOR<T>;
    for_span<V, 2>(
        span_of<V>(cols, x), cols, threadIdx.x, blockDim.x, [&](size_t i) { f(widen(x[i])); },
        [&](size_t i) { return load_raw<V>(x + i); },
        [&](size_t, const Raw<V, T> &raw) {
            float many[V];
            widen_raw(many, raw);
#pragma unroll
            for (int v = 0; v < V; v++) {
                f(many[v]);
            }
        });
}

/* Calls f(i, x) for this thread's elements of a row and writes what it returns. */
template <typename Y, typename X, typename F>
static inline __device__ void map_row(Y *y, const X *x, size_t cols, F f) {
    constexpr int V = VECTOR<X, Y>;
    Span span = sizeof(X) <= sizeof(Y) ? span_of<V>(cols, x, y) : span_of<V>(cols, y, x);
    for_span<V, TURNS_OF<V *(int)sizeof(X)>>(
        span, cols, threadIdx.x, blockDim.x, [&](size_t i) { narrow(&y[i], f(i, widen(x[i]))); },
        [&](size_t i) { return load_raw<V>(x + i); },
        [&](size_t i, const Raw<V, X> &raw) {
            float many[V];
            widen_raw(many, raw);
#pragma unroll
            for (int v = 0; v < V; v++) {
                many[v] = f(i + v, many[v]);
            }
            store<V>(y + i, many);
        });
}

/* Likewise f(i, x, y) from two arrays, of which neither's numbers are smaller than y's. */
template <typename Z, typename X, typename Y, typename F>
static inline __device__ void map_row(Z *z, const X *x, const Y *y, size_t cols, F f) {
    constexpr int V = VECTOR<Y>;
    static_assert(sizeof(X) >= sizeof(Y) && sizeof(Z) >= sizeof(Y), "pieces are y's");
    for_span<V>(
        span_of<V>(cols, y, x, z), cols, threadIdx.x, blockDim.x,
        [&](size_t i) { narrow(&z[i], f(i, widen(x[i]), widen(y[i]))); },
        [&](size_t i) {
            float a[V], b[V];
            load<V>(a, x + i);
            load<V>(b, y + i);
#pragma unroll
            for (int v = 0; v < V; v++) {
                a[v] = f(i + v, a[v], b[v]);
            }
            store<V>(z + i, a);
        });
}

} // namespace cu
