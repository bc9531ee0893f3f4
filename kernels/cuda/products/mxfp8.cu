/* kernels/cuda/products/mxfp8.cu - see mxfp8.h. Bound: memory. Along rows four neighbouring lanes
 * have a block's numbers, eight each, and agree on its largest; along columns a block of threads
 * fills a tile of 64 x 64, of which two lanes have a block's numbers.
 */
#include "kernels/cuda/products/mxfp8.h"

#include "kernels/cuda/products/float8.cuh"
#include "kernels/cuda/products/turned.cuh"

using namespace cu;

namespace {

enum {
    TURNED = 16, /* numbers of a column that a thread casts */
};

/* The largest of the magnitudes of a thread's numbers and those of its neighbours, of so many lanes
 * (a power of two), as bits: NaN's are the largest. */
template <int V> __device__ uint32_t largest_of(const float (&x)[V], int lanes) {
    uint32_t most = 0;
#pragma unroll
    for (int v = 0; v < V; v++) {
        most = max(most, float_bits(x[v]) & 0x7fffffffu);
    }
    for (int bits = lanes / 2; bits > 0; bits /= 2) {
        most = max(most, __shfl_xor_sync(0xffffffffu, most, bits));
    }
    return most;
}

/* A thread's numbers cast, and their exponent. */
template <int V> __device__ uint8_t cast(uint8_t (&numbers)[V], const float (&x)[V], int lanes) {
    uint8_t exponent = mxfp8_exponent_of(float_from_bits(largest_of(x, lanes)));
    float factor = mxfp8_inverse_of(exponent);
#pragma unroll
    for (int v = 0; v < V; v++) {
        numbers[v] = to_e4m3(x[v] * factor);
    }
    return exponent;
}

/* PIECE numbers, of which V go at a time. */
template <int V, typename T> __device__ void get(float (&x)[PIECE], const T *from) {
    if constexpr (V == PIECE) {
        load<V>(x, from);
    } else {
#pragma unroll
        for (int v = 0; v < PIECE; v++) {
            x[v] = widen(from[v]);
        }
    }
}

template <int V> __device__ void put_piece(uint8_t *to, const uint8_t (&numbers)[PIECE]) {
    if constexpr (V == PIECE) {
        uint2 bytes;
        memcpy(&bytes, numbers, sizeof bytes);
        put((uint2 *)to, bytes);
    } else {
#pragma unroll
        for (int v = 0; v < PIECE; v++) {
            to[v] = numbers[v];
        }
    }
}

/* n pieces. All lanes of a warp go on while one has work: each block's are neighbours. */
template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    cast_rows_kernel(uint8_t *numbers, uint8_t *exponents, const T *x, size_t n) {
    constexpr int LANES_A_BLOCK = MXFP8_BLOCK / PIECE;
    for (size_t first = (size_t)blockIdx.x * THREADS; first < n;
         first += (size_t)gridDim.x * THREADS) {
        size_t i = first + threadIdx.x;
        float piece[PIECE] = {};
        uint8_t made[PIECE];
        if (i < n) {
            get<V>(piece, x + i * PIECE);
        }
        uint8_t exponent = cast(made, piece, LANES_A_BLOCK);
        if (i < n) {
            put_piece<V>(numbers + i * PIECE, made);
            if (i % LANES_A_BLOCK == 0) {
                exponents[i / LANES_A_BLOCK] = exponent;
            }
        }
    }
}

/* A tile a block. V numbers of a row go at a time, PIECE or one, and OUT bytes of a turned row,
 * TURNED or one. */
template <typename T, int V, int OUT>
__global__ void __launch_bounds__(THREADS)
    cast_columns_kernel(uint8_t *numbers, uint8_t *exponents, const T *x, size_t rows, size_t cols,
                        size_t n_tiles, size_t tiles_a_row) {
    constexpr unsigned A_ROW = TILE / V, A_COLUMN = TILE / TURNED;
    static_assert(TILE * A_COLUMN == THREADS, "a thread has one piece of a column");
    BLOCK_SHARED(Tile<float>, tile);
    unsigned row = threadIdx.x % A_COLUMN * TURNED, col = threadIdx.x / A_COLUMN;
    for (size_t at = blockIdx.x; at < n_tiles; at += gridDim.x) {
        size_t row0 = at / tiles_a_row * TILE, col0 = at % tiles_a_row * TILE;
        for (unsigned i = threadIdx.x; i < TILE * A_ROW; i += THREADS) {
            unsigned y = i / A_ROW, from = i % A_ROW * V;
            if (row0 + y < rows && col0 + from < cols) {
                float piece[V];
                load<V>(piece, x + (row0 + y) * cols + col0 + from);
#pragma unroll
                for (int v = 0; v < V; v++) {
                    tile[y][from + v] = piece[v];
                }
            }
        }
        __syncthreads();
        bool inside = row0 + row < rows && col0 + col < cols;
        float column[TURNED] = {};
        uint8_t made[TURNED];
#pragma unroll
        for (int v = 0; inside && v < TURNED; v++) {
            column[v] = tile[row + v][col];
        }
        uint8_t exponent = cast(made, column, MXFP8_BLOCK / TURNED);
        if (inside) {
            size_t to = (col0 + col) * rows + row0 + row;
#pragma unroll
            for (int v = 0; v < TURNED; v += OUT) {
                uint8_t some[OUT];
                memcpy(some, made + v, OUT);
                put_moved(numbers + to + v, some);
            }
            if (row % MXFP8_BLOCK == 0) {
                exponents[to / MXFP8_BLOCK] = exponent;
            }
        }
        __syncthreads();
    }
}

/* n words of four exponents, U each: a tile's rows lie one behind the other. */
template <typename U>
__global__ void __launch_bounds__(THREADS)
    order_kernel(U *ordered, const U *exponents, size_t n, size_t cols) {
    constexpr size_t EACH = MXFP8_TILE_COLS / sizeof(U);
    FOR_WORK(size_t, i, n) {
        size_t words = cols / MXFP8_TILE_COLS, row = i / words, col = i % words * MXFP8_TILE_COLS;
        size_t to = mxfp8_place_of(row, col, cols) / MXFP8_TILE_COLS * EACH;
#pragma unroll
        for (size_t e = 0; e < EACH; e++) {
            ordered[to + e] = exponents[i * EACH + e];
        }
    }
}

template <typename T>
KernelCudaFault cast_rows(KernelCuda *lane, uint8_t *numbers, uint8_t *exponents, const T *x,
                          size_t n) {
    bool whole = (uintptr_t)x % 16 == 0 && (uintptr_t)numbers % PIECE == 0;
    return launch_for(lane, "mxfp8_cast", n / PIECE,
                      whole ? cast_rows_kernel<T, PIECE> : cast_rows_kernel<T, 1>, numbers,
                      exponents, x, n / PIECE);
}

template <typename T>
KernelCudaFault cast_columns(KernelCuda *lane, uint8_t *numbers, uint8_t *exponents, const T *x,
                             size_t rows, size_t cols) {
    Tiles tiles(lane, rows, cols);
    bool whole = (uintptr_t)x % 16 == 0 && cols % PIECE == 0;
    bool whole_out = (uintptr_t)numbers % TURNED == 0;
    auto kernel =
        whole ? whole_out ? cast_columns_kernel<T, PIECE, TURNED> : cast_columns_kernel<T, PIECE, 1>
        : whole_out ? cast_columns_kernel<T, 1, TURNED>
                    : cast_columns_kernel<T, 1, 1>;
    return launch(lane, "mxfp8_cast (columns)", kernel, dim3(tiles.grid), dim3(THREADS), 0, numbers,
                  exponents, x, rows, cols, tiles.n, tiles.a_row);
}

} // namespace

KernelCudaFault kernel_cuda_mxfp8_cast(KernelCuda *lane, uint8_t *numbers, uint8_t *exponents,
                                       const void *x, size_t rows, size_t cols, bool turned,
                                       KernelCudaType type) {
    if (!rows || !cols) {
        return NULL;
    }
    return with_type(type, [=](auto zero) {
        typedef decltype(zero) T;
        return turned ? cast_columns(lane, numbers, exponents, (const T *)x, rows, cols)
                      : cast_rows(lane, numbers, exponents, (const T *)x, rows * cols);
    });
}

KernelCudaFault kernel_cuda_mxfp8_order(KernelCuda *lane, uint8_t *ordered,
                                        const uint8_t *exponents, size_t rows, size_t cols) {
    size_t n = rows * cols / MXFP8_TILE_COLS;
    return ((uintptr_t)ordered | (uintptr_t)exponents) % sizeof(uint32_t) == 0
               ? launch_for(lane, "mxfp8_order", n, order_kernel<uint32_t>, (uint32_t *)ordered,
                            (const uint32_t *)exponents, n, cols)
               : launch_for(lane, "mxfp8_order", n, order_kernel<uint8_t>, ordered, exponents, n,
                            cols);
}
