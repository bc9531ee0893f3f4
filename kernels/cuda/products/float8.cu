/* kernels/cuda/products/float8.cu - see float8.h. Bound: memory. A tile of 64 x 64 a block: a
 * thread reads eight numbers of a row at a time and writes them as eight bytes, and 16 of what is
 * turned by way of shared memory, if all rows and columns let it; else it goes one by one.
 */
#include "kernels/cuda/products/float8.cuh"
#include "kernels/cuda/products/turned.cuh"

using namespace cu;

namespace {

enum {
    TURNED = 16, /* bytes of a turned row that a thread writes at a time */
};

/* ---- tiles ---------------------------------------------------------------------------------- */

template <KernelCudaFloat8 TO> __device__ uint8_t narrowed(float x) {
    return TO == KERNEL_CUDA_E4M3 ? to_e4m3(x) : to_e5m2(x);
}

/* Two numbers as two bytes, the first lower. From sm_89 on one instruction makes both; the sign of
 * what is no number, which it leaves out, is put back. */
template <KernelCudaFloat8 TO> __device__ uint32_t narrowed2(float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t both;
    if (TO == KERNEL_CUDA_E4M3) {
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(both) : "f"(second), "f"(first));
    } else {
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(both) : "f"(second), "f"(first));
    }
    return both | (__float_as_uint(first) >> 24 & 0x80u) |
           (__float_as_uint(second) >> 16 & 0x8000u);
#else
    return narrowed<TO>(first) | (uint32_t)narrowed<TO>(second) << 8;
#endif
}

template <KernelCudaFloat8 TO> __device__ uint32_t narrowed4(const float *x) {
    return narrowed2<TO>(x[0], x[1]) | narrowed2<TO>(x[2], x[3]) << 16;
}

/* V numbers cast: into a row of the tile, and to as_is where that is wanted. */
template <KernelCudaFloat8 TO, int V>
__device__ void put_cast(uint8_t *in_tile, uint8_t *as_is, const float (&z)[V]) {
    if constexpr (V == PIECE) {
        uint2 bytes = make_uint2(narrowed4<TO>(z), narrowed4<TO>(z + 4));
        ((uint32_t *)in_tile)[0] = bytes.x; /* where 4 bytes begin */
        ((uint32_t *)in_tile)[1] = bytes.y;
        if (as_is) {
            put((uint2 *)as_is, bytes);
        }
    } else {
        *in_tile = narrowed<TO>(z[0]);
        if (as_is) {
            *as_is = *in_tile;
        }
    }
}

/* What numbers are cast by: 1 where they are scaled already. */
struct Factors {
    const float *at;
    KernelCudaAlong along;
    bool are_inverses; /* they lie there as what products multiply by */
    __device__ float of(size_t row, size_t col) const {
        if (along == KERNEL_CUDA_SCALED_ALREADY) {
            return 1;
        }
        size_t i = along == KERNEL_CUDA_EACH_ROW ? row : along == KERNEL_CUDA_EACH_COLUMN ? col : 0;
        return are_inverses ? 1 / at[i] : at[i];
    }
};

/* Bytes of a turned row. */
struct PutTurned {
    uint8_t *out;
    template <int V> __device__ void operator()(size_t i, const uint8_t (&bytes)[V]) const {
        put_moved(out + i, bytes);
    }
};

/* A tile a block. V numbers go at a time, PIECE or one; of a turned row TURNED bytes or one. */
template <typename N, KernelCudaFloat8 TO, int V>
__global__ void __launch_bounds__(THREADS, N::BLOCKS)
    cast_kernel(uint8_t *as_is, uint8_t *turned, N numbers, Factors factors, size_t n_tiles,
                size_t tiles_a_row) {
    constexpr unsigned A_ROW = TILE / V, STEP = THREADS / A_ROW;
    BLOCK_SHARED(Tile<uint8_t>, tile);
    KernelCudaAlong along = factors.along;
    unsigned x = threadIdx.x % A_ROW * V;
    float by_all = along == KERNEL_CUDA_WHOLE ? factors.of(0, 0) : 1.0f;
    for (size_t at = blockIdx.x; at < n_tiles; at += gridDim.x) {
        size_t row0 = at / tiles_a_row * TILE, col0 = at % tiles_a_row * TILE, col = col0 + x;
        size_t end = col < numbers.cols ? min(numbers.rows - row0, (size_t)TILE) : 0;
        float by_column[V];
#pragma unroll
        for (int v = 0; v < V; v++) {
            by_column[v] = 1.0f;
        }
        if (along == KERNEL_CUDA_EACH_COLUMN && end) {
#pragma unroll
            for (int v = 0; v < V; v++) {
                by_column[v] = factors.of(0, col + v);
            }
        }
        for_span<1, AT_ONCE<N>>(
            Span{0, end}, end, threadIdx.x / A_ROW, STEP, [](size_t) {},
            [&](size_t y) { return numbers.template take<V>(row0 + y, col); },
            [&](size_t y, const Taken<typename N::T, V> &taken) {
                size_t row = row0 + y;
                float z[V], by = along == KERNEL_CUDA_EACH_ROW ? factors.of(row, 0) : by_all;
                numbers.make(z, taken);
#pragma unroll
                for (int v = 0; v < V; v++) {
                    z[v] *= by * by_column[v]; /* one of which is 1 */
                }
                put_cast<TO>(&tile[y][x], as_is ? as_is + row * numbers.cols + col : NULL, z);
            });
        if (turned) {
            __syncthreads();
            for_turned<V == PIECE ? TURNED : 1>(tile, row0, col0, numbers.rows, numbers.cols,
                                                PutTurned{turned});
            __syncthreads();
        }
    }
}

/* n pieces of V elements. */
template <typename T, int V, typename I>
__global__ void __launch_bounds__(THREADS)
    unscale_kernel(T *x, const float *row, const float *column, I n, I cols) {
    I pieces = cols / V;
    FOR_WORK(I, i, n) {
        I r = i / pieces;
        float z[V], by[V], by_row = row[r];
        load<V>(z, x + (size_t)i * V);
        load<V>(by, column + (i - r * pieces) * V);
#pragma unroll
        for (int v = 0; v < V; v++) {
            z[v] *= by_row * by[v];
        }
        store<V>(x + (size_t)i * V, z);
    }
}

template <typename N, int V> auto cast_to(KernelCudaFloat8 to) {
    return to == KERNEL_CUDA_E4M3 ? cast_kernel<N, KERNEL_CUDA_E4M3, V>
                                  : cast_kernel<N, KERNEL_CUDA_E5M2, V>;
}

size_t n_scales(const KernelCudaFloat8Source &source, KernelCudaAlong along) {
    return along == KERNEL_CUDA_EACH_ROW      ? source.rows
           : along == KERNEL_CUDA_EACH_COLUMN ? source.cols
                                              : 1;
}

} // namespace

KernelCudaFault kernel_cuda_float8_cast(KernelCuda *lane, uint8_t *as_is, uint8_t *turned,
                                        const KernelCudaFloat8Source *source,
                                        KernelCudaFloat8Scale scale, KernelCudaAlong along,
                                        KernelCudaFloat8 to) {
    if (!source->rows || !source->cols) {
        return NULL;
    }
    Tiles tiles(lane, source->rows, source->cols);
    bool whole = in_whole_pieces(source) && (uintptr_t)as_is % PIECE == 0 &&
                 (!turned || (source->rows % TURNED == 0 && (uintptr_t)turned % TURNED == 0));
    Factors factors = {(const float *)scale.at, along, true};
    if (along != KERNEL_CUDA_SCALED_ALREADY && scale.type != KERNEL_CUDA_SCALE_F32) {
        size_t n = n_scales(*source, along);
        void *made;
        KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, n * sizeof(float), &made));
        KERNEL_CUDA_TRY(
            of_magnitudes(lane, (float *)made, scale, n, to, along != KERNEL_CUDA_WHOLE, false));
        factors = {(const float *)made, along, false};
    }
    return with_numbers(source, [=](auto numbers) {
        using N = decltype(numbers);
        return launch(lane, "float8_cast", whole ? cast_to<N, PIECE>(to) : cast_to<N, 1>(to),
                      dim3(tiles.grid), dim3(THREADS), 0, as_is, turned, numbers, factors, tiles.n,
                      tiles.a_row);
    });
}

KernelCudaFault kernel_cuda_float8_unscale(KernelCuda *lane, void *x, KernelCudaFloat8Scale row,
                                           KernelCudaFloat8Scale column, size_t rows, size_t cols,
                                           KernelCudaType type) {
    const float *of_rows = (const float *)row.at, *of_columns = (const float *)column.at;
    void *made;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, (rows + cols) * sizeof(float), &made));
    if (row.type != KERNEL_CUDA_SCALE_F32) {
        KERNEL_CUDA_TRY(
            of_magnitudes(lane, (float *)made, row, rows, KERNEL_CUDA_E4M3, true, true));
        of_rows = (float *)made;
    }
    if (column.type != KERNEL_CUDA_SCALE_F32) {
        KERNEL_CUDA_TRY(
            of_magnitudes(lane, (float *)made + rows, column, cols, KERNEL_CUDA_E4M3, true, true));
        of_columns = (float *)made + rows;
    }
    return with_type(type, [=](auto zero) {
        typedef decltype(zero) T;
        return in_pieces<VECTOR<T>>(
            cols, (uintptr_t)x | (uintptr_t)of_columns, rows * cols, [=](auto count, auto index) {
                constexpr int V = decltype(count)::value;
                size_t n = rows * cols / V;
                return launch_for(lane, "float8_unscale", n, unscale_kernel<T, V, decltype(index)>,
                                  (T *)x, of_rows, of_columns, n, cols);
            });
    });
}
