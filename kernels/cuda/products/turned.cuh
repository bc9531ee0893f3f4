/* kernels/cuda/products/turned.cuh - tiles of matrices whose rows become columns; for .cu files of
 * this folder only.
 *
 * A block of THREADS fills a tile by rows and reads it by columns, V numbers a thread on either
 * side: as many as 16 bytes hold, or one.
 */
#pragma once
#include "kernels/cuda/each.cuh"

namespace cu {

enum {
    TILE = 64,
};

/* Numbers [row][column]; a row has 4 bytes more, so that a column's do not meet in one bank. At 16
 * bytes: of shared bytes a compiler promises no border, and some are written by words. */
template <typename T> struct alignas(16) Tile {
    typedef T Row[TILE + 4 / sizeof(T)];
    Row row[TILE];

    __device__ Row &operator[](unsigned i) {
        return row[i];
    }
    __device__ const Row &operator[](unsigned i) const {
        return row[i];
    }
};

/* Tiles of a matrix [rows, cols], and blocks for them. */
struct Tiles {
    size_t a_row, n;
    unsigned grid;
    Tiles(const KernelCuda *lane, size_t rows, size_t cols)
        : a_row(divide_up(cols, TILE)), n(a_row * divide_up(rows, TILE)),
          grid(grid_for(lane, n * THREADS)) {
    }
};

/* Numbers that are moved as they are: V of 16 bytes or more, which begin where such do, or one. */
template <typename T, int V> static inline __device__ void get_moved(T (&x)[V], const T *from) {
    if constexpr (V == 1) {
        x[0] = *from;
    } else {
        uint4 parts[V * sizeof(T) / 16];
#pragma unroll
        for (unsigned p = 0; p < V * sizeof(T) / 16; p++) {
            parts[p] = ((const uint4 *)from)[p];
        }
        memcpy(x, parts, sizeof x);
    }
}

template <typename T, int V> static inline __device__ void put_moved(T *to, const T (&x)[V]) {
    if constexpr (V == 1) {
        *to = x[0];
    } else {
        uint4 parts[V * sizeof(T) / 16];
        memcpy(parts, x, sizeof x);
#pragma unroll
        for (unsigned p = 0; p < V * sizeof(T) / 16; p++) {
            put((uint4 *)to + p, parts[p]);
        }
    }
}

/* Calls f(i, x) for V numbers of each column of a tile, which begins at row0 and col0 of a matrix
 * [rows, cols]: i is where they begin in what is turned. */
template <int V, typename T, typename F>
static inline __device__ void for_turned(const Tile<T> &tile, size_t row0, size_t col0, size_t rows,
                                         size_t cols, F f) {
    constexpr unsigned A_ROW = TILE / V;
    for (unsigned i = threadIdx.x; i < TILE * A_ROW; i += THREADS) {
        unsigned row = i % A_ROW * V, col = i / A_ROW;
        if (row0 + row < rows && col0 + col < cols) {
            T x[V];
#pragma unroll
            for (int v = 0; v < V; v++) {
                x[v] = tile[row + v][col];
            }
            f((col0 + col) * rows + row0 + row, x);
        }
    }
}

} // namespace cu
