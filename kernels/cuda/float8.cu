/* kernels/cuda/float8.cu - see float8.h. Bound: memory. A tile of 64 x 64 a block: a thread reads
 * eight numbers of a row at a time and writes them as eight bytes, and 16 of what is turned by way
 * of shared memory, if all rows and columns let it; else it goes one by one.
 */
#include "kernels/cuda/float8.h"

#include "kernels/cuda/each.cuh"
#include "kernels/cuda/magnitude.cuh"
#include "kernels/cuda/turned.cuh"

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
    PIECE = 8,         /* numbers that a thread reads at a time */
    TURNED = 16,       /* bytes of a turned row that it writes at a time */
    BLOCK_ROWS = 8,    /* a warp each, of a block that looks through columns */
    MOST_PARTS = 1024, /* of a matrix that are looked through beside each other */
};

enum Made {
    AS_IT_IS,
    BY_NORM,
    BY_SWIGLU
};

/* V numbers of a row as they lie, with what they are multiplied by. */
template <typename T, int V> struct Taken {
    Raw<V, T> x, more;
    float rstd;
};

/* What the kernels take of a source. */
template <typename T_, Made MADE> struct Numbers {
    typedef T_ T;
    /* At least, of a multiprocessor; more would leave too few registers for two arrays. */
    static constexpr int BLOCKS = MADE == BY_SWIGLU ? 3 : 4;
    const T *x, *up, *weight;
    const float *rstd;
    size_t rows, cols;
    template <int V> __device__ Taken<T, V> take(size_t i, size_t row, size_t col) const {
        Taken<T, V> taken = {};
        taken.x = load_raw<V>(x + i);
        if (MADE != AS_IT_IS) {
            taken.more = load_raw<V>(MADE == BY_NORM ? weight + col : up + i);
        }
        if (MADE == BY_NORM) {
            taken.rstd = rstd[row];
        }
        return taken;
    }
    template <int V> __device__ Taken<T, V> take(size_t row, size_t col) const {
        return take<V>(row * cols + col, row, col);
    }
    template <int V>
    __device__ Taken<T, V> take(size_t i) const { /* only a norm asks where it is */
        size_t row = MADE == BY_NORM ? i / cols : 0;
        return take<V>(i, row, i - row * cols);
    }
    template <int V> __device__ void make(float (&z)[V], const Taken<T, V> &taken) const {
        float more[V];
        widen_raw(z, taken.x);
        widen_raw(more, taken.more);
#pragma unroll
        for (int v = 0; v < V; v++) {
            z[v] = MADE == BY_NORM     ? z[v] * (taken.rstd * more[v])
                   : MADE == BY_SWIGLU ? __fdividef(z[v], 1 + expf(-z[v])) * more[v]
                                       : z[v];
        }
    }
};

template <typename T, Made MADE> Numbers<T, MADE> numbers_of(const KernelCudaFloat8Source *s) {
    return {(const T *)s->x, (const T *)s->up, (const T *)s->weight, s->rstd, s->rows, s->cols};
}

/* f is called with what a source holds. */
template <typename F> KernelCudaFault with_numbers(const KernelCudaFloat8Source *s, F f) {
    return with_type(s->type, [=](auto zero) {
        typedef decltype(zero) T;
        return s->up     ? f(numbers_of<T, BY_SWIGLU>(s))
               : s->rstd ? f(numbers_of<T, BY_NORM>(s))
                         : f(numbers_of<T, AS_IT_IS>(s));
    });
}

/* Pieces that a thread has asked for: with so many blocks a multiprocessor has 32 KB under way, of
 * two arrays 48. */
template <typename N> constexpr int AT_ONCE = TURNS_OF<PIECE *(int)sizeof(typename N::T)>;

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

/* So many elements a block, whole pieces of V: of a row, or of all. */
template <typename N, int V>
__global__ void __launch_bounds__(THREADS, N::BLOCKS)
    parts_kernel(uint32_t *parts, N numbers, size_t elements) {
    size_t n = numbers.rows * numbers.cols;
    for (size_t part = blockIdx.x; part * elements < n; part += gridDim.x) {
        size_t first = part * elements, here = min(n - first, elements);
        uint32_t largest = 0;
        for_span<V, AT_ONCE<N>>(
            Span{0, here}, here, threadIdx.x, THREADS, [](size_t) {},
            [&](size_t i) { return numbers.template take<V>(first + i); },
            [&](size_t, const Taken<typename N::T, V> &taken) {
                float z[V];
                numbers.make(z, taken);
#pragma unroll
                for (int v = 0; v < V; v++) {
                    largest = larger(largest, magnitude_of(z[v]));
                }
            });
        largest = block_largest(largest);
        if (threadIdx.x == 0) {
            parts[part] = largest;
        }
    }
}

/* Rows, every so many, of V columns a lane. */
template <typename N, int V>
__global__ void __launch_bounds__(LANES *BLOCK_ROWS, N::BLOCKS)
    columns_kernel(uint32_t *parts, N numbers) {
    BLOCK_SHARED(uint32_t[BLOCK_ROWS][LANES * V], all);
    size_t first = (size_t)blockIdx.x * LANES * V, col = first + threadIdx.x * V;
    size_t rows = col < numbers.cols ? numbers.rows : 0;
    uint32_t largest[V] = {};
    for_span<1, AT_ONCE<N>>(
        Span{0, rows}, rows, (size_t)blockIdx.y * BLOCK_ROWS + threadIdx.y,
        (size_t)gridDim.y * BLOCK_ROWS, [](size_t) {},
        [&](size_t row) { return numbers.template take<V>(row, col); },
        [&](size_t, const Taken<typename N::T, V> &taken) {
            float z[V];
            numbers.make(z, taken);
#pragma unroll
            for (int v = 0; v < V; v++) {
                largest[v] = larger(largest[v], magnitude_of(z[v]));
            }
        });
#pragma unroll
    for (int v = 0; v < V; v++) {
        all[threadIdx.y][threadIdx.x * V + v] = largest[v];
    }
    __syncthreads();
    unsigned mine = threadIdx.y * LANES + threadIdx.x;
    if (mine < LANES * V && first + mine < numbers.cols) {
        uint32_t most = 0;
        for (unsigned y = 0; y < BLOCK_ROWS; y++) {
            most = larger(most, all[y][mine]);
        }
        parts[blockIdx.y * numbers.cols + first + mine] = most;
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
#pragma unroll 8
        for (size_t part = 0; part < n_parts; part++) {
            magnitude = larger(magnitude, parts[part * n + i]);
        }
        put_scale(scale, i, magnitude, largest, true);
    }
}

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
    for_work<4>(
        n, [&](size_t i) { return stored_at(x, i); },
        [&](size_t i, double number) { y[i] = (Y)stepped(step, number, largest, scale); });
}

/* Whether a source goes PIECE numbers at a time. */
bool in_whole_pieces(const KernelCudaFloat8Source *s) {
    uintptr_t all = (uintptr_t)s->x | (uintptr_t)s->up | (uintptr_t)s->weight;
    return s->cols % PIECE == 0 && all % 16 == 0;
}

template <int V, typename N>
KernelCudaFault find_columns(KernelCuda *lane, KernelCudaFloat8Scale scale, const N &numbers,
                             double largest) {
    size_t blocks = divide_up(numbers.cols, LANES * V), most = divide_up(numbers.rows, BLOCK_ROWS);
    size_t wanted = divide_up((size_t)lane->processors * 8, blocks);
    size_t n_parts = wanted < most ? wanted : most;
    void *parts;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, n_parts * numbers.cols * sizeof(uint32_t), &parts));
    KERNEL_CUDA_TRY(launch(lane, "float8_columns", columns_kernel<N, V>,
                           dim3((unsigned)blocks, (unsigned)n_parts), dim3(LANES, BLOCK_ROWS), 0,
                           (uint32_t *)parts, numbers));
    return launch_for(lane, "float8_scales", numbers.cols, each_scale_kernel, scale,
                      (const uint32_t *)parts, numbers.cols, n_parts, largest);
}

template <int V, typename N>
KernelCudaFault find(KernelCuda *lane, KernelCudaFloat8Scale scale, const N &numbers, bool each_row,
                     double largest) {
    size_t n = numbers.rows * numbers.cols, turn = THREADS * V;
    size_t elements = each_row ? numbers.cols : divide_up(divide_up(n, MOST_PARTS), turn) * turn;
    size_t n_parts = divide_up(n, elements);
    void *parts;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, n_parts * sizeof(uint32_t), &parts));
    KERNEL_CUDA_TRY(launch(lane, "float8_magnitudes", parts_kernel<N, V>,
                           dim3(grid_for(lane, n_parts * THREADS)), dim3(THREADS), 0,
                           (uint32_t *)parts, numbers, elements));
    if (each_row) {
        return launch_for(lane, "float8_scales", numbers.rows, each_scale_kernel, scale,
                          (const uint32_t *)parts, numbers.rows, (size_t)1, largest);
    }
    return launch(lane, "float8_scale", whole_kernel, dim3(1), dim3(THREADS), 0, scale,
                  (const uint32_t *)parts, n_parts, largest);
}

template <int V, typename N>
KernelCudaFault find_scale(KernelCuda *lane, KernelCudaFloat8Scale scale, const N &numbers,
                           KernelCudaAlong along, double largest) {
    return along == KERNEL_CUDA_EACH_COLUMN
               ? find_columns<V>(lane, scale, numbers, largest)
               : find<V>(lane, scale, numbers, along == KERNEL_CUDA_EACH_ROW, largest);
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
    return with_numbers(source, [=](auto numbers) {
        using N = decltype(numbers);
        return (in_whole_pieces(source) ? find_scale<PIECE, N>
                                        : find_scale<1, N>)(lane, scale, numbers, along, largest);
    });
}

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
