/* kernels/cuda/attention/positions.cu - see positions.h. A thread an element, neighbours side by
 * side. */
#include "kernels/cuda/attention/positions.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

constexpr int64_t NO_TARGET = -100; /* PyTorch's ignore_index */

__global__ void __launch_bounds__(THREADS) frequencies_kernel(float *out, size_t dim, double base) {
    FOR_WORK(size_t, i, dim / 2) {
        out[i] = (float)pow(base, -2.0 * (double)i / (double)dim);
    }
}

__global__ void __launch_bounds__(THREADS)
    shift_kernel(int64_t *out, const int64_t *position, size_t n, int64_t by) {
    FOR_WORK(size_t, i, n) {
        out[i] = position[i] + by;
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    as_number_kernel(T *out, const int64_t *position, size_t n) {
    FOR_WORK(size_t, i, n) {
        narrow(&out[i], (float)position[i]);
    }
}

__global__ void __launch_bounds__(THREADS)
    outer_kernel(float *out, const float *column, const float *row, size_t rows, size_t cols) {
    FOR_WORK(size_t, i, rows * cols) {
        out[i] = column[i / cols] * row[i % cols];
    }
}

__global__ void __launch_bounds__(THREADS) cos_kernel(float *out, const float *x, size_t n) {
    FOR_WORK(size_t, i, n) {
        out[i] = cosf(x[i]);
    }
}

__global__ void __launch_bounds__(THREADS) sin_kernel(float *out, const float *x, size_t n) {
    FOR_WORK(size_t, i, n) {
        out[i] = sinf(x[i]);
    }
}

__global__ void __launch_bounds__(THREADS)
    pad_targets_kernel(int64_t *out, const int64_t *target, size_t rows, size_t seq) {
    FOR_WORK(size_t, i, rows * (seq + 1)) {
        size_t row = i / (seq + 1), at = i % (seq + 1);
        out[i] = at == 0 || at == seq ? NO_TARGET : target[row * seq + at - 1];
    }
}

__global__ void __launch_bounds__(THREADS)
    drop_one_kernel(int64_t *out, const int64_t *x, size_t rows, size_t kept, size_t from) {
    FOR_WORK(size_t, i, rows * kept) {
        out[i] = x[i / kept * (kept + 1) + i % kept + from];
    }
}

} // namespace

KernelCudaFault kernel_cuda_rope_frequencies(KernelCuda *lane, float *out, size_t dim,
                                             double base) {
    return launch_for(lane, "rope_frequencies", dim / 2, frequencies_kernel, out, dim, base);
}

KernelCudaFault kernel_cuda_shift_i64(KernelCuda *lane, int64_t *out, const int64_t *position,
                                      size_t n, int64_t by) {
    return launch_for(lane, "shift", n, shift_kernel, out, position, n, by);
}

KernelCudaFault kernel_cuda_as_number(KernelCuda *lane, void *out, const int64_t *position,
                                      size_t n, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch_for(lane, "as_number", n, as_number_kernel<T>, (T *)out, position, n);
    });
}

KernelCudaFault kernel_cuda_outer(KernelCuda *lane, float *out, const float *column,
                                  const float *row, size_t rows, size_t cols) {
    return launch_for(lane, "outer", rows * cols, outer_kernel, out, column, row, rows, cols);
}

KernelCudaFault kernel_cuda_cos(KernelCuda *lane, float *out, const float *x, size_t n) {
    return launch_for(lane, "cos", n, cos_kernel, out, x, n);
}

KernelCudaFault kernel_cuda_sin(KernelCuda *lane, float *out, const float *x, size_t n) {
    return launch_for(lane, "sin", n, sin_kernel, out, x, n);
}

KernelCudaFault kernel_cuda_pad_targets(KernelCuda *lane, int64_t *out, const int64_t *target,
                                        size_t rows, size_t seq) {
    return launch_for(lane, "pad_targets", rows * (seq + 1), pad_targets_kernel, out, target, rows,
                      seq);
}

KernelCudaFault kernel_cuda_drop_one(KernelCuda *lane, int64_t *out, const int64_t *x, size_t rows,
                                     size_t kept, bool first) {
    return launch_for(lane, "drop_one", rows * kept, drop_one_kernel, out, x, rows, kept,
                      (size_t)first);
}
