/* kernels/cuda/ranks/shared-loss.cu - see shared-loss.h. Bound: memory. A block takes a row, 16
 * bytes a thread (rows/rows.cuh). */
#include "kernels/cuda/ranks/shared-loss.h"

#include "kernels/cuda/rows/rows.cuh"

using namespace cu;

namespace {

template <typename T>
__global__ void __launch_bounds__(THREADS) largest_kernel(float *most, const T *x, size_t width) {
    float mine = -INFINITY;
    read_row(x + blockIdx.x * width, width, [&](float number) { mine = fmaxf(mine, number); });
    mine = row_max(mine);
    if (threadIdx.x == 0) {
        most[blockIdx.x] = mine;
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    sum_of_exps_kernel(float *sum, const T *x, const float *most, size_t width) {
    float mine = 0, largest = most[blockIdx.x];
    read_row(x + blockIdx.x * width, width,
             [&](float number) { mine += exp_of<T>(number - largest); });
    mine = row_sum(mine);
    if (threadIdx.x == 0) {
        sum[blockIdx.x] = mine;
    }
}

struct Columns {
    size_t width;
    int64_t first, all;
    unsigned *flag, tag;
};

template <typename T>
__global__ void __launch_bounds__(THREADS)
    pick_kernel(float *picked, uint8_t *counted, float *less, const int64_t *target,
                const T *logits, const float *most, const float *sum, size_t rows, Columns here) {
    FOR_WORK(size_t, r, rows) {
        int64_t wanted = target[r];
        bool is_here = wanted >= here.first && is_inside(wanted - here.first, here.width);
        counted[r] = wanted >= 0;
        picked[r] = 0;
        if (wanted >= here.all) {
            tell_bad_index(here.flag, here.tag);
        } else if (wanted >= 0 && is_here) {
            size_t at = r * here.width + (size_t)(wanted - here.first);
            picked[r] = widen(logits[at]) - most[r] - logf(sum[r]);
            less[at] = -1;
        }
    }
}

/* One block. */
__global__ void __launch_bounds__(THREADS)
    mean_kernel(float *loss, float *total, const int64_t *target, const float *picked,
                size_t rows) {
    float sum = 0, count = 0;
    for (size_t r = threadIdx.x; r < rows; r += blockDim.x) {
        sum -= target[r] >= 0 ? picked[r] : 0.0f;
        count += target[r] >= 0 ? 1.0f : 0.0f;
    }
    sum = row_sum(sum);
    count = row_sum(count);
    if (threadIdx.x == 0) {
        *loss = count > 0 ? sum / count : NAN;
        *total = count;
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    add_softmax_kernel(float *y, const float *less, const T *x, const float *most, const float *sum,
                       size_t width) {
    size_t start = blockIdx.x * width;
    float largest = most[blockIdx.x], below = logf(sum[blockIdx.x]);
    map_row(y + start, less + start, x + start, width, [&](size_t, float one, float number) {
        return one + exp_of<T>(number - largest - below);
    });
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    scale_kernel(T *dlogits, const float *y, const uint8_t *counted, const float *dloss,
                 const float *total, size_t width) {
    size_t start = blockIdx.x * width;
    float share = counted[blockIdx.x] ? *dloss / *total : 0.0f;
    map_row(dlogits + start, y + start, width,
            [&](size_t, float number) { return number * share; });
}

/* f is called with a number of the type, where there is a row. */
template <typename F> KernelCudaFault of_rows(size_t rows, KernelCudaType type, F f) {
    return rows ? with_type(type, f) : NULL;
}

} // namespace

KernelCudaFault kernel_cuda_largest(KernelCuda *lane, float *most, const void *logits, size_t rows,
                                    size_t width, KernelCudaType type) {
    return of_rows(rows, type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "largest", largest_kernel<T>, dim3(block_each(rows)), dim3(THREADS), 0,
                      most, (const T *)logits, width);
    });
}

KernelCudaFault kernel_cuda_sum_of_exps(KernelCuda *lane, float *sum, const void *logits,
                                        const float *most, size_t rows, size_t width,
                                        KernelCudaType type) {
    return of_rows(rows, type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "sum_of_exps", sum_of_exps_kernel<T>, dim3(block_each(rows)),
                      dim3(THREADS), 0, sum, (const T *)logits, most, width);
    });
}

KernelCudaFault kernel_cuda_pick_targets(KernelCuda *lane, float *picked, uint8_t *counted,
                                         float *less, const int64_t *target, const void *logits,
                                         const float *most, const float *sum, size_t rows,
                                         size_t width, int64_t first, int64_t all,
                                         KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch_for(lane, "pick_targets", rows, pick_kernel<T>, picked, counted, less, target,
                          (const T *)logits, most, sum, rows,
                          Columns{width, first, all, lane->flag, lane->tag});
    });
}

KernelCudaFault kernel_cuda_mean_picked(KernelCuda *lane, float *loss, float *total,
                                        const int64_t *target, const float *picked, size_t rows) {
    return launch(lane, "mean_picked", mean_kernel, dim3(1), dim3(THREADS), 0, loss, total, target,
                  picked, rows);
}

KernelCudaFault kernel_cuda_add_softmax(KernelCuda *lane, float *y, const float *less,
                                        const void *logits, const float *most, const float *sum,
                                        size_t rows, size_t width, KernelCudaType type) {
    return of_rows(rows, type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "add_softmax", add_softmax_kernel<T>, dim3(block_each(rows)),
                      dim3(THREADS), 0, y, less, (const T *)logits, most, sum, width);
    });
}

KernelCudaFault kernel_cuda_scale_counted(KernelCuda *lane, void *dlogits, const float *y,
                                          const uint8_t *counted, const float *dloss,
                                          const float *total, size_t rows, size_t width,
                                          KernelCudaType type) {
    return of_rows(rows, type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "scale_counted", scale_kernel<T>, dim3(block_each(rows)), dim3(THREADS),
                      0, (T *)dlogits, y, counted, dloss, total, width);
    });
}
