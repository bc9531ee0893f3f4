/* kernels/cuda/turned.cu - see turned.h. Bound: memory; tiles go by way of shared memory, so that
 * neighbours on either side are a thread's neighbours.
 */
#include "kernels/cuda/turned.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

enum {
    TILE = 32,
    TILE_ROWS = 8, /* of threads, each of which has four rows of a tile */
};

/* What is done with a number that lies at i of what is turned. */
template <typename T> struct Put {
    T *out;
    __device__ void operator()(size_t i, T x) const {
        out[i] = x;
    }
};

template <typename Y, typename X> struct AddTo {
    Y *y;
    float number;
    __device__ void operator()(size_t i, X x) const {
        narrow(&y[i], widen(y[i]) + number * widen(x));
    }
};

template <typename T, typename F>
__global__ void __launch_bounds__(TILE *TILE_ROWS)
    turned_kernel(const T *x, size_t rows, size_t cols, size_t n_tiles, size_t tiles_a_row, F f) {
    BLOCK_SHARED(T[TILE][TILE + 4 / sizeof(T)], tile);
    for (size_t at = blockIdx.x; at < n_tiles; at += gridDim.x) {
        size_t row0 = at / tiles_a_row * TILE, col0 = at % tiles_a_row * TILE;
        for (unsigned y = threadIdx.y; y < TILE; y += TILE_ROWS) {
            if (row0 + y < rows && col0 + threadIdx.x < cols) {
                tile[y][threadIdx.x] = x[(row0 + y) * cols + col0 + threadIdx.x];
            }
        }
        __syncthreads();
        for (unsigned y = threadIdx.y; y < TILE; y += TILE_ROWS) {
            if (row0 + threadIdx.x < rows && col0 + y < cols) {
                f((col0 + y) * rows + row0 + threadIdx.x, tile[threadIdx.x][y]);
            }
        }
        __syncthreads();
    }
}

template <typename T, typename F>
KernelCudaFault turn(KernelCuda *lane, const char *name, const T *x, size_t rows, size_t cols,
                     F f) {
    size_t tiles_a_row = divide_up(cols, TILE), n_tiles = tiles_a_row * divide_up(rows, TILE);
    return !n_tiles ? NULL
                    : launch(lane, name, turned_kernel<T, F>,
                             dim3(grid_for(lane, n_tiles * TILE * TILE_ROWS)),
                             dim3(TILE, TILE_ROWS), 0, x, rows, cols, n_tiles, tiles_a_row, f);
}

template <typename T>
KernelCudaFault exchange(KernelCuda *lane, void *out, const void *x, size_t rows, size_t cols) {
    return turn(lane, "exchange_sides", (const T *)x, rows, cols, Put<T>{(T *)out});
}

} // namespace

KernelCudaFault kernel_cuda_exchange_sides(KernelCuda *lane, void *out, const void *x, size_t rows,
                                           size_t cols, size_t bytes) {
    return bytes == 1   ? exchange<uint8_t>(lane, out, x, rows, cols)
           : bytes == 2 ? exchange<uint16_t>(lane, out, x, rows, cols)
                        : exchange<uint32_t>(lane, out, x, rows, cols);
}

KernelCudaFault kernel_cuda_add_turned(KernelCuda *lane, void *y, KernelCudaType y_type,
                                       const void *x, KernelCudaType x_type, size_t rows,
                                       size_t cols, double number) {
    return with_type(y_type, [&](auto to) {
        return with_type(x_type, [&](auto from) {
            using Y = decltype(to);
            using X = decltype(from);
            return turn(lane, "add_turned", (const X *)x, rows, cols,
                        AddTo<Y, X>{(Y *)y, (float)number});
        });
    });
}
