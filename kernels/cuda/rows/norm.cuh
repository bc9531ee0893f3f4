/* kernels/cuda/rows/norm.cuh - how norms take a row: its threads, and the pieces that each holds.
 *
 * A row is taken by the threads of a block, or, if it is short, by a warp of one or a few lanes of
 * a warp, as many as it has 16 bytes (heads' norms: 16 lanes for 128 numbers of 16 bits). Rows of
 * whole 16 bytes and up to ITEMS of them a thread are held in registers (Held); others are read
 * again from cache for each pass.
 */
#pragma once

#include "kernels/cuda/each.cuh"
#include "kernels/cuda/rows/norm.h"

namespace cu {

enum {
    ITEMS = 4,         /* of 16 bytes a thread holds */
    ROW_THREADS = 512, /* most threads to a row */
};

/* This thread's pieces of a row: piece `item` begins at column(item), if the row has it. They are
 * of T, or of S, which may be narrower, or of W, which may be wider. */
template <typename T, typename S = T, typename W = T> struct Held {
    static constexpr int V = VECTOR<T, S>;
    typedef Raw<V, T> Piece;
    typedef Raw<V, S> Narrow;
    typedef Raw<V, W> Weight;
    static __device__ bool has(int item, size_t width) {
        return column(item) < (unsigned)width;
    }
    static __device__ unsigned column(int item) {
        return ((unsigned)item * blockDim.x + threadIdx.x) * V;
    }
    /* Elements from this thread's first piece to another. */
    static __device__ unsigned offset(int item) {
        return (unsigned)item * blockDim.x * V;
    }
    template <typename U> static __device__ Raw<V, U> get(const U *at) {
        return load_raw<V>(at);
    }
    template <typename U> static __device__ Raw<V, U> all(float number) {
        float x[V];
#pragma unroll
        for (int v = 0; v < V; v++) {
            x[v] = number;
        }
        return narrow_raw<V, U>(x);
    }
};

/* Elements from a row of what is normed to the next. */
inline size_t row_of(const KernelCudaNorm *norm) {
    return norm->row ? norm->row : norm->width;
}

/* Of weights, biases and their gradients. */
inline KernelCudaType weight_type_of(const KernelCudaNorm *norm) {
    return norm->wide_weight ? KERNEL_CUDA_F32 : norm->type;
}

inline __device__ size_t first_row() {
    return (size_t)blockIdx.x * blockDim.y + threadIdx.y;
}

inline bool aligned(const void *at) {
    return (uintptr_t)at % 16 == 0;
}

/* Calls f with numbers of the types that are meant: of x, dx and dsum; of y, r and dy; of weights,
 * biases and their gradients. */
template <typename F> KernelCudaFault with_norm_types(const KernelCudaNorm *norm, F f) {
    if (norm->wide_weight && norm->type != KERNEL_CUDA_F32) {
        return with_type(norm->type, [&](auto t) { return f(t, t, float()); });
    }
    return with_narrower(norm->type, norm->narrow, [&](auto t, auto s) { return f(t, s, t); });
}

/* Threads to a row that hold it in so many items. */
inline unsigned row_threads(size_t pieces, unsigned items) {
    size_t threads = divide_up(divide_up(pieces, items), LANES) * LANES;
    return (unsigned)(threads < ROW_THREADS ? threads : ROW_THREADS);
}

/* Lanes of a warp, a power of two, for so many pieces. */
inline unsigned lanes_for(size_t pieces) {
    unsigned lanes = 1;
    while (lanes < LANES && lanes < pieces) {
        lanes *= 2;
    }
    return lanes;
}

inline unsigned streamed_threads(size_t width) {
    return row_threads(width, 4);
}

} // namespace cu
