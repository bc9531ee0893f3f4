/* kernels/cuda/float8.cu - see float8.h. Bound: memory; tiles of 32 x 32 where columns are read or
 * written as rows, so that either side's neighbours are a thread's neighbours.
 */
#include "kernels/cuda/float8.h"

#include "kernels/cuda/each.cuh"
#include "kernels/cuda/magnitude.cuh"

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

/* ---- scales ---------------------------------------------------------------------------------- */

/* Of an array of scales, whichever way they are stored. */
__device__ double stored_at(const KernelCudaFloat8Scale &s, size_t i) {
    return s.type == KERNEL_CUDA_SCALE_F64 ? ((const double *)s.at)[i]
                                           : (double)load1(s.at, (KernelCudaType)s.type, i);
}

/* Stores what was found of a magnitude. */
__device__ void put_scale(const KernelCudaFloat8Scale &s, size_t i, uint32_t magnitude,
                          double largest, bool to_power) {
    float found = __uint_as_float(magnitude);
    if (s.type == KERNEL_CUDA_SCALE_F64) {
        ((double *)s.at)[i] = (double)found;
    } else if (s.type == KERNEL_CUDA_SCALE_F32) {
        ((float *)s.at)[i] = 1 / float8_scale_of((double)found, largest, to_power);
    } else {
        store1(s.at, (KernelCudaType)s.type, i, found);
    }
}

/* Of magnitudes, what casts multiply by, or its inverse, which products multiply by. */
__global__ void __launch_bounds__(THREADS)
    of_magnitudes_kernel(float *out, KernelCudaFloat8Scale magnitudes, size_t n, double largest,
                         bool to_power, bool inverse) {
    FOR_WORK(size_t, i, n) {
        float scale = float8_scale_of(stored_at(magnitudes, i), largest, to_power);
        out[i] = inverse ? 1 / scale : scale;
    }
}

/* ---- largest magnitudes ---------------------------------------------------------------------- */

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
    whole_kernel(KernelCudaFloat8Scale scale, const uint32_t *parts, size_t n_parts,
                 double largest) {
    uint32_t magnitude = 0;
    for (size_t i = threadIdx.x; i < n_parts; i += blockDim.x) {
        magnitude = larger(magnitude, parts[i]);
    }
    magnitude = block_largest(magnitude);
    if (threadIdx.x == 0) {
        put_scale(scale, 0, magnitude, largest, false);
    }
}

__global__ void __launch_bounds__(THREADS)
    each_scale_kernel(KernelCudaFloat8Scale scale, const uint32_t *parts, size_t n, size_t n_parts,
                      double largest) {
    FOR_WORK(size_t, i, n) {
        uint32_t magnitude = 0;
        for (size_t part = 0; part < n_parts; part++) {
            magnitude = larger(magnitude, parts[part * n + i]);
        }
        put_scale(scale, i, magnitude, largest, true);
    }
}

template <KernelCudaFloat8 TO> __device__ uint8_t narrowed(float x) {
    return TO == KERNEL_CUDA_E4M3 ? to_e4m3(x) : to_e5m2(x);
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

/* A tile a block; what is turned goes by way of shared memory. */
template <typename T, KernelCudaFloat8 TO>
__global__ void __launch_bounds__(TILE *TILE_ROWS)
    cast_kernel(uint8_t *as_is, uint8_t *turned, Numbers<T> numbers, Factors factors,
                size_t n_tiles, size_t tiles_a_row) {
    BLOCK_SHARED(uint8_t[TILE][TILE + 4], tile);
    for (size_t at = blockIdx.x; at < n_tiles; at += gridDim.x) {
        size_t row0 = at / tiles_a_row * TILE, col0 = at % tiles_a_row * TILE;
        size_t col = col0 + threadIdx.x;
        for (unsigned y = threadIdx.y; y < TILE; y += TILE_ROWS) {
            size_t row = row0 + y;
            if (row < numbers.rows && col < numbers.cols) {
                uint8_t cast = narrowed<TO>(numbers.at(row, col) * factors.of(row, col));
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

__device__ double stepped(KernelCudaFloat8Step step, double x, double largest, const float *scale) {
    switch (step) {
    case KERNEL_CUDA_FLOAT8_MAGNITUDE:
        return fabs(x);
    case KERNEL_CUDA_FLOAT8_CONVERT:
        return x;
    case KERNEL_CUDA_FLOAT8_AT_LEAST:
        return x < 1e-12 ? 1e-12 : x;
    case KERNEL_CUDA_FLOAT8_INVERT:
        return 1 / x;
    case KERNEL_CUDA_FLOAT8_TIMES_LARGEST:
        return x * largest;
    case KERNEL_CUDA_FLOAT8_TIMES_SCALE:
        return x * (double)*scale;
    case KERNEL_CUDA_FLOAT8_BOUND:
        return x > largest ? largest : x < -largest ? -largest : x;
    case KERNEL_CUDA_FLOAT8_INVERSE_SCALE:
        return (double)(1 / float8_scale_of(x, largest, false));
    case KERNEL_CUDA_FLOAT8_INVERSE_OF_POWER:
        return (double)(1 / float8_scale_of(x, largest, true));
    }
    return x;
}

/* In double and rounded once, which of one step in fp32 is the same. */
template <typename Y>
__global__ void __launch_bounds__(THREADS)
    step_kernel(Y *y, KernelCudaFloat8Scale x, size_t n, KernelCudaFloat8Step step, double largest,
                const float *scale) {
    FOR_WORK(size_t, i, n) {
        y[i] = (Y)stepped(step, stored_at(x, i), largest, scale);
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
KernelCudaFault find_columns(KernelCuda *lane, KernelCudaFloat8Scale scale,
                             const Numbers<T> &numbers, double largest) {
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
KernelCudaFault find(KernelCuda *lane, KernelCudaFloat8Scale scale, const Numbers<T> &numbers,
                     bool each_row, double largest) {
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

size_t n_scales(const KernelCudaFloat8Source &source, KernelCudaAlong along) {
    return along == KERNEL_CUDA_EACH_ROW      ? source.rows
           : along == KERNEL_CUDA_EACH_COLUMN ? source.cols
                                              : 1;
}

KernelCudaFault of_magnitudes(KernelCuda *lane, float *out, KernelCudaFloat8Scale magnitudes,
                              size_t n, KernelCudaFloat8 to, bool to_power, bool inverse) {
    double largest = to == KERNEL_CUDA_E4M3 ? 448 : 57344;
    return launch_for(lane, "float8_of_magnitudes", n, of_magnitudes_kernel, out, magnitudes, n,
                      largest, to_power, inverse);
}

} // namespace

KernelCudaFault kernel_cuda_float8_scale(KernelCuda *lane, KernelCudaFloat8Scale scale,
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
                                        const KernelCudaFloat8Source *source,
                                        KernelCudaFloat8Scale scale, KernelCudaAlong along,
                                        KernelCudaFloat8 to) {
    if (!source->rows || !source->cols) {
        return NULL;
    }
    Tiles tiles = tiles_of(lane, source->rows, source->cols);
    Factors factors = {(const float *)scale.at, along, true};
    if (along != KERNEL_CUDA_SCALED_ALREADY && scale.type != KERNEL_CUDA_SCALE_F32) {
        size_t n = n_scales(*source, along);
        void *made;
        KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, n * sizeof(float), &made));
        KERNEL_CUDA_TRY(
            of_magnitudes(lane, (float *)made, scale, n, to, along != KERNEL_CUDA_WHOLE, false));
        factors = {(const float *)made, along, false};
    }
    return with_type(source->type, [=](auto zero) {
        typedef decltype(zero) T;
        auto kernel = to == KERNEL_CUDA_E4M3 ? cast_kernel<T, KERNEL_CUDA_E4M3>
                                             : cast_kernel<T, KERNEL_CUDA_E5M2>;
        return launch(lane, "float8_cast", kernel, dim3(tiles.grid), dim3(TILE, TILE_ROWS), 0,
                      as_is, turned, numbers_of<T>(source), factors, tiles.n, tiles.a_row);
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
        return launch_for(lane, "float8_unscale", rows * cols, unscale_kernel<T>, (T *)x, of_rows,
                          of_columns, rows * cols, cols);
    });
}

KernelCudaFault kernel_cuda_float8_step(KernelCuda *lane, void *y, KernelCudaScaleType y_type,
                                        const void *x, KernelCudaScaleType x_type, size_t n,
                                        KernelCudaFloat8Step step, double largest,
                                        const float *scale) {
    KernelCudaFloat8Scale from = {(void *)x, x_type};
    return y_type == KERNEL_CUDA_SCALE_F64 ? launch_for(lane, "float8_step", n, step_kernel<double>,
                                                        (double *)y, from, n, step, largest, scale)
                                           : launch_for(lane, "float8_step", n, step_kernel<float>,
                                                        (float *)y, from, n, step, largest, scale);
}
