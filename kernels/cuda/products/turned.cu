/* kernels/cuda/products/turned.cu - see turned.h. Bound: memory; tiles go by way of shared memory
 * (turned.cuh), so that either side is read or written 16 bytes at a time, if all rows, columns and
 * addresses let it.
 */
#include "kernels/cuda/products/turned.h"

#include "kernels/cuda/products/turned.cuh"

using namespace cu;

namespace {

/* What is done with V numbers that lie from i on of what is turned. */
template <typename T> struct Put {
    T *out;
    template <int V> __device__ void operator()(size_t i, const T (&x)[V]) const {
        put_moved(out + i, x);
    }
};

template <typename Y, typename X> struct AddTo {
    Y *y;
    float number;
    template <int V> __device__ void operator()(size_t i, const X (&x)[V]) const {
        float sum[V];
        load<V>(sum, y + i);
#pragma unroll
        for (int v = 0; v < V; v++) {
            sum[v] += number * widen(x[v]);
        }
        store<V>(y + i, sum);
    }
};

template <typename T, int V, typename F>
__global__ void __launch_bounds__(THREADS)
    turned_kernel(const T *x, size_t rows, size_t cols, size_t n_tiles, size_t tiles_a_row, F f) {
    constexpr unsigned A_ROW = TILE / V, STEP = THREADS / A_ROW;
    BLOCK_SHARED(Tile<T>, tile);
    unsigned column = threadIdx.x % A_ROW * V;
    for (size_t at = blockIdx.x; at < n_tiles; at += gridDim.x) {
        size_t row0 = at / tiles_a_row * TILE, col0 = at % tiles_a_row * TILE;
        if (col0 + column < cols) {
#pragma unroll 4
            for (unsigned y = threadIdx.x / A_ROW; y < TILE; y += STEP) {
                if (row0 + y < rows) {
                    T some[V];
                    get_moved(some, x + (row0 + y) * cols + col0 + column);
#pragma unroll
                    for (int v = 0; v < V; v++) {
                        tile[y][column + v] = some[v];
                    }
                }
            }
        }
        __syncthreads();
        for_turned<V>(tile, row0, col0, rows, cols, f);
        __syncthreads();
    }
}

/* V numbers go at a time, or one. */
template <int V, typename T, typename F>
KernelCudaFault turn(KernelCuda *lane, const char *name, const T *x, const void *y, size_t rows,
                     size_t cols, F f) {
    if (!rows || !cols) {
        return NULL;
    }
    Tiles tiles(lane, rows, cols);
    bool whole = (rows | cols) % V == 0 && ((uintptr_t)x | (uintptr_t)y) % 16 == 0;
    return launch(lane, name, whole ? turned_kernel<T, V, F> : turned_kernel<T, 1, F>,
                  dim3(tiles.grid), dim3(THREADS), 0, x, rows, cols, tiles.n, tiles.a_row, f);
}

template <typename T>
KernelCudaFault exchange(KernelCuda *lane, void *out, const void *x, size_t rows, size_t cols) {
    return turn<16 / sizeof(T)>(lane, "exchange_sides", (const T *)x, out, rows, cols,
                                Put<T>{(T *)out});
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
            return turn<VECTOR<Y, X>>(lane, "add_turned", (const X *)x, y, rows, cols,
                                      AddTo<Y, X>{(Y *)y, (float)number});
        });
    });
}
