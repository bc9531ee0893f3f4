/* kernels/cuda/reduce.cu - see reduce.h. Bound: memory.
 *
 * Stage one has a fixed number of blocks, whatever the device, so a sum is the same bits
 * everywhere.
 */
#include "kernels/cuda/reduce.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

enum {
    PARTS = 1056,       /* blocks of stage one: eight for each multiprocessor of an H100 */
    COLUMN_ROWS = 8,    /* rows of threads in a block of a column sum */
    COLUMN_PARTS = 128, /* parts of rows at most */
    PART_ROWS = 32,     /* rows of threads in a block that adds parts, at most */
    BLOCK_ROWS = 8,     /* rows of a row sum's block, a warp each */
    AT_ONCE = 4,        /* of 16 bytes that a thread of stage one has under way */
};

struct Sum {
    __device__ float operator()(float x) const {
        return x;
    }
};

struct Squares {
    __device__ float operator()(float x) const {
        return x * x;
    }
};

template <typename T, typename F>
__global__ void __launch_bounds__(THREADS) parts_kernel(float *parts, const T *x, size_t n, F f) {
    constexpr int V = VECTOR<T>;
    size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    size_t threads = (size_t)gridDim.x * blockDim.x, stride = threads * V;
    Span span = span_of<V>(n, x);
    float sum = 0;
    for (size_t i = span.head + at * V; i < span.tail; i += stride * AT_ONCE) {
        Raw<V, T> raw[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            if (i + u * stride < span.tail) {
                raw[u] = load_raw<V>(x + i + u * stride);
            }
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            if (i + u * stride < span.tail) {
                float many[V], part = 0;
                widen_raw(many, raw[u]);
#pragma unroll
                for (int v = 0; v < V; v++) {
                    part += f(many[v]);
                }
                sum += part;
            }
        }
    }
    for_rest(span, n, at, threads, [&](size_t i) { sum += f(widen(x[i])); });
    sum = row_sum(sum);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sum;
    }
}

/* One block. out = the root of the sum of the parts, or that sum divided. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    finish_kernel(T *out, const float *parts, size_t n, float divisor, bool root) {
    float sum = 0;
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        sum += parts[i];
    }
    sum = row_sum(sum);
    if (threadIdx.x == 0) {
        narrow(out, root ? sqrtf(sum) : sum / divisor);
    }
}

template <typename F>
KernelCudaFault reduce(KernelCuda *lane, const char *name, void *out, KernelCudaType out_type,
                       const void *x, size_t n, KernelCudaType type, bool root, F f) {
    void *parts;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, PARTS * sizeof(float), &parts));
    KERNEL_CUDA_TRY(with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, name, parts_kernel<T, F>, dim3(PARTS), dim3(THREADS), 0, (float *)parts,
                      (const T *)x, n, f);
    }));
    return with_type(out_type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, name, finish_kernel<T>, dim3(1), dim3(THREADS), 0, (T *)out,
                      (const float *)parts, (size_t)PARTS, (float)n, root);
    });
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    mean_backward_kernel(T *dx, const T *dout, size_t n, float divisor) {
    constexpr int V = VECTOR<T>;
    float value = widen(dout[0]) / divisor, many[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
        many[v] = value;
    }
    for_span<V>(
        span_of<V>(n, dx), n, (size_t)blockIdx.x * blockDim.x + threadIdx.x,
        (size_t)gridDim.x * blockDim.x, [&](size_t i) { narrow(&dx[i], value); },
        [&](size_t i) { store<V>(dx + i, many); });
}

/* ---- rows ----------------------------------------------------------------------------------- */

template <typename T>
__global__ void __launch_bounds__(LANES *BLOCK_ROWS)
    row_sum_kernel(T *out, const T *x, size_t rows, size_t cols, float factor) {
    constexpr int V = VECTOR<T>;
    size_t row = (size_t)blockIdx.x * BLOCK_ROWS + threadIdx.y, n = row < rows ? cols : 0;
    const T *at = x + (row < rows ? row * cols : 0);
    float sum = 0;
    for_span<V>(
        span_of<V>(n, at), n, threadIdx.x, LANES, [&](size_t i) { sum += widen(at[i]); },
        [&](size_t i) {
            float many[V], part = 0;
            load<V>(many, at + i);
#pragma unroll
            for (int v = 0; v < V; v++) {
                part += many[v];
            }
            sum += part;
        });
    sum = row_sum(sum);
    if (threadIdx.x == 0 && row < rows) {
        narrow(&out[row], factor * sum);
    }
}

template <typename T>
__global__ void __launch_bounds__(LANES *BLOCK_ROWS)
    row_max_kernel(T *out, const T *x, size_t rows, size_t cols) {
    constexpr int V = VECTOR<T>;
    size_t row = (size_t)blockIdx.x * BLOCK_ROWS + threadIdx.y, n = row < rows ? cols : 0;
    const T *at = x + (row < rows ? row * cols : 0);
    float most = -INFINITY;
    for_span<V>(
        span_of<V>(n, at), n, threadIdx.x, LANES,
        [&](size_t i) { most = fmaxf(most, widen(at[i])); },
        [&](size_t i) {
            float many[V];
            load<V>(many, at + i);
#pragma unroll
            for (int v = 0; v < V; v++) {
                most = fmaxf(most, many[v]);
            }
        });
    most = row_max(most);
    if (threadIdx.x == 0 && row < rows) {
        narrow(&out[row], most);
    }
}

/* ---- columns -------------------------------------------------------------------------------- */

/* A block: LANES threads side by side, each with V columns, COLUMN_ROWS of them one under the
 * other; block (b, part) takes every COLUMN_ROWS-th row of part of the rows. */
template <typename T, int V>
__global__ void __launch_bounds__(LANES *COLUMN_ROWS)
    column_parts_kernel(float *parts, const T *x, size_t rows, size_t cols, size_t rows_a_part) {
    size_t col = ((size_t)blockIdx.x * LANES + threadIdx.x) * V;
    size_t end = min(rows, (blockIdx.y + 1) * rows_a_part);
    float sum[V] = {};
    float *shared = shared_memory<float>();
    if (col < cols) {
        for (size_t r = blockIdx.y * rows_a_part + threadIdx.y; r < end;
             r += COLUMN_ROWS * AT_ONCE) {
            Raw<V, T> raw[AT_ONCE];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                if (r + u * COLUMN_ROWS < end) {
                    raw[u] = load_raw<V>(x + (r + u * COLUMN_ROWS) * cols + col);
                }
            }
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                if (r + u * COLUMN_ROWS < end) {
                    float many[V];
                    widen_raw(many, raw[u]);
#pragma unroll
                    for (int v = 0; v < V; v++) {
                        sum[v] += many[v];
                    }
                }
            }
        }
    }
#pragma unroll
    for (int v = 0; v < V; v++) {
        shared[(threadIdx.y * V + v) * LANES + threadIdx.x] = sum[v];
    }
    __syncthreads();
    if (threadIdx.y == 0 && col < cols) {
#pragma unroll
        for (int v = 0; v < V; v++) {
            float total = 0;
            for (int r = 0; r < COLUMN_ROWS; r++) {
                total += shared[(r * V + v) * LANES + threadIdx.x];
            }
            parts[blockIdx.y * cols + col + v] = total;
        }
    }
}

template <typename T, int V>
KernelCudaFault column_parts(KernelCuda *lane, float *parts, const T *x, size_t rows, size_t cols,
                             size_t n_parts) {
    return launch(lane, "column_sum", column_parts_kernel<T, V>,
                  dim3(block_each(divide_up(cols, LANES * V)), (unsigned)n_parts),
                  dim3(LANES, COLUMN_ROWS), LANES * COLUMN_ROWS * V * sizeof(float), parts, x, rows,
                  cols, divide_up(rows, n_parts));
}

/* A block takes LANES columns; a row of threads every so many-th part, and those sums are added in
 * order. One thread a column would wait for its parts one after the other; more rows of threads
 * than parts would keep others from the multiprocessor. */
template <typename T>
__global__ void __launch_bounds__(LANES *PART_ROWS)
    add_parts_kernel(T *out, const float *parts, size_t n_parts, size_t cols) {
    BLOCK_SHARED(float[PART_ROWS * LANES], sums);
    size_t col = (size_t)blockIdx.x * LANES + threadIdx.x;
    float sum = 0;
    for (size_t p = threadIdx.y; p < n_parts && col < cols; p += blockDim.y) {
        sum += parts[p * cols + col];
    }
    sums[threadIdx.y * LANES + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && col < cols) {
        float total = 0;
        for (unsigned r = 0; r < blockDim.y; r++) {
            total += sums[r * LANES + threadIdx.x];
        }
        narrow(&out[col], total);
    }
}

} // namespace

KernelCudaFault kernel_cuda_add_parts(KernelCuda *lane, void *out, const float *parts,
                                      size_t n_parts, size_t cols, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "add_parts", add_parts_kernel<T>,
                      dim3(block_each(divide_up(cols, LANES))),
                      dim3(LANES, n_parts < PART_ROWS ? (unsigned)n_parts : PART_ROWS), 0, (T *)out,
                      parts, n_parts, cols);
    });
}

KernelCudaFault kernel_cuda_mean_forward(KernelCuda *lane, void *out, const void *x, size_t n,
                                         KernelCudaType type) {
    return reduce(lane, "mean", out, type, x, n, type, false, Sum{});
}

KernelCudaFault kernel_cuda_norm(KernelCuda *lane, void *out, KernelCudaType out_type,
                                 const void *x, size_t n, KernelCudaType type) {
    return reduce(lane, "norm", out, out_type, x, n, type, true, Squares{});
}

KernelCudaFault kernel_cuda_mean_backward(KernelCuda *lane, void *dx, const void *dout, size_t n,
                                          KernelCudaType type) {
    if (!n) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "mean_backward", mean_backward_kernel<T>,
                      dim3(grid_for(lane, divide_up(n, VECTOR<T>))), dim3(THREADS), 0, (T *)dx,
                      (const T *)dout, n, (float)n);
    });
}

KernelCudaFault kernel_cuda_row_sum(KernelCuda *lane, void *out, const void *x, size_t rows,
                                    size_t cols, double factor, KernelCudaType type) {
    if (!rows) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "row_sum", row_sum_kernel<T>,
                      dim3(block_each(divide_up(rows, BLOCK_ROWS))), dim3(LANES, BLOCK_ROWS), 0,
                      (T *)out, (const T *)x, rows, cols, (float)factor);
    });
}

KernelCudaFault kernel_cuda_row_max(KernelCuda *lane, void *out, const void *x, size_t rows,
                                    size_t cols, KernelCudaType type) {
    if (!rows) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "row_max", row_max_kernel<T>,
                      dim3(block_each(divide_up(rows, BLOCK_ROWS))), dim3(LANES, BLOCK_ROWS), 0,
                      (T *)out, (const T *)x, rows, cols);
    });
}

KernelCudaFault kernel_cuda_column_sum(KernelCuda *lane, void *out, const void *x, size_t rows,
                                       size_t cols, KernelCudaType type) {
    if (!cols) {
        return NULL;
    }
    void *parts;
    size_t most = divide_up(rows, COLUMN_ROWS * 4);
    size_t n_parts = most < 1 ? 1 : most < COLUMN_PARTS ? most : COLUMN_PARTS;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, n_parts * cols * sizeof(float), &parts));
    KERNEL_CUDA_TRY(with_type(type, [&](auto t) -> KernelCudaFault {
        using T = decltype(t);
        constexpr int V = VECTOR<T>;
        if (cols % V == 0 && (uintptr_t)x % 16 == 0) {
            return column_parts<T, V>(lane, (float *)parts, (const T *)x, rows, cols, n_parts);
        }
        return column_parts<T, 1>(lane, (float *)parts, (const T *)x, rows, cols, n_parts);
    }));
    return kernel_cuda_add_parts(lane, out, (const float *)parts, n_parts, cols, type);
}
