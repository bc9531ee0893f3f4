/* kernels/cuda/experts/experts.cu - see experts.h. Bound: of rows memory, 16 bytes a thread where
 * all lies so; of indices, a thread each, the launch. */
#include "kernels/cuda/experts/experts.h"

#include "kernels/cuda/each.cuh"
#include "kernels/cuda/sort.h"

using namespace cu;

namespace {

enum {
    BLOCK_ROWS = 8,       /* of top-k's block, a warp each */
    GROUPS_AT_ONCE = 2048 /* that a block counts; 8 KB of shared memory */
};

/* ---- choosing ------------------------------------------------------------------------------- */

struct Score {
    float x;
    unsigned column;
};

/* In the order of choice: what is no number, larger ones, of equals the first. */
__device__ bool is_before(const Score &a, const Score &b) {
    bool a_is_none = a.x != a.x, b_is_none = b.x != b.x;
    if (a_is_none != b_is_none) {
        return a_is_none;
    }
    return a_is_none || a.x == b.x ? a.column < b.column : a.x > b.x;
}

__device__ Score first_of_warp(Score mine) {
#pragma unroll
    for (int bits = LANES / 2; bits > 0; bits /= 2) {
        Score other = {__shfl_xor_sync(0xffffffffu, mine.x, bits),
                       __shfl_xor_sync(0xffffffffu, mine.column, bits)};
        mine = is_before(other, mine) ? other : mine;
    }
    return mine;
}

/* A warp a row. Each choice is the first of all that come after the one before, so the row is read
 * k times, from the cache but for the first. */
template <typename T>
__global__ void __launch_bounds__(LANES *BLOCK_ROWS)
    top_k_kernel(T *y, int64_t *index, const T *x, size_t rows, unsigned cols, size_t k) {
    size_t row = (size_t)blockIdx.x * BLOCK_ROWS + threadIdx.y;
    if (row >= rows) {
        return;
    }
    const T *scores = x + row * cols;
    Score last = {};
    for (size_t j = 0; j < k; j++) {
        Score best = {-INFINITY, cols}; /* after all others */
        for (unsigned c = threadIdx.x; c < cols; c += LANES) {
            Score score = {widen(scores[c]), c};
            bool is_left = j == 0 || is_before(last, score);
            best = is_left && is_before(score, best) ? score : best;
        }
        last = first_of_warp(best);
        if (threadIdx.x == 0) {
            y[row * k + j] = scores[last.column];
            index[row * k + j] = last.column;
        }
    }
}

/* ---- sorting -------------------------------------------------------------------------------- */

__device__ void add_whole(int64_t *to, unsigned n) {
    atomicAdd((unsigned long long *)to, (unsigned long long)n);
}
__device__ void add_whole(int32_t *to, unsigned n) {
    atomicAdd((unsigned *)to, n);
}

/* A block counts its share of the numbers, of the groups from `first` on; whole numbers can be
 * added in any order. */
template <typename C>
__global__ void __launch_bounds__(THREADS)
    count_kernel(C *counts, const C *index, size_t n, size_t groups, unsigned *flag, unsigned tag) {
    BLOCK_SHARED(unsigned[GROUPS_AT_ONCE], count);
    size_t first = (size_t)blockIdx.y * GROUPS_AT_ONCE;
    size_t here = min(groups - first, (size_t)GROUPS_AT_ONCE);
    for (size_t g = threadIdx.x; g < here; g += blockDim.x) {
        count[g] = 0;
    }
    __syncthreads();
    FOR_WORK(size_t, i, n) {
        size_t group = (size_t)index[i];
        if (!is_inside(index[i], groups)) {
            tell_bad_index(flag, tag);
        } else if (group >= first && group - first < here) {
            atomicAdd(&count[group - first], 1u);
        }
    }
    __syncthreads();
    for (size_t g = threadIdx.x; g < here; g += blockDim.x) {
        if (count[g]) {
            add_whole(&counts[first + g], count[g]);
        }
    }
}

__global__ void __launch_bounds__(THREADS)
    widen_kernel(int64_t *sorted, int64_t *order, KernelCudaSorted from, size_t n) {
    FOR_WORK(size_t, i, n) {
        sorted[i] = from.key[i];
        order[i] = from.position[i];
    }
}

/* One warp, each lane a run of the groups. */
template <typename C>
__global__ void __launch_bounds__(LANES)
    ends_kernel(int32_t *ends, const C *counts, size_t groups, unsigned *flag, unsigned tag) {
    BLOCK_SHARED(int64_t[LANES], sums);
    size_t run = (groups + LANES - 1) / LANES, first = min(groups, threadIdx.x * run);
    size_t last = min(groups, first + run);
    int64_t sum = 0;
    bool good = true;
    for (size_t g = first; g < last; g++) {
        good = good && is_inside(counts[g], (size_t)INT32_MAX + 1);
        sum += counts[g];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (unsigned t = 0; t < threadIdx.x; t++) {
        sum += sums[t];
    }
    for (size_t g = first; g < last; g++) {
        sum += counts[g];
        ends[g] = (int32_t)sum;
        good = good && is_inside(sum, (size_t)INT32_MAX + 1);
    }
    if (!good) {
        tell_bad_index(flag, tag);
    }
}

__global__ void __launch_bounds__(THREADS)
    divide_kernel(int64_t *y, const int64_t *x, size_t n, int64_t by, bool rest) {
    FOR_WORK(size_t, i, n) {
        y[i] = rest ? x[i] % by : x[i] / by;
    }
}

__global__ void __launch_bounds__(THREADS)
    narrow_kernel(int32_t *y, const int64_t *x, size_t n, unsigned *flag, unsigned tag) {
    FOR_WORK(size_t, i, n) {
        y[i] = (int32_t)x[i];
        if (y[i] != x[i]) {
            tell_bad_index(flag, tag);
        }
    }
}

__global__ void __launch_bounds__(THREADS)
    invert_kernel(int64_t *index, int64_t *position, const int64_t *order, size_t n, unsigned *flag,
                  unsigned tag) {
    FOR_WORK(size_t, i, n) {
        position[i] = (int64_t)i;
        if (is_inside(order[i], n)) {
            index[order[i]] = (int64_t)i;
        } else {
            tell_bad_index(flag, tag);
        }
    }
}

/* ---- rows of several terms ------------------------------------------------------------------ */

/* n pieces of V elements. */
template <typename T, int V, typename I>
__global__ void __launch_bounds__(THREADS)
    sum_each_kernel(T *y, const T *x, I n, size_t each, I width, size_t row) {
    I pieces = width / V;
    FOR_WORK(I, i, n) {
        I which = i / pieces;
        const T *terms = x + which * each * row + (i - which * pieces) * V;
        float sum[V] = {};
#pragma unroll 4
        for (size_t e = 0; e < each; e++) {
            float z[V];
            load<V>(z, terms + e * row);
#pragma unroll
            for (int v = 0; v < V; v++) {
                sum[v] += z[v];
            }
        }
        store<V>(y + (size_t)i * V, sum);
    }
}

/* Rows are `width` units of U long. */
template <typename U, typename I>
__global__ void __launch_bounds__(THREADS)
    repeat_each_kernel(U *y, const U *x, I n, I each, I width) {
    for_work<2>(
        n,
        [&](I i) {
            I row = i / width;
            return x[(size_t)(row / each) * width + (i - row * width)];
        },
        [&](I i, const U &moved) { y[i] = moved; });
}

template <typename C>
KernelCudaFault count(KernelCuda *lane, const char *name, C *counts, const C *index, size_t n,
                      size_t groups) {
    if (!groups) {
        return NULL;
    }
    KERNEL_CUDA_TRY(kernel_cuda_check(
        "cudaMemsetAsync", cudaMemsetAsync(counts, 0, groups * sizeof *counts, lane->stream)));
    if (!n) {
        return NULL;
    }
    return launch(lane, name, count_kernel<C>,
                  dim3(grid_for(lane, n), (unsigned)divide_up(groups, GROUPS_AT_ONCE)),
                  dim3(THREADS), 0, counts, index, n, groups, lane->flag, lane->tag);
}

template <typename C>
KernelCudaFault ends_of(KernelCuda *lane, const char *name, int32_t *ends, const C *counts,
                        size_t groups) {
    return groups ? launch(lane, name, ends_kernel<C>, dim3(1), dim3(LANES), 0, ends, counts,
                           groups, lane->flag, lane->tag)
                  : NULL;
}

} // namespace

KernelCudaFault kernel_cuda_top_k(KernelCuda *lane, void *y, int64_t *index, const void *x,
                                  size_t rows, size_t cols, size_t k, KernelCudaType type) {
    if (k > cols || cols > INT32_MAX) {
        return kernel_cuda_fault("top_k: there are no %zu of %zu columns", k, cols);
    }
    if (!rows || !k) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "top_k", top_k_kernel<T>, dim3(block_each(divide_up(rows, BLOCK_ROWS))),
                      dim3(LANES, BLOCK_ROWS), 0, (T *)y, index, (const T *)x, rows, (unsigned)cols,
                      k);
    });
}

KernelCudaFault kernel_cuda_count(KernelCuda *lane, int64_t *counts, const int64_t *index, size_t n,
                                  size_t groups) {
    return count(lane, "count", counts, index, n, groups);
}

KernelCudaFault kernel_cuda_tally(KernelCuda *lane, int32_t *tally, const int32_t *index, size_t n,
                                  size_t groups) {
    return count(lane, "tally", tally, index, n, groups);
}

KernelCudaFault kernel_cuda_sort(KernelCuda *lane, int64_t *sorted, int64_t *order,
                                 const int64_t *index, size_t n, size_t groups) {
    KernelCudaSorted from;
    if (!n) {
        return NULL;
    }
    KERNEL_CUDA_TRY(kernel_cuda_sort_positions(lane, index, n, groups, &from));
    return launch_for(lane, "sort", n, widen_kernel, sorted, order, from, n);
}

KernelCudaFault kernel_cuda_ends(KernelCuda *lane, int32_t *ends, const int64_t *counts,
                                 size_t groups) {
    return ends_of(lane, "ends", ends, counts, groups);
}

KernelCudaFault kernel_cuda_tally_ends(KernelCuda *lane, int32_t *ends, const int32_t *tally,
                                       size_t groups) {
    return ends_of(lane, "tally_ends", ends, tally, groups);
}

KernelCudaFault kernel_cuda_divide_down_i64(KernelCuda *lane, int64_t *y, const int64_t *x,
                                            size_t n, int64_t by) {
    return launch_for(lane, "divide_down", n, divide_kernel, y, x, n, by, false);
}

KernelCudaFault kernel_cuda_remainder_i64(KernelCuda *lane, int64_t *y, const int64_t *x, size_t n,
                                          int64_t by) {
    return launch_for(lane, "remainder", n, divide_kernel, y, x, n, by, true);
}

KernelCudaFault kernel_cuda_narrow_i64(KernelCuda *lane, int32_t *y, const int64_t *x, size_t n) {
    return launch_for(lane, "narrow", n, narrow_kernel, y, x, n, lane->flag, lane->tag);
}

KernelCudaFault kernel_cuda_invert(KernelCuda *lane, int64_t *index, int64_t *position,
                                   const int64_t *order, size_t n) {
    return launch_for(lane, "invert", n, invert_kernel, index, position, order, n, lane->flag,
                      lane->tag);
}

KernelCudaFault kernel_cuda_sum_each(KernelCuda *lane, void *y, const void *x, size_t rows,
                                     size_t each, size_t width, size_t row, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return in_pieces<VECTOR<T>>(
            width | row, (uintptr_t)y | (uintptr_t)x, rows * width, [&](auto count, auto index) {
                constexpr int V = decltype(count)::value;
                size_t n = rows * width / V;
                return launch_for(lane, "sum_each", n, sum_each_kernel<T, V, decltype(index)>,
                                  (T *)y, (const T *)x, n, each, width, row);
            });
    });
}

KernelCudaFault kernel_cuda_repeat_each(KernelCuda *lane, void *y, const void *x, size_t rows,
                                        size_t each, size_t width, KernelCudaType type) {
    uintptr_t all = (uintptr_t)y | (uintptr_t)x | width * kernel_cuda_type_bytes(type);
    return with_unit(type, all, [&](auto unit, size_t per) {
        size_t n = rows * each * width / per;
        return with_index(n, [&](auto index) {
            using U = decltype(unit);
            return launch_for(lane, "repeat_each", n, repeat_each_kernel<U, decltype(index)>,
                              (U *)y, (const U *)x, n, each, width / per);
        });
    });
}
