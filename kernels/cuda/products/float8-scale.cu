/* kernels/cuda/products/float8-scale.cu - see float8.h: scales, from largest magnitudes. Bound:
 * memory.
 *
 * Parts are looked through beside each other, then what was found of them.
 */
#include "kernels/cuda/magnitude.cuh"
#include "kernels/cuda/products/float8.cuh"

using namespace cu;

namespace {

enum {
    BLOCK_ROWS = 8,    /* a warp each, of a block that looks through columns */
    MOST_PARTS = 1024, /* of a matrix that are looked through beside each other */
};

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

/* ---- steps ---------------------------------------------------------------------------------- */

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

/* A thread has a tensor. */
__global__ void __launch_bounds__(THREADS)
    delay_kernel(float *history, float *scale, size_t passes, size_t tensors, double largest) {
    FOR_WORK(size_t, i, tensors) {
        float8_delay(history + i, scale + i, passes, tensors, largest);
    }
}

/* ---- choosing ------------------------------------------------------------------------------- */

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

} // namespace

KernelCudaFault cu::of_magnitudes(KernelCuda *lane, float *out, KernelCudaFloat8Scale magnitudes,
                                  size_t n, KernelCudaFloat8 to, bool to_power, bool inverse) {
    double largest = to == KERNEL_CUDA_E4M3 ? 448 : 57344;
    return launch_for(lane, "float8_of_magnitudes", n, of_magnitudes_kernel, out, magnitudes, n,
                      largest, to_power, inverse);
}

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

KernelCudaFault kernel_cuda_float8_delay(KernelCuda *lane, float *history, float *scale,
                                         size_t passes, size_t tensors, double largest) {
    return launch_for(lane, "float8_delay", tensors, delay_kernel, history, scale, passes, tensors,
                      largest);
}
