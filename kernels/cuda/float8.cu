/* kernels/cuda/float8.cu - see float8.h. Bound: memory; tiles of 32 x 32 where columns are read or
 * written as rows, so that either side's neighbours are a thread's neighbours.
 */
#include "kernels/cuda/float8.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

__device__ inline uint32_t float_bits(float x) {
    return __float_as_uint(x);
}
__device__ inline float float_from_bits(uint32_t bits) {
    return __uint_as_float(bits);
}

} // namespace

#define FLOAT8_INLINE static inline __device__
#include "kernels/float8-bits.h"

namespace {

enum {
    TILE = 32,
    TILE_ROWS = 8,     /* of threads, each of which has four rows of a tile */
    MOST_PARTS = 1024, /* of a matrix, or of its rows, that are looked through beside each other */
};

enum Made {
    AS_IT_IS,
    BY_NORM,
    BY_SWIGLU
};

/* What the kernels take of a source. */
template <typename T> struct Numbers {
    const T *x, *up, *weight;
    const float *rstd;
    size_t rows, cols;
    Made made;
    __device__ float at(size_t i, size_t row, size_t col) const {
        float v = widen(x[i]);
        if (made == BY_NORM) {
            return v * (rstd[row] * widen(weight[col]));
        }
        return made == BY_SWIGLU ? v / (1 + expf(-v)) * widen(up[i]) : v;
    }
    __device__ float at(size_t row, size_t col) const {
        return at(row * cols + col, row, col);
    }
    __device__ float at(size_t i) const { /* only a norm asks where that is */
        size_t row = made == BY_NORM ? i / cols : 0;
        return at(i, row, i - row * cols);
    }
};

template <typename T> Numbers<T> numbers_of(const KernelCudaFloat8Source *s) {
    return {(const T *)s->x,
            (const T *)s->up,
            (const T *)s->weight,
            s->rstd,
            s->rows,
            s->cols,
            s->up     ? BY_SWIGLU
            : s->rstd ? BY_NORM
                      : AS_IT_IS};
}

/* As bits magnitudes are in the order of numbers, NaN last. */
__device__ uint32_t magnitude_of(float x) {
    return __float_as_uint(x) & 0x7fffffffu;
}

__device__ uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Over a block's threads; the first has it. */
__device__ uint32_t block_largest(uint32_t x) {
    BLOCK_SHARED(uint32_t[THREADS], all);
    all[threadIdx.x] = x;
    __syncthreads();
    for (unsigned by = blockDim.x / 2; by > 0; by /= 2) {
        if (threadIdx.x < by) {
            all[threadIdx.x] = larger(all[threadIdx.x], all[threadIdx.x + by]);
        }
        __syncthreads();
    }
    return all[0];
}

__device__ float inverse_scale(uint32_t magnitude, double largest, bool to_power) {
    return 1 / float8_scale_of((double)__uint_as_float(magnitude), largest, to_power);
}

/* So many elements a block: of a row, or of all. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    parts_kernel(uint32_t *parts, Numbers<T> numbers, size_t elements) {
    size_t n = numbers.rows * numbers.cols;
    for (size_t part = blockIdx.x; part * elements < n; part += gridDim.x) {
        size_t end = (part + 1) * elements < n ? (part + 1) * elements : n;
        uint32_t largest = 0;
        for (size_t i = part * elements + threadIdx.x; i < end; i += blockDim.x) {
            largest = larger(largest, magnitude_of(numbers.at(i)));
        }
        largest = block_largest(largest);
        if (threadIdx.x == 0) {
            parts[part] = largest;
        }
        __syncthreads(); /* before the next part's are written */
    }
}

/* Rows, every so many, of each column. */
template <typename T>
__global__ void __launch_bounds__(TILE *TILE_ROWS)
    columns_kernel(uint32_t *parts, Numbers<T> numbers) {
    BLOCK_SHARED(uint32_t[TILE_ROWS][TILE], all);
    size_t col = (size_t)blockIdx.x * TILE + threadIdx.x;
    uint32_t largest = 0;
    for (size_t row = (size_t)blockIdx.y * TILE_ROWS + threadIdx.y;
         row < numbers.rows && col < numbers.cols; row += (size_t)gridDim.y * TILE_ROWS) {
        largest = larger(largest, magnitude_of(numbers.at(row, col)));
    }
    all[threadIdx.y][threadIdx.x] = largest;
    __syncthreads();
    if (threadIdx.y == 0 && col < numbers.cols) {
        for (unsigned y = 1; y < TILE_ROWS; y++) {
            largest = larger(largest, all[y][threadIdx.x]);
        }
        parts[blockIdx.y * numbers.cols + col] = largest;
    }
}

/* Scale i is of parts i, i + n, i + 2 n, ...; a block of threads has one, or each has one. */
__global__ void __launch_bounds__(THREADS)
    whole_kernel(float *scale, const uint32_t *parts, size_t n_parts, double largest) {
    uint32_t magnitude = 0;
    for (size_t i = threadIdx.x; i < n_parts; i += blockDim.x) {
        magnitude = larger(magnitude, parts[i]);
    }
    magnitude = block_largest(magnitude);
    if (threadIdx.x == 0) {
        *scale = inverse_scale(magnitude, largest, false);
    }
}

__global__ void __launch_bounds__(THREADS)
    each_scale_kernel(float *scale, const uint32_t *parts, size_t n, size_t n_parts,
                      double largest) {
    FOR_WORK(size_t, i, n) {
        uint32_t magnitude = 0;
        for (size_t part = 0; part < n_parts; part++) {
            magnitude = larger(magnitude, parts[part * n + i]);
        }
        scale[i] = inverse_scale(magnitude, largest, true);
    }
}

template <KernelCudaFloat8 TO> __device__ uint8_t narrowed(float x) {
    return TO == KERNEL_CUDA_E4M3 ? to_e4m3(x) : to_e5m2(x);
}

/* A tile a block; what is turned goes by way of shared memory. */
template <typename T, KernelCudaFloat8 TO>
__global__ void __launch_bounds__(TILE *TILE_ROWS)
    cast_kernel(uint8_t *as_is, uint8_t *turned, Numbers<T> numbers, const float *scale,
                KernelCudaAlong along, size_t n_tiles, size_t tiles_a_row) {
    BLOCK_SHARED(uint8_t[TILE][TILE + 4], tile);
    for (size_t at = blockIdx.x; at < n_tiles; at += gridDim.x) {
        size_t row0 = at / tiles_a_row * TILE, col0 = at % tiles_a_row * TILE;
        size_t col = col0 + threadIdx.x;
        for (unsigned y = threadIdx.y; y < TILE; y += TILE_ROWS) {
            size_t row = row0 + y;
            if (row < numbers.rows && col < numbers.cols) {
                size_t i = along == KERNEL_CUDA_EACH_ROW      ? row
                           : along == KERNEL_CUDA_EACH_COLUMN ? col
                                                              : 0;
                uint8_t cast = narrowed<TO>(numbers.at(row, col) * (1 / scale[i]));
                tile[y][threadIdx.x] = cast;
                if (as_is) {
                    as_is[row * numbers.cols + col] = cast;
                }
            }
        }
        __syncthreads();
        for (unsigned y = threadIdx.y; turned && y < TILE; y += TILE_ROWS) {
            size_t row = row0 + threadIdx.x, turned_row = col0 + y;
            if (row < numbers.rows && turned_row < numbers.cols) {
                turned[turned_row * numbers.rows + row] = tile[threadIdx.x][y];
            }
        }
        __syncthreads();
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    unscale_kernel(T *x, const float *row, const float *column, size_t n, size_t cols) {
    FOR_WORK(size_t, i, n) {
        size_t r = i / cols;
        narrow(&x[i], widen(x[i]) * (row[r] * column[i - r * cols]));
    }
}

struct Tiles {
    size_t a_row, n;
    unsigned grid;
};

Tiles tiles_of(const KernelCuda *lane, size_t rows, size_t cols) {
    size_t a_row = divide_up(cols, TILE), n = a_row * divide_up(rows, TILE);
    return {a_row, n, grid_for(lane, n * THREADS)};
}

template <typename T>
KernelCudaFault find_columns(KernelCuda *lane, float *scale, const Numbers<T> &numbers,
                             double largest) {
    size_t blocks = divide_up(numbers.cols, TILE), most = divide_up(numbers.rows, TILE_ROWS);
    size_t wanted = divide_up((size_t)lane->processors * 8, blocks);
    size_t n_parts = wanted < most ? wanted : most;
    void *parts;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, n_parts * numbers.cols * sizeof(uint32_t), &parts));
    KERNEL_CUDA_TRY(launch(lane, "float8_columns", columns_kernel<T>,
                           dim3((unsigned)blocks, (unsigned)n_parts), dim3(TILE, TILE_ROWS), 0,
                           (uint32_t *)parts, numbers));
    return launch_for(lane, "float8_scales", numbers.cols, each_scale_kernel, scale,
                      (const uint32_t *)parts, numbers.cols, n_parts, largest);
}

template <typename T>
KernelCudaFault find(KernelCuda *lane, float *scale, const Numbers<T> &numbers, bool each_row,
                     double largest) {
    size_t n = numbers.rows * numbers.cols;
    size_t elements =
        each_row ? numbers.cols : divide_up(divide_up(n, MOST_PARTS), THREADS) * THREADS;
    size_t n_parts = divide_up(n, elements);
    void *parts;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, n_parts * sizeof(uint32_t), &parts));
    KERNEL_CUDA_TRY(launch(lane, "float8_magnitudes", parts_kernel<T>,
                           dim3(grid_for(lane, n_parts * THREADS)), dim3(THREADS), 0,
                           (uint32_t *)parts, numbers, elements));
    if (each_row) {
        return launch_for(lane, "float8_scales", numbers.rows, each_scale_kernel, scale,
                          (const uint32_t *)parts, numbers.rows, (size_t)1, largest);
    }
    return launch(lane, "float8_scale", whole_kernel, dim3(1), dim3(THREADS), 0, scale,
                  (const uint32_t *)parts, n_parts, largest);
}

} // namespace

KernelCudaFault kernel_cuda_float8_scale(KernelCuda *lane, float *scale,
                                         const KernelCudaFloat8Source *source,
                                         KernelCudaAlong along, double largest) {
    if (!source->rows || !source->cols) {
        return NULL;
    }
    return with_type(source->type, [=](auto zero) {
        Numbers<decltype(zero)> numbers = numbers_of<decltype(zero)>(source);
        return along == KERNEL_CUDA_EACH_COLUMN
                   ? find_columns(lane, scale, numbers, largest)
                   : find(lane, scale, numbers, along == KERNEL_CUDA_EACH_ROW, largest);
    });
}

KernelCudaFault kernel_cuda_float8_cast(KernelCuda *lane, uint8_t *as_is, uint8_t *turned,
                                        const KernelCudaFloat8Source *source, const float *scale,
                                        KernelCudaAlong along, KernelCudaFloat8 to) {
    if (!source->rows || !source->cols) {
        return NULL;
    }
    Tiles tiles = tiles_of(lane, source->rows, source->cols);
    return with_type(source->type, [=](auto zero) {
        typedef decltype(zero) T;
        auto kernel = to == KERNEL_CUDA_E4M3 ? cast_kernel<T, KERNEL_CUDA_E4M3>
                                             : cast_kernel<T, KERNEL_CUDA_E5M2>;
        return launch(lane, "float8_cast", kernel, dim3(tiles.grid), dim3(TILE, TILE_ROWS), 0,
                      as_is, turned, numbers_of<T>(source), scale, along, tiles.n, tiles.a_row);
    });
}

KernelCudaFault kernel_cuda_float8_unscale(KernelCuda *lane, void *x, const float *row,
                                           const float *column, size_t rows, size_t cols,
                                           KernelCudaType type) {
    return with_type(type, [=](auto zero) {
        typedef decltype(zero) T;
        return launch_for(lane, "float8_unscale", rows * cols, unscale_kernel<T>, (T *)x, row,
                          column, rows * cols, cols);
    });
}
