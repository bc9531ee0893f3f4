/* kernels/cuda/experts/latent.cu - see latent.h. Bound: memory. */
#include "kernels/cuda/experts/latent.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

struct Sigmoid {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = 1.0f / (1.0f + expf(-in[0]));
    }
};

struct SigmoidBack { /* dy y */
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] * in[1] * (1.0f - in[1]);
    }
};

__global__ void __launch_bounds__(THREADS)
    unset_kernel(uint8_t *mask, const int64_t *index, size_t n, size_t cols, size_t k,
                 unsigned *flag, unsigned tag) {
    FOR_WORK(size_t, i, n) {
        if (is_inside(index[i], cols)) {
            mask[i / k * cols + (size_t)index[i]] = 0;
        } else {
            tell_bad_index(flag, tag);
        }
    }
}

} // namespace

KernelCudaFault kernel_cuda_sigmoid(KernelCuda *lane, void *y, const void *x, size_t n,
                                    KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return each(lane, "sigmoid", Arrays<const T, 1>{{(const T *)x}}, Arrays<T, 1>{{(T *)y}}, n,
                    Sigmoid{});
    });
}

KernelCudaFault kernel_cuda_sigmoid_backward(KernelCuda *lane, void *dx, const void *dy,
                                             const void *y, size_t n, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return each(lane, "sigmoid_backward", Arrays<const T, 2>{{(const T *)dy, (const T *)y}},
                    Arrays<T, 1>{{(T *)dx}}, n, SigmoidBack{});
    });
}

KernelCudaFault kernel_cuda_unset_columns(KernelCuda *lane, uint8_t *mask, const int64_t *index,
                                          size_t rows, size_t cols, size_t k) {
    return launch_for(lane, "unset_columns", rows * k, unset_kernel, mask, index, rows * k, cols, k,
                      lane->flag, lane->tag);
}
