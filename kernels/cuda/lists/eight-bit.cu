/* kernels/cuda/lists/eight-bit.cu - see eight-bit.h. Bound: memory. A step has a block of numbers a
 * block of threads, one a thread; the maps lie in shared memory.
 */
#include "kernels/cuda/lists/eight-bit.h"

#include "kernels/at-least.h"
#include "kernels/cuda/each.cuh"
#include "kernels/cuda/magnitude.cuh"

using namespace cu;

namespace {

static_assert(KERNEL_BYTE_BLOCK == (int)THREADS && KERNEL_BYTE_MAP == (int)THREADS,
              "a number a thread");

/* Both states' maps, for all of a block's threads. */
struct Maps {
    float values[KERNEL_BYTE_MAP], values_sq[KERNEL_BYTE_MAP];
};

__device__ void share(Maps &maps, const KernelState8bit &exp_avg,
                      const KernelState8bit &exp_avg_sq) {
    maps.values[threadIdx.x] = exp_avg.map[threadIdx.x];
    maps.values_sq[threadIdx.x] = exp_avg_sq.map[threadIdx.x];
    __syncthreads();
}

__device__ float first_moment(const Maps &maps, const KernelState8bit &state, size_t i, float g,
                              const KernelAdamOne &one) {
    float x = maps.values[state.codes[i]] * state.absmax[i / KERNEL_BYTE_BLOCK];
    return kernel_moved(x, g, one.rest1);
}

__device__ float second_moment(const Maps &maps, const KernelState8bit &state, size_t i, float g,
                               const KernelAdamOne &one) {
    float x = maps.values_sq[state.codes[i]] * state.absmax[i / KERNEL_BYTE_BLOCK];
    return kernel_moved(x, g * g, one.rest2);
}

/* The largest of the block's threads. */
__device__ float largest(float x) {
    return __uint_as_float(block_largest(magnitude_of(x)));
}

/* The new states' magnitudes are in place of the old where `in_one`, and so are places; param: NULL
 * where it is not stepped. */
template <typename T, bool in_one>
__global__ void __launch_bounds__(THREADS)
    step_kernel(T *param, const T *grad, KernelState8bit exp_avg, KernelState8bit exp_avg_sq,
                size_t n, float least, KernelAdamOne one) {
    BLOCK_SHARED(Maps, maps);
    share(maps, exp_avg, exp_avg_sq);
    for (size_t b = blockIdx.x; b < n / KERNEL_BYTE_BLOCK; b += gridDim.x) {
        size_t i = b * KERNEL_BYTE_BLOCK + threadIdx.x;
        float g = widen(grad[i]);
        float m = first_moment(maps, exp_avg, i, g, one);
        float v = second_moment(maps, exp_avg_sq, i, g, one);
        if (param) {
            narrow(&param[i], kernel_adam_one_step(widen(param[i]), m, v, &one));
        }
        float most = largest(m), most_sq = largest(v); /* waits for all to have read absmax */
        float absmax = kernel_at_least(most, least), absmax_sq = kernel_at_least(most_sq, least);
        if (threadIdx.x == 0) {
            (in_one ? exp_avg.absmax : exp_avg.most)[b] = in_one ? absmax : most;
            (in_one ? exp_avg_sq.absmax : exp_avg_sq.most)[b] = in_one ? absmax_sq : most_sq;
        }
        if (in_one) {
            exp_avg.codes[i] = kernel_code_of(maps.values, m / absmax);
            exp_avg_sq.codes[i] = kernel_code_of(maps.values_sq, v / absmax_sq);
        } else {
            exp_avg.scaled[i] = m / absmax;
            exp_avg_sq.scaled[i] = v / absmax_sq;
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    update_kernel(T *param, const T *grad, KernelState8bit exp_avg, KernelState8bit exp_avg_sq,
                  size_t n, KernelAdamOne one) {
    BLOCK_SHARED(Maps, maps);
    share(maps, exp_avg, exp_avg_sq);
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        float g = widen(grad[i]);
        float m = first_moment(maps, exp_avg, i, g, one);
        float v = second_moment(maps, exp_avg_sq, i, g, one);
        narrow(&param[i], kernel_adam_one_step(widen(param[i]), m, v, &one));
        exp_avg.codes[i] = kernel_code_of(maps.values, exp_avg.scaled[i]);
        exp_avg_sq.codes[i] = kernel_code_of(maps.values_sq, exp_avg_sq.scaled[i]);
    }
}

__global__ void __launch_bounds__(THREADS)
    put_codes_kernel(uint8_t *codes, const float *x, const float *map, size_t n) {
    BLOCK_SHARED(float[KERNEL_BYTE_MAP], values);
    values[threadIdx.x] = map[threadIdx.x];
    __syncthreads();
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        codes[i] = kernel_code_of(values, x[i]);
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    adam_one_kernel(T *param, T *exp_avg, T *exp_avg_sq, const T *grad, size_t n,
                    KernelAdamOne one) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        float g = widen(grad[i]);
        float m = kernel_moved(widen(exp_avg[i]), g, one.rest1);
        float v = kernel_moved(widen(exp_avg_sq[i]), g * g, one.rest2);
        narrow(&param[i], kernel_adam_one_step(widen(param[i]), m, v, &one));
        narrow(&exp_avg[i], m);
        narrow(&exp_avg_sq[i], v);
    }
}

} // namespace

KernelCudaFault kernel_cuda_adam_8bit(KernelCuda *lane, void *param, const void *grad,
                                      const KernelState8bit *exp_avg,
                                      const KernelState8bit *exp_avg_sq, size_t n, float least,
                                      const KernelAdamOne *one, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        return launch_for(lane, "adam_8bit", n, step_kernel<decltype(t), true>,
                          (decltype(t) *)param, (const decltype(t) *)grad, *exp_avg, *exp_avg_sq, n,
                          least, *one);
    });
}

KernelCudaFault kernel_cuda_adam_8bit_scaled(KernelCuda *lane, void *param, const void *grad,
                                             const KernelState8bit *exp_avg,
                                             const KernelState8bit *exp_avg_sq, size_t n,
                                             float least, const KernelAdamOne *one,
                                             KernelCudaType type) {
    return with_type(type, [&](auto t) {
        return launch_for(lane, "adam_8bit_scaled", n, step_kernel<decltype(t), false>,
                          (decltype(t) *)param, (const decltype(t) *)grad, *exp_avg, *exp_avg_sq, n,
                          least, *one);
    });
}

KernelCudaFault kernel_cuda_adam_8bit_update(KernelCuda *lane, void *param, const void *grad,
                                             const KernelState8bit *exp_avg,
                                             const KernelState8bit *exp_avg_sq, size_t n,
                                             const KernelAdamOne *one, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        return launch_for(lane, "adam_8bit_update", n, update_kernel<decltype(t)>,
                          (decltype(t) *)param, (const decltype(t) *)grad, *exp_avg, *exp_avg_sq, n,
                          *one);
    });
}

KernelCudaFault kernel_cuda_put_codes(KernelCuda *lane, uint8_t *codes, const float *x,
                                      const float *map, size_t n) {
    return launch_for(lane, "put_codes", n, put_codes_kernel, codes, x, map, n);
}

KernelCudaFault kernel_cuda_adam_one(KernelCuda *lane, void *param, void *exp_avg, void *exp_avg_sq,
                                     const void *grad, size_t n, const KernelAdamOne *one,
                                     KernelCudaType type) {
    return with_type(type, [&](auto t) {
        return launch_for(lane, "adam_one", n, adam_one_kernel<decltype(t)>, (decltype(t) *)param,
                          (decltype(t) *)exp_avg, (decltype(t) *)exp_avg_sq,
                          (const decltype(t) *)grad, n, *one);
    });
}
