/* kernels/cuda/experts/exchange.cu - see exchange.h. A thread a number; of rows, 16 bytes. */
#include "kernels/cuda/experts/exchange.h"

#include <algorithm>

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

/* Over `inner` numbers `step` apart. */
__global__ void __launch_bounds__(THREADS) sums_kernel(int64_t *sums, const int64_t *x, size_t n,
                                                       size_t apart, size_t inner, size_t step) {
    FOR_WORK(size_t, i, n) {
        int64_t sum = 0;
        for (size_t j = 0; j < inner; j++) {
            sum += x[i * apart + j * step];
        }
        sums[i] = sum;
    }
}

__global__ void __launch_bounds__(THREADS)
    turn_kernel(int64_t *y, const int64_t *x, size_t ranks, size_t experts) {
    FOR_WORK(size_t, i, ranks * experts) {
        y[i] = x[i % ranks * experts + i / ranks];
    }
}

__global__ void __launch_bounds__(THREADS)
    check_alike_kernel(const int64_t *x, size_t n, unsigned *flag, unsigned tag) {
    FOR_WORK(size_t, i, n) {
        if (x[i] != x[0]) {
            tell_bad_index(flag, tag);
        }
    }
}

/* One warp, each lane a run of them. */
__global__ void __launch_bounds__(LANES)
    running_sum_kernel(int64_t *y, const int64_t *x, size_t n) {
    BLOCK_SHARED(int64_t[LANES], sums);
    size_t run = (n + LANES - 1) / LANES, first = min(n, threadIdx.x * run);
    size_t last = min(n, first + run);
    int64_t sum = 0;
    for (size_t i = first; i < last; i++) {
        sum += x[i];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (unsigned t = 0; t < threadIdx.x; t++) {
        sum += sums[t];
    }
    for (size_t i = first; i < last; i++) {
        sum += x[i];
        y[i] = sum;
    }
}

__global__ void __launch_bounds__(THREADS)
    combine_kernel(int64_t *y, const int64_t *a, const int64_t *b, size_t n, int64_t sign) {
    FOR_WORK(size_t, i, n) {
        y[i] = a[i] + sign * b[i];
    }
}

__global__ void __launch_bounds__(THREADS)
    segment_kernel(int64_t *index, const int64_t *end, const int64_t *place, size_t n,
                   size_t segments) {
    FOR_WORK(size_t, i, n) {
        size_t low = 0, high = segments - 1; /* which is the last one's where none is found */
        while (low < high) {
            size_t middle = (low + high) / 2;
            bool is_behind = end[middle] > place[i];
            high = is_behind ? middle : high;
            low = is_behind ? low : middle + 1;
        }
        index[i] = (int64_t)low;
    }
}

__global__ void __launch_bounds__(THREADS)
    of_segment_kernel(int64_t *y, const int64_t *table, const int64_t *index, size_t n,
                      size_t segments, unsigned *flag, unsigned tag) {
    FOR_WORK(size_t, i, n) {
        bool good = is_inside(index[i], segments);
        y[i] = good ? table[index[i]] : 0;
        if (!good) {
            tell_bad_index(flag, tag);
        }
    }
}

/* Rows are `per` units of U long. */
template <typename U, typename I>
__global__ void __launch_bounds__(THREADS)
    place_kernel(U *y, const U *x, const int64_t *index, I n, I rows, I per, unsigned *flag,
                 unsigned tag) {
    FOR_WORK(I, i, n) {
        I row = i / per;
        int64_t to = index[row];
        if (is_inside(to, rows)) {
            y[(size_t)to * per + (i - row * per)] = x[i];
        } else {
            tell_bad_index(flag, tag);
        }
    }
}

} // namespace

KernelCudaFault kernel_cuda_splits(KernelCuda *lane, int64_t *sums, const int64_t *counts,
                                   size_t ranks, size_t experts) {
    return launch_for(lane, "splits", ranks, sums_kernel, sums, counts, ranks, experts, experts, 1);
}

KernelCudaFault kernel_cuda_own_counts(KernelCuda *lane, int64_t *own, const int64_t *counts,
                                       size_t ranks, size_t experts) {
    return launch_for(lane, "own_counts", experts, sums_kernel, own, counts, experts, 1, ranks,
                      experts);
}

KernelCudaFault kernel_cuda_by_expert(KernelCuda *lane, int64_t *turned, const int64_t *counts,
                                      size_t ranks, size_t experts) {
    return launch_for(lane, "by_expert", ranks * experts, turn_kernel, turned, counts, ranks,
                      experts);
}

KernelCudaFault kernel_cuda_check_alike(KernelCuda *lane, const int64_t *x, size_t n) {
    return launch_for(lane, "check_alike", n, check_alike_kernel, x, n, lane->flag, lane->tag);
}

KernelCudaFault kernel_cuda_running_sum(KernelCuda *lane, int64_t *y, const int64_t *x, size_t n) {
    return n ? launch(lane, "running_sum", running_sum_kernel, dim3(1), dim3(LANES), 0, y, x, n)
             : NULL;
}

KernelCudaFault kernel_cuda_combine_i64(KernelCuda *lane, int64_t *y, const int64_t *a,
                                        const int64_t *b, size_t n, int64_t sign) {
    return launch_for(lane, "combine", n, combine_kernel, y, a, b, n, sign);
}

KernelCudaFault kernel_cuda_segment(KernelCuda *lane, int64_t *index, const int64_t *end,
                                    const int64_t *place, size_t n, size_t segments) {
    return segments ? launch_for(lane, "segment", n, segment_kernel, index, end, place, n, segments)
                    : NULL;
}

KernelCudaFault kernel_cuda_of_segment(KernelCuda *lane, int64_t *y, const int64_t *table,
                                       const int64_t *index, size_t n, size_t segments) {
    return launch_for(lane, "of_segment", n, of_segment_kernel, y, table, index, n, segments,
                      lane->flag, lane->tag);
}

KernelCudaFault kernel_cuda_place_rows(KernelCuda *lane, void *y, const void *x,
                                       const int64_t *index, size_t n, size_t width,
                                       KernelCudaType type) {
    uintptr_t all = (uintptr_t)y | (uintptr_t)x | width * kernel_cuda_type_bytes(type);
    return with_unit(type, all, [&](auto unit, size_t elements) {
        size_t per = width / elements;
        return with_index(std::max(n * per, n), [&](auto of) {
            using U = decltype(unit);
            using I = decltype(of);
            return launch_for(lane, "place_rows", n * per, place_kernel<U, I>, (U *)y, (const U *)x,
                              index, n * per, n, per, lane->flag, lane->tag);
        });
    });
}
