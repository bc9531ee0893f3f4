/* kernels/cuda/attention/columns.cu - see columns.h. Bound: memory. A thread takes 16 bytes where
 * all rows and parts of them begin and end on such, else an element; neighbours lie side by side.
 */
#include "kernels/cuda/attention/columns.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

enum {
    AT_ONCE = 2, /* of 16 bytes that a thread has asked for */
};

/* n pieces of V elements. */
template <typename Y, typename X, int V, typename I>
__global__ void __launch_bounds__(THREADS)
    times_kernel(Y *y, const X *x, I n, I cols, size_t width, float factor) {
    I pieces = cols / V;
    for_work<AT_ONCE>(
        n,
        [&](I i) {
            I row = i / pieces;
            return load_raw<V>(x + row * width + (i - row * pieces) * V);
        },
        [&](I i, const Raw<V, X> &raw) {
            float z[V];
            widen_raw(z, raw);
#pragma unroll
            for (int v = 0; v < V; v++) {
                z[v] *= factor;
            }
            store<V>(y + (size_t)i * V, z);
        });
}

/* cols, width, to and total count units of U, which are moved as they are. */
template <typename U, typename I>
__global__ void __launch_bounds__(THREADS)
    put_kernel(U *y, const U *x, I n, I cols, size_t width, I to, I total) {
    for_work<AT_ONCE>(
        n,
        [&](I i) {
            I row = i / total, j = i - row * total;
            return j >= to && j - to < cols ? x[row * width + (j - to)] : U();
        },
        [&](I i, const U &moved) { y[i] = moved; });
}

/* Likewise; `each` rows of y share one of b. */
template <typename U> struct Part {
    const U *x;
    size_t cols, row, each;
};

template <typename U, typename I>
__global__ void __launch_bounds__(THREADS) join_kernel(U *y, Part<U> a, Part<U> b, I n) {
    I a_cols = (I)a.cols, total = (I)(a.cols + b.cols), each = (I)b.each;
    for_work<AT_ONCE>(
        n,
        [&](I i) {
            I row = i / total, j = i - row * total;
            return j < a_cols ? a.x[row * a.row + j] : b.x[row / each * b.row + (j - a_cols)];
        },
        [&](I i, const U &moved) { y[i] = moved; });
}

/* Likewise of numbers, those of b narrower: n pieces of V, the 16 bytes of b's that are asked for
 * at a time. */
template <typename T, typename S, int V, typename I>
__global__ void __launch_bounds__(THREADS) join_wide_kernel(T *y, Part<T> a, Part<S> b, I n) {
    I a_cols = (I)a.cols, pieces = (a_cols + (I)b.cols) / V, each = (I)b.each;
    FOR_WORK(I, i, n) {
        I row = i / pieces, j = (i - row * pieces) * V;
        float x[V];
        if (j < a_cols) {
            load<V>(x, a.x + (size_t)row * a.row + j);
        } else {
            load<V>(x, b.x + (size_t)(row / each) * b.row + (j - a_cols));
        }
        store<V>(y + (size_t)i * V, x);
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
    size_t n = rows * cols;
    return with_type(y_type, [&](auto to) {
        return with_type(x_type, [&](auto t) {
            using Y = decltype(to);
            using X = decltype(t);
            const X *first = (const X *)x + from;
            return in_pieces<VECTOR<Y, X>>(
                cols | width, (uintptr_t)y | (uintptr_t)first, n, [&](auto count, auto index) {
                    constexpr int V = decltype(count)::value;
                    return launch_for(lane, name, n / V, times_kernel<Y, X, V, decltype(index)>,
                                      (Y *)y, first, n / V, cols, width, factor);
                });
        });
    });
}

template <typename U> Part<U> part_of(const KernelCudaPart *part, size_t per = 1) {
    return Part<U>{(const U *)part->x, part->cols / per, part->row / per, part->each};
}

template <typename S>
KernelCudaFault join_wide(KernelCuda *lane, float *y, const KernelCudaPart *a,
                          const KernelCudaPart *b, size_t rows) {
    return in_pieces<VECTOR<float, S>>(
        a->cols | a->row | b->cols | b->row, (uintptr_t)y | (uintptr_t)a->x | (uintptr_t)b->x,
        rows * (a->cols + b->cols), [&](auto count, auto index) {
            constexpr int V = decltype(count)::value;
            size_t n = rows * (a->cols + b->cols) / V;
            return launch_for(lane, "join_columns", n,
                              join_wide_kernel<float, S, V, decltype(index)>, y, part_of<float>(a),
                              part_of<S>(b), n);
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
    size_t bytes = kernel_cuda_type_bytes(type);
    const char *first = (const char *)x + from * bytes;
    uintptr_t all = (uintptr_t)y | (uintptr_t)first | (cols | width | to | total) * bytes;
    return with_unit(type, all, [&](auto unit, size_t per) {
        size_t n = rows * total / per;
        return with_index(n, [&](auto index) {
            using U = decltype(unit);
            return launch_for(lane, "put_columns", n, put_kernel<U, decltype(index)>, (U *)y,
                              (const U *)first, n, cols / per, width / per, to / per, total / per);
        });
    });
}

KernelCudaFault kernel_cuda_join_columns(KernelCuda *lane, void *y, const KernelCudaPart *a,
                                         const KernelCudaPart *b, KernelCudaType b_type,
                                         size_t rows, KernelCudaType type) {
    if (b_type != type) {
        return b_type == KERNEL_CUDA_BF16  ? join_wide<__nv_bfloat16>(lane, (float *)y, a, b, rows)
               : b_type == KERNEL_CUDA_F16 ? join_wide<__half>(lane, (float *)y, a, b, rows)
                                           : kernel_cuda_fault("columns of fp32 behind 16 bits");
    }
    uintptr_t all = (uintptr_t)y | (uintptr_t)a->x | (uintptr_t)b->x |
                    (a->cols | a->row | b->cols | b->row) * kernel_cuda_type_bytes(type);
    return with_unit(type, all, [&](auto unit, size_t per) {
        size_t n = rows * (a->cols + b->cols) / per;
        return with_index(n, [&](auto index) {
            using U = decltype(unit);
            return launch_for(lane, "join_columns", n, join_kernel<U, decltype(index)>, (U *)y,
                              part_of<U>(a, per), part_of<U>(b, per), n);
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
