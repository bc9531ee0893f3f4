/* kernels/cuda/columns.cu - see columns.h. A thread an element of y, neighbours side by side. */
#include "kernels/cuda/columns.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

template <typename Y, typename X>
__global__ void __launch_bounds__(THREADS) times_kernel(Y *y, const X *x, size_t rows, size_t cols,
                                                        size_t width, size_t from, float factor) {
    FOR_WORK(size_t, i, rows * cols) {
        narrow(&y[i], factor * widen(x[i / cols * width + from + i % cols]));
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    put_kernel(T *y, const T *x, size_t rows, size_t cols, size_t width, size_t from, size_t to,
               size_t total) {
    FOR_WORK(size_t, i, rows * total) {
        size_t row = i / total, j = i % total;
        bool inside = j >= to && j < to + cols;
        narrow(&y[i], inside ? widen(x[row * width + from + j - to]) : 0.0f);
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    join_kernel(T *y, const T *a, const T *b, size_t rows, size_t a_cols, size_t b_cols,
                size_t width, size_t from) {
    size_t total = a_cols + b_cols;
    FOR_WORK(size_t, i, rows * total) {
        size_t row = i / total, j = i % total;
        y[i] = j < a_cols ? a[row * a_cols + j] : b[row * width + from + j - a_cols];
    }
}

template <typename T, typename C>
__global__ void __launch_bounds__(THREADS)
    table_mul_kernel(T *y, const T *x, const C *table, size_t rows, size_t heads, size_t cols,
                     size_t seq, size_t width) {
    FOR_WORK(size_t, i, rows * cols) {
        size_t row = i / cols, j = i % cols;
        narrow(&y[i], widen(x[row * width + j]) * widen(table[row / heads % seq * cols + j]));
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    pick_kernel(T *y, const T *x, const int64_t *index, size_t n, size_t cols, size_t k,
                unsigned *flag, unsigned tag) {
    FOR_WORK(size_t, i, n) {
        bool good = is_inside(index[i], cols);
        if (!good) {
            tell_bad_index(flag, tag);
        }
        narrow(&y[i], good ? widen(x[i / k * cols + (size_t)index[i]]) : 0.0f);
    }
}

/* An element looks through its row's k indices, which its neighbours have brought into the
 * cache. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    pick_backward_kernel(T *dx, const T *dy, const int64_t *index, size_t n, size_t cols, size_t k,
                         unsigned *flag, unsigned tag) {
    FOR_WORK(size_t, i, n) {
        size_t row = i / cols, column = i % cols;
        float sum = 0;
        for (size_t j = row * k; j < (row + 1) * k; j++) {
            sum += index[j] == (int64_t)column ? widen(dy[j]) : 0.0f;
            if (column == 0 && !is_inside(index[j], cols)) {
                tell_bad_index(flag, tag);
            }
        }
        narrow(&dx[i], sum);
    }
}

KernelCudaFault times(KernelCuda *lane, const char *name, void *y, KernelCudaType y_type,
                      const void *x, KernelCudaType x_type, size_t rows, size_t cols, size_t width,
                      size_t from, float factor) {
    return with_type(y_type, [&](auto to) {
        return with_type(x_type, [&](auto t) {
            using Y = decltype(to);
            using X = decltype(t);
            return launch(lane, name, times_kernel<Y, X>, dim3(grid_for(lane, rows * cols)),
                          dim3(THREADS), 0, (Y *)y, (const X *)x, rows, cols, width, from, factor);
        });
    });
}

} // namespace

KernelCudaFault kernel_cuda_copy_columns(KernelCuda *lane, void *y, KernelCudaType y_type,
                                         const void *x, KernelCudaType x_type, size_t rows,
                                         size_t cols, size_t width, size_t from) {
    return times(lane, "copy_columns", y, y_type, x, x_type, rows, cols, width, from, 1);
}

KernelCudaFault kernel_cuda_negate_columns(KernelCuda *lane, void *y, const void *x, size_t rows,
                                           size_t cols, size_t width, size_t from,
                                           KernelCudaType type) {
    return times(lane, "negate_columns", y, type, x, type, rows, cols, width, from, -1);
}

KernelCudaFault kernel_cuda_put_columns(KernelCuda *lane, void *y, const void *x, size_t rows,
                                        size_t cols, size_t width, size_t from, size_t to,
                                        size_t total, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "put_columns", put_kernel<T>, dim3(grid_for(lane, rows * total)),
                      dim3(THREADS), 0, (T *)y, (const T *)x, rows, cols, width, from, to, total);
    });
}

KernelCudaFault kernel_cuda_join_columns(KernelCuda *lane, void *y, const void *a, const void *b,
                                         size_t rows, size_t a_cols, size_t b_cols, size_t width,
                                         size_t from, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "join_columns", join_kernel<T>,
                      dim3(grid_for(lane, rows * (a_cols + b_cols))), dim3(THREADS), 0, (T *)y,
                      (const T *)a, (const T *)b, rows, a_cols, b_cols, width, from);
    });
}

KernelCudaFault kernel_cuda_table_mul_columns(KernelCuda *lane, void *y, const void *x,
                                              const void *table, size_t rows, size_t heads,
                                              size_t cols, size_t seq, size_t width,
                                              KernelCudaType type, KernelCudaType table_type) {
    return with_type(type, [&](auto t) {
        return with_type(table_type, [&](auto c) {
            using T = decltype(t);
            using C = decltype(c);
            return launch(lane, "table_mul_columns", table_mul_kernel<T, C>,
                          dim3(grid_for(lane, rows * cols)), dim3(THREADS), 0, (T *)y, (const T *)x,
                          (const C *)table, rows, heads, cols, seq, width);
        });
    });
}

KernelCudaFault kernel_cuda_pick_columns(KernelCuda *lane, void *y, const void *x,
                                         const int64_t *index, size_t rows, size_t cols, size_t k,
                                         KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch_for(lane, "pick_columns", rows * k, pick_kernel<T>, (T *)y, (const T *)x,
                          index, rows * k, cols, k, lane->flag, lane->tag);
    });
}

KernelCudaFault kernel_cuda_pick_columns_backward(KernelCuda *lane, void *dx, const void *dy,
                                                  const int64_t *index, size_t rows, size_t cols,
                                                  size_t k, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch_for(lane, "pick_columns_backward", rows * cols, pick_backward_kernel<T>,
                          (T *)dx, (const T *)dy, index, rows * cols, cols, k, lane->flag,
                          lane->tag);
    });
}
