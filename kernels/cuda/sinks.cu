/* kernels/cuda/sinks.cu - see sinks.h. A thread makes one element; a block one head's sum. */
#include "kernels/cuda/sinks.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

template <typename T>
__global__ void __launch_bounds__(THREADS)
    join_kernel(T *y, const T *x, const T *sink, size_t n, size_t heads, size_t rows, size_t cols) {
    FOR_WORK(size_t, i, n) {
        size_t row = i / (cols + 1), column = i - row * (cols + 1);
        y[i] = column < cols ? x[row * cols + column] : sink[row / rows % heads];
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    sum_kernel(T *y, const T *x, size_t n, size_t heads, size_t rows, size_t cols) {
    size_t head = blockIdx.x;
    float sum = 0;
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        size_t row = (i / rows * heads + head) * rows + i % rows;
        sum += widen(x[row * (cols + 1) + cols]);
    }
    sum = row_sum(sum);
    if (threadIdx.x == 0) {
        narrow(&y[head], sum);
    }
}

/* make(number) of each chosen one. */
template <typename Y, typename X, typename F>
__global__ void __launch_bounds__(THREADS)
    chosen_kernel(Y *y, const X *x, size_t n, size_t cols, size_t width, F make) {
    FOR_WORK(size_t, i, n) {
        make(&y[i], widen(x[i / cols * width + i % cols]));
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    where_kernel(T *y, const uint8_t *mask, const T *x, const T *zero, size_t n) {
    FOR_WORK(size_t, i, n) {
        y[i] = mask[i] ? x[i] : *zero;
    }
}

struct Clamp {
    float least, most;
    template <typename T> __device__ void operator()(T *y, float x) const {
        narrow(y, x < least ? least : x > most ? most : x);
    }
};

struct Limit {
    float sign, limit;
    __device__ void operator()(uint8_t *mask, float x) const {
        *mask = sign * x <= limit;
    }
};

struct Times {
    float number;
    template <typename T> __device__ void operator()(T *y, float x) const {
        narrow(y, number * x);
    }
};

template <typename Y, typename X, typename F>
KernelCudaFault of_chosen(KernelCuda *lane, const char *name, Y *y, const X *x,
                          const KernelCudaChosen *c, F make) {
    size_t n = c->rows * c->cols;
    return launch_for(lane, name, n, chosen_kernel<Y, X, F>, y, x + c->from, n, c->cols, c->width,
                      make);
}

} // namespace

KernelCudaFault kernel_cuda_join_sinks(KernelCuda *lane, void *y, const void *x, const void *sink,
                                       const KernelCudaSinks *s) {
    size_t n = s->batch * s->heads * s->rows * (s->cols + 1);
    return with_type(s->type, [&](auto t) {
        using T = decltype(t);
        return launch_for(lane, "join_sinks", n, join_kernel<T>, (T *)y, (const T *)x,
                          (const T *)sink, n, s->heads, s->rows, s->cols);
    });
}

KernelCudaFault kernel_cuda_sum_sinks(KernelCuda *lane, void *y, const void *x,
                                      const KernelCudaSinks *s) {
    return with_type(s->type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "sum_sinks", sum_kernel<T>, dim3((unsigned)s->heads), dim3(THREADS), 0,
                      (T *)y, (const T *)x, s->batch * s->rows, s->heads, s->rows, s->cols);
    });
}

KernelCudaFault kernel_cuda_clamp_columns(KernelCuda *lane, void *y, const void *x,
                                          const KernelCudaChosen *chosen, float least, float most) {
    return with_type(chosen->type, [&](auto t) {
        using T = decltype(t);
        return of_chosen(lane, "clamp_columns", (T *)y, (const T *)x, chosen, Clamp{least, most});
    });
}

KernelCudaFault kernel_cuda_limit_mask(KernelCuda *lane, void *mask, const void *x,
                                       const KernelCudaChosen *chosen, float sign, float limit) {
    return with_type(chosen->type, [&](auto t) {
        using T = decltype(t);
        return of_chosen(lane, "limit_mask", (uint8_t *)mask, (const T *)x, chosen,
                         Limit{sign, limit});
    });
}

KernelCudaFault kernel_cuda_times_columns(KernelCuda *lane, void *y, const void *x,
                                          const KernelCudaChosen *chosen, float number) {
    return with_type(chosen->type, [&](auto t) {
        using T = decltype(t);
        return of_chosen(lane, "times_columns", (T *)y, (const T *)x, chosen, Times{number});
    });
}

KernelCudaFault kernel_cuda_where_mask(KernelCuda *lane, void *y, const void *mask, const void *x,
                                       const void *zero, size_t n, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch_for(lane, "where_mask", n, where_kernel<T>, (T *)y, (const uint8_t *)mask,
                          (const T *)x, (const T *)zero, n);
    });
}
