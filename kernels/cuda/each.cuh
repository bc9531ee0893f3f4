/* kernels/cuda/each.cuh - kernels that make each output element from the input elements beside it;
 * for .cu files of kernels/cuda only.
 *
 * each() launches a function object F over n elements of some input and output arrays: F's
 * operator()(const float *in, float *out) works on one element, in[0] of the first input and so on.
 * Bound: memory, each array once.
 */
#pragma once
#include "kernels/cuda/device.cuh"

namespace cu {

template <typename T, int N> struct Arrays { T *at[N]; };

/* Elements at once, 16 bytes of the smaller type: of each input, as they lie. */
template <int V, typename X, int IN> struct Inputs { Raw<V, X> of[IN]; };

template <int V, typename X, int IN>
static inline __device__ Inputs<V, X, IN> get_inputs(const Arrays<const X, IN> &in, size_t i) {
    Inputs<V, X, IN> inputs;
#pragma unroll
    for (int a = 0; a < IN; a++) {
        inputs.of[a] = load_raw<V>(in.at[a] + i);
    }
    return inputs;
}

template <int V, typename X, typename Y, int IN, int OUT, typename F>
static inline __device__ void each_vector(const Inputs<V, X, IN> &in, const Arrays<Y, OUT> &out,
                                          size_t i, const F &f) {
    float x[IN][V], y[OUT][V];
#pragma unroll
    for (int a = 0; a < IN; a++) {
        widen_raw(x[a], in.of[a]);
    }
#pragma unroll
    for (int v = 0; v < V; v++) {
        float one_in[IN], one_out[OUT];
#pragma unroll
        for (int a = 0; a < IN; a++) {
            one_in[a] = x[a][v];
        }
        f(one_in, one_out);
#pragma unroll
        for (int a = 0; a < OUT; a++) {
            y[a][v] = one_out[a];
        }
    }
#pragma unroll
    for (int a = 0; a < OUT; a++) {
        store<V>(out.at[a] + i, y[a]);
    }
}

template <typename X, typename Y, int IN, int OUT, typename F>
static inline __device__ void each_one(const Arrays<const X, IN> &in, const Arrays<Y, OUT> &out,
                                       size_t i, const F &f) {
    float x[IN], y[OUT];
#pragma unroll
    for (int a = 0; a < IN; a++) {
        x[a] = widen(in.at[a][i]);
    }
    f(x, y);
#pragma unroll
    for (int a = 0; a < OUT; a++) {
        narrow(&out.at[a][i], y[a]);
    }
}

/* Whether all arrays meet a 16-byte border at the same element. */
template <int V, typename X, typename Y, int IN, int OUT>
static inline __device__ Span each_span(const Arrays<const X, IN> &in, const Arrays<Y, OUT> &out,
                                        size_t n) {
    Span span = sizeof(X) <= sizeof(Y) ? span_of<V>(n, in.at[0]) : span_of<V>(n, out.at[0]);
    bool fits = true;
#pragma unroll
    for (int a = 0; a < IN; a++) {
        fits = fits && is_aligned(in.at[a] + span.head);
    }
#pragma unroll
    for (int a = 0; a < OUT; a++) {
        fits = fits && is_aligned(out.at[a] + span.head);
    }
    return fits ? span : Span{n, n};
}

template <typename X, typename Y, int IN, int OUT, typename F>
static __global__ void __launch_bounds__(THREADS)
    each_kernel(Arrays<const X, IN> in, Arrays<Y, OUT> out, size_t n, F f) {
    constexpr int V = VECTOR<X, Y>, TURNS = TURNS_OF<IN * V *(int)sizeof(X)>;
    size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    for_span<V, TURNS>(
        each_span<V>(in, out, n), n, at, (size_t)gridDim.x * blockDim.x,
        [&](size_t i) { each_one(in, out, i, f); }, [&](size_t i) { return get_inputs<V>(in, i); },
        [&](size_t i, const Inputs<V, X, IN> &inputs) { each_vector<V>(inputs, out, i, f); });
}

template <typename X, typename Y, int IN, int OUT, typename F>
static inline KernelCudaFault each(KernelCuda *lane, const char *name,
                                   const Arrays<const X, IN> &in, const Arrays<Y, OUT> &out,
                                   size_t n, F f) {
    if (!n) {
        return NULL;
    }
    return launch(lane, name, each_kernel<X, Y, IN, OUT, F>,
                  dim3(grid_for(lane, divide_up(n, VECTOR<X, Y>))), dim3(THREADS), 0, in, out, n,
                  f);
}

/* ---- pieces of work, a thread each ---------------------------------------------------------- */

/* Threads stride over n pieces of work; I is the type they are counted in. */
#define FOR_WORK(I, i, n)                                                                          \
    for (I i = (I)blockIdx.x * (I)blockDim.x + (I)threadIdx.x; i < (n);                            \
         i += (I)gridDim.x * (I)blockDim.x)

/* Likewise use(i, what get(i) has read): of TURNS pieces all is asked for before any is used. */
template <int TURNS, typename I, typename Get, typename Use>
static inline __device__ void for_work(I n, Get get, Use use) {
    I stride = (I)gridDim.x * (I)blockDim.x;
    for (I i = (I)blockIdx.x * (I)blockDim.x + (I)threadIdx.x; i < n; i += stride * TURNS) {
        decltype(get(i)) got[TURNS];
#pragma unroll
        for (int u = 0; u < TURNS; u++) {
            if (i + u * stride < n) {
                got[u] = get(i + u * stride);
            }
        }
#pragma unroll
        for (int u = 0; u < TURNS; u++) {
            if (i + u * stride < n) {
                use(i + u * stride, got[u]);
            }
        }
    }
}

template <typename... P, typename... A>
static inline KernelCudaFault launch_for(KernelCuda *lane, const char *name, size_t n,
                                         void (*kernel)(P...), A... arguments) {
    return n ? launch(lane, name, kernel, dim3(grid_for(lane, n)), dim3(THREADS), 0, arguments...)
             : NULL;
}

/* What only moves goes 16 bytes at a time, where all of it begins on such: `all` is its addresses
 * and the bytes from place to place, or'd. f is called with a number of the type that is moved, and
 * how many elements it stands for. */
template <typename F>
static inline KernelCudaFault with_unit(KernelCudaType type, uintptr_t all, F f) {
    size_t bytes = kernel_cuda_type_bytes(type);
    return all % 16 == 0 ? f(uint4(), 16 / bytes)
           : bytes == 2  ? f(uint16_t(), 1)
                         : f(uint32_t(), 1);
}

/* Places are found by dividing, which takes several times as long in 64 bits as in 32: f is called
 * with a number of the type that counts up to n (and past it, by what a grid strides). */
template <typename F> static inline KernelCudaFault with_index(size_t n, F f) {
    return n < (size_t)1 << 31 ? f(uint32_t()) : f(size_t());
}

template <int N> struct Count { static constexpr int value = N; };

/* f is called with a constant, how many elements go at a time, and a number of the type that pieces
 * of so many are counted in: V of them where all steps and addresses (or'd) let 16 bytes go, else
 * one. */
template <int V, typename F>
static inline KernelCudaFault in_pieces(size_t steps, uintptr_t addresses, size_t n, F f) {
    if (steps % V == 0 && addresses % 16 == 0) {
        return with_index(n / V, [&](auto index) { return f(Count<V>(), index); });
    }
    return with_index(n, [&](auto index) { return f(Count<1>(), index); });
}

} // namespace cu
