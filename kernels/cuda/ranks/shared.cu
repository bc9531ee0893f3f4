/* kernels/cuda/ranks/shared.cu - see shared.h. Bound: memory, or the launch. A thread an element;
 * of rows that become zeros 16 bytes, where they lie so. */
#include "kernels/cuda/ranks/shared.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

/* ---- indices of which another rank may have the row ----------------------------------------- */

__global__ void __launch_bounds__(THREADS)
    outside_kernel(uint8_t *below, uint8_t *above, uint8_t *outside, const int64_t *index, size_t n,
                   int64_t first, int64_t end) {
    FOR_WORK(size_t, i, n) {
        bool is_below = index[i] < first, is_above = index[i] >= end;
        below[i] = is_below;
        above[i] = is_above;
        outside[i] = is_below || is_above;
    }
}

__global__ void __launch_bounds__(THREADS)
    local_kernel(int64_t *copy, int64_t *local, const int64_t *index, const uint8_t *outside,
                 size_t n, int64_t first) {
    FOR_WORK(size_t, i, n) {
        int64_t mine = index[i];
        copy[i] = mine;
        local[i] = outside[i] ? 0 : mine - first;
    }
}

/* Rows are `width` units of U long. */
template <typename U, typename I>
__global__ void __launch_bounds__(THREADS) zero_kernel(U *x, const uint8_t *mask, I n, I width) {
    FOR_WORK(I, i, n) {
        if (mask[i / width]) {
            x[i] = U();
        }
    }
}

/* ---- the loss ------------------------------------------------------------------------------- */

__device__ bool counts(int64_t target) {
    return target >= 0;
}

__global__ void __launch_bounds__(THREADS)
    safe_kernel(uint8_t *counted, int64_t *index, const int64_t *target, size_t n) {
    FOR_WORK(size_t, i, n) {
        bool mine = counts(target[i]);
        counted[i] = mine;
        index[i] = mine ? target[i] : 0;
    }
}

/* One block, which reads a target a token. */
__global__ void __launch_bounds__(THREADS)
    count_kernel(uint8_t *counted, int64_t *ret_count, const int64_t *target, size_t n) {
    BLOCK_SHARED(unsigned, count);
    if (threadIdx.x == 0) {
        count = 0;
    }
    __syncthreads();
    unsigned mine = 0;
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        bool is_one = counts(target[i]);
        counted[i] = is_one;
        mine += is_one ? 1u : 0u;
    }
    atomicAdd(&count, mine);
    __syncthreads();
    if (threadIdx.x == 0) {
        *ret_count = count;
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    keep_kernel(uint8_t *counted, T *y, const T *x, const int64_t *target, size_t n, bool spread) {
    FOR_WORK(size_t, i, n) {
        bool mine = counts(target[i]);
        counted[i] = mine;
        narrow(&y[i], mine ? widen(x[spread ? 0 : i]) : 0.0f);
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    picked_kernel(T *wide, T *y, const uint8_t *mask, size_t n) {
    FOR_WORK(size_t, i, n) {
        float x = mask[i];
        narrow(&wide[i], x);
        narrow(&y[i], x - 1);
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    put_kernel(T *x, const T *y, const int64_t *index, const int64_t *position, size_t rows,
               size_t cols, unsigned *flag, unsigned tag) {
    FOR_WORK(size_t, i, rows) {
        if (is_inside(position[i], rows) && is_inside(index[i], cols)) {
            x[(size_t)position[i] * cols + (size_t)index[i]] = y[i];
        } else {
            tell_bad_index(flag, tag);
        }
    }
}

} // namespace

KernelCudaFault kernel_cuda_outside_mask(KernelCuda *lane, uint8_t *below, uint8_t *above,
                                         uint8_t *outside, const int64_t *index, size_t n,
                                         int64_t first, int64_t part) {
    return launch_for(lane, "outside_mask", n, outside_kernel, below, above, outside, index, n,
                      first, first + part);
}

KernelCudaFault kernel_cuda_local_index(KernelCuda *lane, int64_t *copy, int64_t *local,
                                        const int64_t *index, const uint8_t *outside, size_t n,
                                        int64_t first) {
    return launch_for(lane, "local_index", n, local_kernel, copy, local, index, outside, n, first);
}

KernelCudaFault kernel_cuda_zero_masked(KernelCuda *lane, void *x, const uint8_t *mask, size_t rows,
                                        size_t width, KernelCudaType type) {
    uintptr_t all = (uintptr_t)x | width * kernel_cuda_type_bytes(type);
    return with_unit(type, all, [&](auto unit, size_t per) {
        size_t n = rows * width / per;
        return with_index(n, [&](auto index) {
            using U = decltype(unit);
            return launch_for(lane, "zero_masked", n, zero_kernel<U, decltype(index)>, (U *)x, mask,
                              n, width / per);
        });
    });
}

KernelCudaFault kernel_cuda_safe_target(KernelCuda *lane, uint8_t *counted, int64_t *index,
                                        const int64_t *target, size_t n) {
    return launch_for(lane, "safe_target", n, safe_kernel, counted, index, target, n);
}

KernelCudaFault kernel_cuda_count_targets(KernelCuda *lane, uint8_t *counted, int64_t *ret_count,
                                          const int64_t *target, size_t n) {
    return launch(lane, "count_targets", count_kernel, dim3(1), dim3(THREADS), 0, counted,
                  ret_count, target, n);
}

KernelCudaFault kernel_cuda_keep_counted(KernelCuda *lane, uint8_t *counted, void *y, const void *x,
                                         const int64_t *target, size_t n, bool spread,
                                         KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch_for(lane, spread ? "spread_counted" : "keep_counted", n, keep_kernel<T>,
                          counted, (T *)y, (const T *)x, target, n, spread);
    });
}

KernelCudaFault kernel_cuda_picked_gradient(KernelCuda *lane, void *wide, void *y,
                                            const uint8_t *mask, size_t n, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch_for(lane, "picked_gradient", n, picked_kernel<T>, (T *)wide, (T *)y, mask, n);
    });
}

KernelCudaFault kernel_cuda_put_column(KernelCuda *lane, void *x, const void *y,
                                       const int64_t *index, const int64_t *position, size_t rows,
                                       size_t cols, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch_for(lane, "put_column", rows, put_kernel<T>, (T *)x, (const T *)y, index,
                          position, rows, cols, lane->flag, lane->tag);
    });
}
