/* kernels/cuda/rows/embedding.cu - see embedding.h. Bound: memory, at random rows.
 *
 * The gradient sorts the positions by index (sort.h). Then each row of the table looks for its
 * positions in them; ROW_LANES groups of threads add every ROW_LANES-th of them in order, and their
 * sums are added in order, to the row's first numbers where there are any.
 */
#include "kernels/cuda/rows/embedding.h"

#include "kernels/cuda/each.cuh"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/sort.h"

using namespace cu;

namespace {

enum {
    ROW_LANES = 8,
    HEADS_AT_ONCE = 16,
    BIAS_BLOCKS = 1056, /* of a bias's gradient: eight for each multiprocessor of an H100 */
    BIAS_LEAST = 2048,  /* positions of a part */
};

/* ---- forward -------------------------------------------------------------------------------- */

template <typename T>
__global__ void __launch_bounds__(THREADS)
    lookup_kernel(T *out, const T *weight, const int64_t *index, size_t width, size_t vocab,
                  unsigned *flag, unsigned tag) {
    constexpr int V = VECTOR<T>;
    int64_t row = index[blockIdx.x];
    bool good = is_inside(row, vocab);
    T *to = out + blockIdx.x * width;
    const T *from = weight + (good ? (size_t)row : 0) * width;
    if (!good && threadIdx.x == 0) {
        tell_bad_index(flag, tag);
    }
    for_span<V>(
        span_of<V>(width, to, from), width, threadIdx.x, blockDim.x,
        [&](size_t i) { narrow(&to[i], good ? widen(from[i]) : 0.0f); },
        [&](size_t i) {
            uint4 bits = *(const uint4 *)(from + i);
            *(uint4 *)(to + i) = good ? bits : make_uint4(0, 0, 0, 0);
        });
}

/* Rows narrower than a warp: a thread an element. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    narrow_lookup_kernel(T *out, const T *weight, const int64_t *index, size_t n, size_t width,
                         size_t vocab, unsigned *flag, unsigned tag) {
    FOR_WORK(size_t, i, n) {
        int64_t row = index[i / width];
        bool good = is_inside(row, vocab);
        if (!good) {
            tell_bad_index(flag, tag);
        }
        narrow(&out[i], good ? widen(weight[(size_t)row * width + i % width]) : 0.0f);
    }
}

/* ---- adding --------------------------------------------------------------------------------- */

/* The first place, from `low` on, whose key is not below this one. A warp looks at 32 places at
 * once: three times for 16384 positions, each of which waits for memory. */
__device__ size_t first_place(const unsigned *key, size_t low, size_t n, unsigned wanted) {
    size_t high = n;
    while (low < high) {
        size_t step = (high - low + LANES - 1) / LANES;
        size_t at = low + (threadIdx.x + 1) * step - 1;
        bool is_below = at < high && key[at] < wanted;
        size_t below = __popc(__ballot_sync(0xffffffffu, is_below));
        high = min(high, low + (below + 1) * step - 1);
        low += below * step;
    }
    return low;
}

/* Where those end that begin at `first` and have this key: mostly within a warp's look. */
__device__ size_t last_place(const unsigned *key, size_t first, size_t n, unsigned wanted) {
    size_t at = first + threadIdx.x;
    unsigned same = __ballot_sync(0xffffffffu, at < n && key[at] == wanted);
    return same == 0xffffffffu ? first_place(key, first + LANES, n, wanted + 1)
                               : first + __popc(same);
}

template <typename T, int V>
__global__ void __launch_bounds__(LANES *ROW_LANES)
    add_rows_kernel(T *dweight, const T *first_numbers, const T *dout, KernelCudaSorted sorted,
                    size_t n, size_t width) {
    float *shared = shared_memory<float>(); /* [ROW_LANES, V, LANES] */
    size_t row = blockIdx.x, first = first_place(sorted.key, 0, n, (unsigned)row);
    size_t end = last_place(sorted.key, first, n, (unsigned)row);
    for (size_t base = 0; base < width; base += LANES * V) {
        size_t column = base + threadIdx.x * V;
        float sum[V] = {};
        for (size_t i = first + threadIdx.y; i < end && column < width; i += ROW_LANES) {
            const T *at = dout + sorted.position[i] * width + column;
            float x[V];
            load<V>(x, at);
#pragma unroll
            for (int v = 0; v < V; v++) {
                sum[v] += x[v];
            }
        }
#pragma unroll
        for (int v = 0; v < V; v++) {
            shared[(threadIdx.y * V + v) * LANES + threadIdx.x] = sum[v];
        }
        __syncthreads();
        if (threadIdx.y == 0 && column < width) {
            float total[V] = {};
            if (first_numbers) {
                load<V>(total, first_numbers + row * width + column);
            }
            for (int r = 0; r < ROW_LANES; r++) {
#pragma unroll
                for (int v = 0; v < V; v++) {
                    total[v] += shared[(r * V + v) * LANES + threadIdx.x];
                }
            }
            store<V>(dweight + row * width + column, total);
        }
        __syncthreads();
    }
}

template <typename T, int V>
KernelCudaFault add_rows(KernelCuda *lane, const char *name, void *sums, const void *first_numbers,
                         const void *x, KernelCudaSorted sorted, size_t count, size_t rows,
                         size_t width) {
    return launch(lane, name, add_rows_kernel<T, V>, dim3(block_each(rows)), dim3(LANES, ROW_LANES),
                  LANES * ROW_LANES * V * sizeof(float), (T *)sums, (const T *)first_numbers,
                  (const T *)x, sorted, count, width);
}

/* sums[rows, width] = its first numbers (NULL: 0), then sums[index[i]] += x[i]. */
KernelCudaFault add_by_index(KernelCuda *lane, const char *name, void *sums,
                             const void *first_numbers, const void *x, const int64_t *index,
                             size_t count, size_t rows, size_t width, KernelCudaType type) {
    KernelCudaSorted sorted;
    KERNEL_CUDA_TRY(kernel_cuda_sort_positions(lane, index, count, rows, &sorted));
    uintptr_t all = (uintptr_t)sums | (uintptr_t)first_numbers | (uintptr_t)x;
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        bool whole = width % VECTOR<T> == 0 && all % 16 == 0;
        return (whole ? add_rows<T, VECTOR<T>> : add_rows<T, 1>)(lane, name, sums, first_numbers, x,
                                                                 sorted, count, rows, width);
    });
}

/* ---- a bias's gradient ---------------------------------------------------------------------- */

/* A block takes a row of the table, HEADS_AT_ONCE columns and a part of the positions, over which a
 * thread strides: parts[part, row, column]. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    bias_backward_kernel(float *parts, const T *dout, const int64_t *index, size_t n, size_t part,
                         size_t width, size_t vocab, unsigned *flag, unsigned tag) {
    size_t row = blockIdx.x, first = (size_t)blockIdx.y * HEADS_AT_ONCE;
    size_t begin = blockIdx.z * part, end = min(n, begin + part);
    float sum[HEADS_AT_ONCE] = {};
    for (size_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
        int64_t at = index[i];
        if (at == (int64_t)row) {
#pragma unroll
            for (int h = 0; h < HEADS_AT_ONCE; h++) {
                sum[h] += first + h < width ? widen(dout[(first + h) * n + i]) : 0.0f;
            }
        }
        if (row == 0 && !is_inside(at, vocab)) {
            tell_bad_index(flag, tag);
        }
    }
#pragma unroll
    for (int h = 0; h < HEADS_AT_ONCE; h++) {
        float total = row_sum(sum[h]);
        if (threadIdx.x == 0 && first + h < width) {
            parts[(blockIdx.z * vocab + row) * width + first + h] = total;
        }
    }
}

} // namespace

KernelCudaFault kernel_cuda_embedding_forward(KernelCuda *lane, void *out, const void *weight,
                                              const int64_t *index, size_t count, size_t vocab,
                                              size_t width, KernelCudaType type) {
    if (!count || !width) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        if (width < LANES) {
            return launch_for(lane, "embedding (narrow)", count * width, narrow_lookup_kernel<T>,
                              (T *)out, (const T *)weight, index, count * width, width, vocab,
                              lane->flag, lane->tag);
        }
        size_t pieces = divide_up(width, VECTOR<T>);
        unsigned threads =
            (unsigned)(pieces < THREADS ? divide_up(pieces, LANES) * LANES : THREADS);
        return launch(lane, "embedding", lookup_kernel<T>, dim3(block_each(count)), dim3(threads),
                      0, (T *)out, (const T *)weight, index, width, vocab, lane->flag, lane->tag);
    });
}

KernelCudaFault kernel_cuda_embedding_backward(KernelCuda *lane, void *dweight, const void *dout,
                                               const int64_t *index, size_t count, size_t vocab,
                                               size_t width, KernelCudaType type) {
    if (!vocab || !width) {
        return NULL;
    }
    if (!count) {
        return kernel_cuda_check("cudaMemsetAsync",
                                 cudaMemsetAsync(dweight, 0,
                                                 vocab * width * kernel_cuda_type_bytes(type),
                                                 lane->stream));
    }
    return add_by_index(lane, "embedding_backward", dweight, NULL, dout, index, count, vocab, width,
                        type);
}

KernelCudaFault kernel_cuda_add_to_rows(KernelCuda *lane, void *y, const void *a, const void *x,
                                        const int64_t *index, size_t n, size_t rows, size_t width,
                                        KernelCudaType type) {
    if (!rows || !width) {
        return NULL;
    }
    if (!n) {
        return kernel_cuda_cast(lane, y, type, a, type, rows * width);
    }
    return add_by_index(lane, "add_to_rows", y, a, x, index, n, rows, width, type);
}

KernelCudaFault kernel_cuda_bias_backward(KernelCuda *lane, void *dweight, const void *dout,
                                          const int64_t *index, size_t count, size_t vocab,
                                          size_t width, KernelCudaType type) {
    if (!vocab || !width) {
        return NULL;
    }
    void *parts;
    size_t across = divide_up(width, HEADS_AT_ONCE),
           wanted = divide_up(BIAS_BLOCKS, vocab * across);
    size_t most = count / BIAS_LEAST, cut = most < 1 ? 1 : wanted < most ? wanted : most;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, cut * vocab * width * sizeof(float), &parts));
    KERNEL_CUDA_TRY(with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "bias_backward", bias_backward_kernel<T>,
                      dim3(block_each(vocab), (unsigned)across, (unsigned)cut), dim3(THREADS), 0,
                      (float *)parts, (const T *)dout, index, count, divide_up(count, cut), width,
                      vocab, lane->flag, lane->tag);
    }));
    return kernel_cuda_add_parts(lane, dweight, (const float *)parts, cut, vocab * width, type);
}
