/* kernels/cuda/embedding.cu - see embedding.h. Bound: memory, at random rows.
 *
 * The gradient sorts the positions by index, DIGIT_BITS at a time from the lowest, as a stable
 * counting sort: a block counts the digits of its CHUNK positions, the counts are added up digit by
 * digit and block by block, and each position goes to its digit's place, after those of its digit
 * that came before. Then each row of the table looks for its positions in them; ROW_LANES groups
 * of threads add every ROW_LANES-th of them in order, and their sums are added in order.
 */
#include "kernels/cuda/embedding.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

enum {
    CHUNK = 512, /* positions a block sorts; its threads */
    DIGIT_BITS = 9,
    DIGITS = 1 << DIGIT_BITS,
    ROW_LANES = 8,
    HEADS_AT_ONCE = 16,
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

/* ---- sorting -------------------------------------------------------------------------------- */

struct Keys {
    unsigned *key, *position;
};

/* A bad index becomes the row past the table's last, which nobody adds up. */
__global__ void __launch_bounds__(THREADS) keys_kernel(Keys keys, const int64_t *index, size_t n,
                                                       size_t vocab, unsigned *flag, unsigned tag) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    bool good = is_inside(index[i], vocab);
    keys.key[i] = good ? (unsigned)index[i] : (unsigned)vocab;
    keys.position[i] = (unsigned)i;
    if (!good) {
        tell_bad_index(flag, tag);
    }
}

/* How many of the block's positions have digit d: counts[d, block]. And of each position, how many
 * of its digit come before it in the block: before[i]. */
__global__ void __launch_bounds__(CHUNK)
    count_kernel(unsigned *counts, unsigned *before, const unsigned *key, size_t n, int shift) {
    BLOCK_SHARED(unsigned[CHUNK], digit);
    BLOCK_SHARED(unsigned[DIGITS], count);
    size_t i = (size_t)blockIdx.x * CHUNK + threadIdx.x;
    unsigned mine = i < n ? key[i] >> shift & (DIGITS - 1) : (unsigned)DIGITS, rank = 0;
    digit[threadIdx.x] = mine;
    for (unsigned d = threadIdx.x; d < DIGITS; d += CHUNK) {
        count[d] = 0;
    }
    __syncthreads();
    if (i < n) {
        atomicAdd(&count[mine], 1u);
        for (unsigned other = 0; other < threadIdx.x; other++) {
            rank += digit[other] == mine ? 1u : 0u;
        }
        before[i] = rank;
    }
    __syncthreads();
    for (unsigned d = threadIdx.x; d < DIGITS; d += CHUNK) {
        counts[(size_t)d * gridDim.x + blockIdx.x] = count[d];
    }
}

/* One block: numbers become the sums of those before them. Each thread takes a run of them. */
__global__ void __launch_bounds__(CHUNK) sums_before_kernel(unsigned *numbers, size_t n) {
    BLOCK_SHARED(unsigned[CHUNK], runs);
    size_t run = (n + CHUNK - 1) / CHUNK, first = min(n, threadIdx.x * run);
    size_t last = min(n, first + run);
    unsigned sum = 0;
    for (size_t i = first; i < last; i++) {
        sum += numbers[i];
    }
    runs[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (unsigned t = 0; t < threadIdx.x; t++) {
        sum += runs[t];
    }
    for (size_t i = first; i < last; i++) {
        unsigned number = numbers[i];
        numbers[i] = sum;
        sum += number;
    }
}

__global__ void __launch_bounds__(CHUNK) place_kernel(Keys to, Keys from, const unsigned *starts,
                                                      const unsigned *before, size_t n, int shift) {
    size_t i = (size_t)blockIdx.x * CHUNK + threadIdx.x;
    if (i < n) {
        unsigned digit = from.key[i] >> shift & (DIGITS - 1);
        unsigned at = starts[(size_t)digit * gridDim.x + blockIdx.x] + before[i];
        to.key[at] = from.key[i];
        to.position[at] = from.position[i];
    }
}

/* ---- adding --------------------------------------------------------------------------------- */

/* The first place whose key is not below this one. A warp looks at 32 places at once: three times
 * for 16384 positions, each of which waits for memory. */
__device__ size_t first_place(const unsigned *key, size_t n, unsigned wanted) {
    size_t low = 0, high = n;
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

template <typename T, int V>
__global__ void __launch_bounds__(LANES *ROW_LANES)
    add_rows_kernel(T *dweight, const T *dout, Keys sorted, size_t n, size_t width) {
    float *shared = shared_memory<float>(); /* [ROW_LANES, V, LANES] */
    size_t row = blockIdx.x, first = first_place(sorted.key, n, (unsigned)row);
    size_t end = first_place(sorted.key, n, (unsigned)row + 1);
    for (size_t base = 0; base < width; base += LANES * V) {
        size_t column = base + threadIdx.x * V;
        float sum[V] = {};
        for (size_t i = first + threadIdx.y; i < end && column < width; i += ROW_LANES) {
            const T *at = dout + sorted.position[i] * width + column;
            float x[V];
            if constexpr (V > 1) {
                load<V>(x, at);
            } else {
                x[0] = widen(*at);
            }
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
            for (int r = 0; r < ROW_LANES; r++) {
#pragma unroll
                for (int v = 0; v < V; v++) {
                    total[v] += shared[(r * V + v) * LANES + threadIdx.x];
                }
            }
            if constexpr (V > 1) {
                store<V>(dweight + row * width + column, total);
            } else {
                narrow(&dweight[row * width + column], total[0]);
            }
        }
        __syncthreads();
    }
}

/* Device memory of a sort, cut from one piece of scratch. */
struct Sort {
    Keys keys[2];
    unsigned *before, *counts;
    size_t chunks;
};

KernelCudaFault new_sort(KernelCuda *lane, size_t n, Sort *ret_sort) {
    void *scratch;
    size_t chunks = divide_up(n, CHUNK);
    KERNEL_CUDA_TRY(
        kernel_cuda_scratch(lane, (5 * n + DIGITS * chunks) * sizeof(unsigned), &scratch));
    unsigned *at = (unsigned *)scratch;
    *ret_sort = Sort{{{at, at + n}, {at + 2 * n, at + 3 * n}}, at + 4 * n, at + 5 * n, chunks};
    return NULL;
}

KernelCudaFault sort_digit(KernelCuda *lane, const Sort &s, Keys to, Keys from, size_t n,
                           int shift) {
    dim3 chunks((unsigned)s.chunks), threads(CHUNK);
    KERNEL_CUDA_TRY(launch(lane, "embedding_backward (count)", count_kernel, chunks, threads, 0,
                           s.counts, s.before, from.key, n, shift));
    KERNEL_CUDA_TRY(launch(lane, "embedding_backward (sums)", sums_before_kernel, dim3(1), threads,
                           0, s.counts, DIGITS * s.chunks));
    return launch(lane, "embedding_backward (place)", place_kernel, chunks, threads, 0, to, from,
                  s.counts, s.before, n, shift);
}

/* Positions by index; where they end up. */
KernelCudaFault sort_positions(KernelCuda *lane, const int64_t *index, size_t n, size_t vocab,
                               Keys *ret_sorted) {
    Sort s;
    int from = 0;
    KERNEL_CUDA_TRY(new_sort(lane, n, &s));
    KERNEL_CUDA_TRY(launch(lane, "embedding_backward (keys)", keys_kernel,
                           dim3((unsigned)divide_up(n, THREADS)), dim3(THREADS), 0, s.keys[0],
                           index, n, vocab, lane->flag, lane->tag));
    for (int shift = 0; vocab >> shift; shift += DIGIT_BITS, from ^= 1) {
        KERNEL_CUDA_TRY(sort_digit(lane, s, s.keys[from ^ 1], s.keys[from], n, shift));
    }
    *ret_sorted = s.keys[from];
    return NULL;
}

template <typename T, int V>
KernelCudaFault add_rows(KernelCuda *lane, void *dweight, const void *dout, Keys sorted,
                         size_t count, size_t vocab, size_t width) {
    return launch(lane, "embedding_backward", add_rows_kernel<T, V>, dim3((unsigned)vocab),
                  dim3(LANES, ROW_LANES), LANES * ROW_LANES * V * sizeof(float), (T *)dweight,
                  (const T *)dout, sorted, count, width);
}

/* ---- a bias's gradient ---------------------------------------------------------------------- */

/* A block takes a row of the table and HEADS_AT_ONCE columns; a thread strides over positions. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    bias_backward_kernel(T *dweight, const T *dout, const int64_t *index, size_t n, size_t width,
                         size_t vocab, unsigned *flag, unsigned tag) {
    size_t row = blockIdx.x, first = (size_t)blockIdx.y * HEADS_AT_ONCE;
    float sum[HEADS_AT_ONCE] = {};
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
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
            narrow(&dweight[row * width + first + h], total);
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
        size_t pieces = divide_up(width, VECTOR<T>);
        unsigned threads =
            (unsigned)(pieces < THREADS ? divide_up(pieces, LANES) * LANES : THREADS);
        return launch(lane, "embedding", lookup_kernel<T>, dim3((unsigned)count), dim3(threads), 0,
                      (T *)out, (const T *)weight, index, width, vocab, lane->flag, lane->tag);
    });
}

KernelCudaFault kernel_cuda_embedding_backward(KernelCuda *lane, void *dweight, const void *dout,
                                               const int64_t *index, size_t count, size_t vocab,
                                               size_t width, KernelCudaType type) {
    if (!vocab || !width) {
        return NULL;
    }
    if (count > UINT32_MAX / 8 || vocab >= UINT32_MAX) {
        return kernel_cuda_fault("embedding_backward: %zu positions or %zu rows are too many",
                                 count, vocab);
    }
    if (!count) {
        return kernel_cuda_check("cudaMemsetAsync",
                                 cudaMemsetAsync(dweight, 0,
                                                 vocab * width * kernel_cuda_type_bytes(type),
                                                 lane->stream));
    }
    Keys sorted;
    KERNEL_CUDA_TRY(sort_positions(lane, index, count, vocab, &sorted));
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        bool whole =
            width % VECTOR<T> == 0 && (uintptr_t)dout % 16 == 0 && (uintptr_t)dweight % 16 == 0;
        return whole ? add_rows<T, VECTOR<T>>(lane, dweight, dout, sorted, count, vocab, width)
                     : add_rows<T, 1>(lane, dweight, dout, sorted, count, vocab, width);
    });
}

KernelCudaFault kernel_cuda_bias_backward(KernelCuda *lane, void *dweight, const void *dout,
                                          const int64_t *index, size_t count, size_t vocab,
                                          size_t width, KernelCudaType type) {
    if (!vocab || !width) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "bias_backward", bias_backward_kernel<T>,
                      dim3((unsigned)vocab, (unsigned)divide_up(width, HEADS_AT_ONCE)),
                      dim3(THREADS), 0, (T *)dweight, (const T *)dout, index, count, width, vocab,
                      lane->flag, lane->tag);
    });
}
