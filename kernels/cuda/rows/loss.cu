/* kernels/cuda/rows/loss.cu - see loss.h. Bound: memory.
 *
 * A block takes a row; each thread folds its numbers into a running maximum and the sum of
 * exponentials below it, so that a row is read once for its logsumexp. A loss of rows is written
 * down a row at a time and added by one block, in a fixed order.
 */
#include "kernels/cuda/rows/loss.h"

#include "kernels/cuda/rows/rows.cuh"

using namespace cu;

namespace {

enum {
    ROW_THREADS = 512,
    NO_TARGET = -100, /* PyTorch's ignore_index */
};

/* ---- a row's maximum and sum ---------------------------------------------------------------- */

struct Fold {
    float max, sum; /* sum of exp(x - max); an empty one: -inf and 0 */
};

/* The maximum of them first, so that the sum is brought down to it once. NaN goes on as NaN. */
template <typename T, int V> __device__ void fold(Fold *into, const float (&x)[V]) {
    float max = into->max;
#pragma unroll
    for (int v = 0; v < V; v++) {
        max = fmaxf(max, x[v]);
    }
    float base = max > -INFINITY ? max : 0.0f; /* -inf less -inf is no number */
    float sum = into->sum * exp_of<T>(into->max - base);
#pragma unroll
    for (int v = 0; v < V; v++) {
        sum += exp_of<T>(x[v] - base);
    }
    *into = Fold{max, sum};
}

/* For all threads. A row that is all -inf has sum 0 and max -inf. */
__device__ Fold row_fold(Fold mine) {
    float max = row_max(mine.max);
    float part = mine.sum == 0.0f ? 0.0f : mine.sum * expf(mine.max - max);
    return Fold{max, row_sum(part)};
}

/* While a piece is folded in, which takes about as long as memory does to answer, the next one is
 * on its way. */
template <typename T> __device__ Fold fold_row(const T *x, size_t cols) {
    constexpr int V = VECTOR<T>;
    Fold mine = {-INFINITY, 0.0f};
    Span span = span_of<V>(cols, x);
    size_t stride = blockDim.x * V, i = span.head + threadIdx.x * V;
    Raw<V, T> next = {};
    if (i < span.tail) {
        next = load_raw<V>(x + i);
    }
    for (; i < span.tail; i += stride) {
        Raw<V, T> now = next;
        if (i + stride < span.tail) {
            next = load_raw<V>(x + i + stride);
        }
        float many[V];
        widen_raw(many, now);
        fold<T>(&mine, many);
    }
    for_rest(span, cols, threadIdx.x, blockDim.x, [&](size_t at) {
        float one[1] = {widen(x[at])};
        fold<T>(&mine, one);
    });
    return row_fold(mine);
}

/* The sum over a row of f(x, y). */
template <typename T, typename F>
__device__ float sum_row(const T *x, const T *y, size_t cols, F f) {
    constexpr int V = VECTOR<T>;
    float sum = 0;
    for_span<V>(
        span_of<V>(cols, x, y), cols, threadIdx.x, blockDim.x,
        [&](size_t i) { sum += f(widen(x[i]), widen(y[i])); },
        [&](size_t i) {
            float a[V], b[V];
            load<V>(a, x + i);
            load<V>(b, y + i);
#pragma unroll
            for (int v = 0; v < V; v++) {
                sum += f(a[v], b[v]);
            }
        });
    return row_sum(sum);
}

/* ---- softmax -------------------------------------------------------------------------------- */

template <typename T, bool LOG>
__global__ void __launch_bounds__(ROW_THREADS) softmax_kernel(T *y, const T *x, size_t cols) {
    size_t start = blockIdx.x * cols;
    Fold all = fold_row(x + start, cols);
    float log_sum = logf(all.sum), inverse = 1.0f / all.sum;
    map_row(y + start, x + start, cols, [&](size_t, float number) {
        return LOG ? number - all.max - log_sum : exp_of<T>(number - all.max) * inverse;
    });
}

template <typename T, bool LOG>
__global__ void __launch_bounds__(ROW_THREADS)
    softmax_backward_kernel(T *dx, const T *dy, const T *y, size_t cols) {
    size_t start = blockIdx.x * cols;
    float sum =
        sum_row(dy + start, y + start, cols, [](float a, float b) { return LOG ? a : a * b; });
    map_row(dx + start, dy + start, y + start, cols,
            [&](size_t, float a, float b) { return LOG ? a - exp_of<T>(b) * sum : b * (a - sum); });
}

/* ---- the loss ------------------------------------------------------------------------------- */

/* One block. loss = sum of row_loss / how many rows count, which goes to total. */
template <typename T>
__global__ void __launch_bounds__(ROW_THREADS)
    mean_loss_kernel(T *loss, T *total, const float *row_loss, const int64_t *target, size_t rows) {
    float sum = 0, count = 0;
    for (size_t r = threadIdx.x; r < rows; r += blockDim.x) {
        sum += row_loss[r];
        count += target[r] != NO_TARGET ? 1.0f : 0.0f;
    }
    sum = row_sum(sum);
    count = row_sum(count);
    if (threadIdx.x == 0) {
        narrow(loss, sum / count);
        narrow(total, count);
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    pick_kernel(float *row_loss, const T *logp, const int64_t *target, size_t rows, size_t classes,
                unsigned *flag, unsigned tag) {
    size_t r = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) {
        return;
    }
    bool good = is_inside(target[r], classes);
    row_loss[r] = good ? -widen(logp[r * classes + (size_t)target[r]]) : 0.0f;
    if (!good && target[r] != NO_TARGET) {
        tell_bad_index(flag, tag);
    }
}

template <typename T>
__global__ void __launch_bounds__(ROW_THREADS)
    nll_backward_kernel(T *dlogp, const T *dloss, const int64_t *target, const T *total,
                        size_t classes, unsigned *flag, unsigned tag) {
    size_t row = blockIdx.x;
    int64_t class_of_row = target[row];
    float value = -widen(dloss[0]) / widen(total[0]);
    T *at = dlogp + row * classes;
    constexpr int V = VECTOR<T>;
    auto number = [&](size_t i) { return (int64_t)i == class_of_row ? value : 0.0f; };
    for_span<V>(
        span_of<V>(classes, at), classes, threadIdx.x, blockDim.x,
        [&](size_t i) { narrow(&at[i], number(i)); },
        [&](size_t i) {
            float many[V];
#pragma unroll
            for (int v = 0; v < V; v++) {
                many[v] = number(i + v);
            }
            store<V>(at + i, many);
        });
    if (threadIdx.x == 0 && !is_inside(class_of_row, classes) && class_of_row != NO_TARGET) {
        tell_bad_index(flag, tag);
    }
}

template <typename T>
__global__ void __launch_bounds__(ROW_THREADS)
    cross_entropy_kernel(float *lse, float *row_loss, const T *logits, const int64_t *target,
                         size_t classes, unsigned *flag, unsigned tag) {
    size_t row = blockIdx.x;
    const T *at = logits + row * classes;
    Fold all = fold_row(at, classes);
    if (threadIdx.x == 0) {
        float sum = all.max + logf(all.sum);
        bool good = is_inside(target[row], classes);
        lse[row] = sum;
        row_loss[row] = good ? sum - widen(at[target[row]]) : 0.0f;
        if (!good) {
            tell_bad_index(flag, tag);
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(ROW_THREADS)
    cross_entropy_backward_kernel(T *dlogits, const T *logits, const T *dloss,
                                  const int64_t *target, const T *total, const float *lse,
                                  size_t classes, unsigned *flag, unsigned tag) {
    size_t row = blockIdx.x;
    int64_t class_of_row = target[row];
    float factor = widen(dloss[0]) / widen(total[0]), sum = lse[row];
    map_row(dlogits + row * classes, logits + row * classes, classes, [&](size_t i, float x) {
        return (exp_of<T>(x - sum) - ((int64_t)i == class_of_row ? 1.0f : 0.0f)) * factor;
    });
    if (threadIdx.x == 0 && !is_inside(class_of_row, classes)) {
        tell_bad_index(flag, tag);
    }
}

template <typename T>
__global__ void __launch_bounds__(ROW_THREADS)
    compiled_loss_kernel(float *most, float *log_sum, float *row_loss, const T *logits,
                         const int64_t *target, size_t classes, unsigned *flag, unsigned tag) {
    size_t row = blockIdx.x;
    const T *at = logits + row * classes;
    Fold all = fold_row(at, classes);
    if (threadIdx.x == 0) {
        float sum = logf(all.sum);
        bool good = is_inside(target[row], classes);
        most[row] = all.max;
        log_sum[row] = sum;
        row_loss[row] = good ? all.max + sum - widen(at[target[row]]) : 0.0f;
        if (!good && target[row] != NO_TARGET) {
            tell_bad_index(flag, tag);
        }
    }
}

/* factor: of one number, of the mean's gradient by how many rows count. */
template <typename T>
__global__ void __launch_bounds__(ROW_THREADS)
    compiled_loss_backward_kernel(T *dlogits, const T *logits, const T *more, const int64_t *target,
                                  const float *most, const float *log_sum, const float *factor,
                                  size_t classes, unsigned *flag, unsigned tag) {
    size_t row = blockIdx.x, start = row * classes;
    int64_t class_of_row = target[row];
    bool counts = class_of_row != NO_TARGET;
    float share = counts ? factor[0] : 0.0f, largest = most[row], sum = log_sum[row];
    auto gradient = [&](size_t i, float x) {
        return (exp_of<T>(x - largest - sum) - ((int64_t)i == class_of_row ? 1.0f : 0.0f)) * share;
    };
    if (more) {
        map_row(dlogits + start, logits + start, more + start, classes,
                [&](size_t i, float x, float y) { return gradient(i, x) + y; });
    } else {
        map_row(dlogits + start, logits + start, classes, gradient);
    }
    if (threadIdx.x == 0 && counts && !is_inside(class_of_row, classes)) {
        tell_bad_index(flag, tag);
    }
}

template <typename T>
__global__ void quotient_kernel(float *quotient, const T *dividend, const T *divisor) {
    quotient[0] = widen(dividend[0]) / widen(divisor[0]);
}

/* Forward and backward: what is read the second time comes from the cache. */
template <typename T>
__global__ void __launch_bounds__(ROW_THREADS)
    cross_entropy_part_kernel(float *row_loss, T *logits, const int64_t *target, size_t classes,
                              float factor, unsigned *flag, unsigned tag) {
    size_t row = blockIdx.x;
    int64_t class_of_row = target[row];
    T *at = logits + row * classes;
    Fold all = fold_row(at, classes);
    float sum = all.max + logf(all.sum);
    if (threadIdx.x == 0) {
        bool good = is_inside(class_of_row, classes);
        row_loss[row] = good ? sum - widen(at[class_of_row]) : 0.0f;
        if (!good) {
            tell_bad_index(flag, tag);
        }
    }
    __syncthreads(); /* before that logit is written over */
    map_row(at, at, classes, [&](size_t i, float x) {
        return (exp_of<T>(x - sum) - ((int64_t)i == class_of_row ? 1.0f : 0.0f)) * factor;
    });
}

/* One block. */
template <typename T>
__global__ void __launch_bounds__(ROW_THREADS)
    add_loss_kernel(T *loss, float *sum, const float *row_loss, size_t rows, float factor,
                    bool is_first) {
    float mine = 0;
    for (size_t r = threadIdx.x; r < rows; r += blockDim.x) {
        mine += row_loss[r];
    }
    mine = row_sum(mine);
    if (threadIdx.x == 0) {
        float so_far = (is_first ? 0.0f : *sum) + mine * factor;
        *sum = so_far;
        narrow(loss, so_far);
    }
}

unsigned threads_for(size_t cols) {
    size_t threads = divide_up(divide_up(cols, 8), LANES) * LANES;
    return (unsigned)(threads < ROW_THREADS ? threads : ROW_THREADS);
}

template <bool LOG>
KernelCudaFault softmax(KernelCuda *lane, const char *name, void *y, const void *x, size_t rows,
                        size_t cols, KernelCudaType type) {
    if (!rows || !cols) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, name, softmax_kernel<T, LOG>, dim3(block_each(rows)),
                      dim3(threads_for(cols)), 0, (T *)y, (const T *)x, cols);
    });
}

template <bool LOG>
KernelCudaFault softmax_backward(KernelCuda *lane, const char *name, void *dx, const void *dy,
                                 const void *y, size_t rows, size_t cols, KernelCudaType type) {
    if (!rows || !cols) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, name, softmax_backward_kernel<T, LOG>, dim3(block_each(rows)),
                      dim3(threads_for(cols)), 0, (T *)dx, (const T *)dy, (const T *)y, cols);
    });
}

template <typename T>
KernelCudaFault mean_loss(KernelCuda *lane, void *loss, void *total, const float *row_loss,
                          const int64_t *target, size_t rows, T) {
    return launch(lane, "mean of the loss", mean_loss_kernel<T>, dim3(1), dim3(ROW_THREADS), 0,
                  (T *)loss, (T *)total, row_loss, target, rows);
}

} // namespace

KernelCudaFault kernel_cuda_softmax_forward(KernelCuda *lane, void *y, const void *x, size_t rows,
                                            size_t cols, KernelCudaType type) {
    return softmax<false>(lane, "softmax", y, x, rows, cols, type);
}

KernelCudaFault kernel_cuda_log_softmax_forward(KernelCuda *lane, void *y, const void *x,
                                                size_t rows, size_t cols, KernelCudaType type) {
    return softmax<true>(lane, "log_softmax", y, x, rows, cols, type);
}

KernelCudaFault kernel_cuda_softmax_backward(KernelCuda *lane, void *dx, const void *dy,
                                             const void *y, size_t rows, size_t cols,
                                             KernelCudaType type) {
    return softmax_backward<false>(lane, "softmax_backward", dx, dy, y, rows, cols, type);
}

KernelCudaFault kernel_cuda_log_softmax_backward(KernelCuda *lane, void *dx, const void *dy,
                                                 const void *y, size_t rows, size_t cols,
                                                 KernelCudaType type) {
    return softmax_backward<true>(lane, "log_softmax_backward", dx, dy, y, rows, cols, type);
}

KernelCudaFault kernel_cuda_nll_loss_forward(KernelCuda *lane, void *loss, void *total,
                                             const void *logp, const int64_t *target, size_t rows,
                                             size_t classes, KernelCudaType type) {
    void *row_loss;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, (rows + 1) * sizeof(float), &row_loss));
    return with_type(type, [&](auto t) -> KernelCudaFault {
        using T = decltype(t);
        KERNEL_CUDA_TRY(rows ? launch(lane, "nll_loss", pick_kernel<T>,
                                      dim3(block_each(divide_up(rows, THREADS))), dim3(THREADS), 0,
                                      (float *)row_loss, (const T *)logp, target, rows, classes,
                                      lane->flag, lane->tag)
                             : NULL);
        return mean_loss(lane, loss, total, (const float *)row_loss, target, rows, t);
    });
}

KernelCudaFault kernel_cuda_nll_loss_backward(KernelCuda *lane, void *dlogp, const void *dloss,
                                              const int64_t *target, const void *total, size_t rows,
                                              size_t classes, KernelCudaType type) {
    if (!rows || !classes) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "nll_loss_backward", nll_backward_kernel<T>, dim3(block_each(rows)),
                      dim3(threads_for(classes)), 0, (T *)dlogp, (const T *)dloss, target,
                      (const T *)total, classes, lane->flag, lane->tag);
    });
}

KernelCudaFault kernel_cuda_cross_entropy_forward(KernelCuda *lane, void *loss, void *total,
                                                  float *lse, const void *logits,
                                                  const int64_t *target, size_t rows,
                                                  size_t classes, KernelCudaType type) {
    void *row_loss;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, (rows + 1) * sizeof(float), &row_loss));
    return with_type(type, [&](auto t) -> KernelCudaFault {
        using T = decltype(t);
        KERNEL_CUDA_TRY(rows && classes ? launch(lane, "cross_entropy", cross_entropy_kernel<T>,
                                                 dim3(block_each(rows)), dim3(threads_for(classes)),
                                                 0, lse, (float *)row_loss, (const T *)logits,
                                                 target, classes, lane->flag, lane->tag)
                                        : NULL);
        return mean_loss(lane, loss, total, (const float *)row_loss, target, rows, t);
    });
}

KernelCudaFault kernel_cuda_cross_entropy_backward(KernelCuda *lane, void *dlogits,
                                                   const void *logits, const void *dloss,
                                                   const int64_t *target, const void *total,
                                                   const float *lse, size_t rows, size_t classes,
                                                   KernelCudaType type) {
    if (!rows || !classes) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "cross_entropy_backward", cross_entropy_backward_kernel<T>,
                      dim3(block_each(rows)), dim3(threads_for(classes)), 0, (T *)dlogits,
                      (const T *)logits, (const T *)dloss, target, (const T *)total, lse, classes,
                      lane->flag, lane->tag);
    });
}

KernelCudaFault kernel_cuda_compiled_loss_forward(KernelCuda *lane, void *loss, void *total,
                                                  KernelCudaType of_loss, float *most,
                                                  float *log_sum, const void *logits,
                                                  const int64_t *target, size_t rows,
                                                  size_t classes, KernelCudaType type) {
    void *row_loss;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, (rows + 1) * sizeof(float), &row_loss));
    if (rows && classes) {
        KERNEL_CUDA_TRY(with_type(type, [&](auto t) {
            using T = decltype(t);
            return launch(lane, "compiled_loss", compiled_loss_kernel<T>, dim3(block_each(rows)),
                          dim3(threads_for(classes)), 0, most, log_sum, (float *)row_loss,
                          (const T *)logits, target, classes, lane->flag, lane->tag);
        }));
    }
    return with_type(of_loss, [&](auto t) {
        return mean_loss(lane, loss, total, (const float *)row_loss, target, rows, t);
    });
}

KernelCudaFault kernel_cuda_compiled_loss_backward(
    KernelCuda *lane, void *dlogits, const void *logits, const void *more, const int64_t *target,
    const float *most, const float *log_sum, const void *dloss, const void *total,
    KernelCudaType of_loss, size_t rows, size_t classes, KernelCudaType type) {
    if (!rows || !classes) {
        return NULL;
    }
    void *factor;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, sizeof(float), &factor));
    KERNEL_CUDA_TRY(with_type(of_loss, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "quotient", quotient_kernel<T>, dim3(1), dim3(1), 0, (float *)factor,
                      (const T *)dloss, (const T *)total);
    }));
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "compiled_loss_backward", compiled_loss_backward_kernel<T>,
                      dim3(block_each(rows)), dim3(threads_for(classes)), 0, (T *)dlogits,
                      (const T *)logits, (const T *)more, target, most, log_sum,
                      (const float *)factor, classes, lane->flag, lane->tag);
    });
}

KernelCudaFault kernel_cuda_cross_entropy_part(KernelCuda *lane, void *loss, float *sum,
                                               float *row_loss, void *logits, const int64_t *target,
                                               size_t rows, size_t classes, size_t all_rows,
                                               bool is_first, KernelCudaType type) {
    float factor = 1.0f / (float)all_rows;
    if (!rows || !classes) {
        return NULL;
    }
    return with_type(type, [&](auto t) -> KernelCudaFault {
        using T = decltype(t);
        KERNEL_CUDA_TRY(launch(lane, "cross_entropy_part", cross_entropy_part_kernel<T>,
                               dim3(block_each(rows)), dim3(threads_for(classes)), 0, row_loss,
                               (T *)logits, target, classes, factor, lane->flag, lane->tag));
        return launch(lane, "add_loss", add_loss_kernel<T>, dim3(1), dim3(ROW_THREADS), 0,
                      (T *)loss, sum, (const float *)row_loss, rows, factor, is_first);
    });
}
