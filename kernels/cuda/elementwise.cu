/* kernels/cuda/elementwise.cu - see elementwise.h. Bound: memory. */
#include "kernels/cuda/elementwise.h"

#include "kernels/at-least.h"
#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

/* ---- no input ------------------------------------------------------------------------------- */

template <typename T>
__global__ void __launch_bounds__(THREADS) fill_kernel(T *out, size_t n, float value) {
    constexpr int V = VECTOR<T>;
    float many[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
        many[v] = value;
    }
    for_span<V>(
        span_of<V>(n, out), n, (size_t)blockIdx.x * blockDim.x + threadIdx.x,
        (size_t)gridDim.x * blockDim.x, [&](size_t i) { narrow(&out[i], value); },
        [&](size_t i) { store<V>(out + i, many); });
}

__global__ void __launch_bounds__(THREADS)
    arange_kernel(int64_t *out, size_t n, int64_t first, int64_t step) {
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        out[i] = first + (int64_t)i * step;
    }
}

/* ---- element by element --------------------------------------------------------------------- */

struct Add {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] + in[1];
    }
};

struct Minus {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] - in[1];
    }
};

struct Divide {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] / in[1];
    }
};

struct Mul {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] * in[1];
    }
};

struct AddScaled {
    float factor;
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] + factor * in[1];
    }
};

/* The second number times a factor; the first, where there is none, is 1. */
struct Second {
    float factor;
    __device__ void operator()(const float *in, float *out) const {
        out[0] = factor * in[1];
    }
};

struct Scale {
    float factor;
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] * factor;
    }
};

struct Cast {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0];
    }
};

struct Plus {
    float number;
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] + number;
    }
};

struct Square {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] * in[0];
    }
};

struct Cube {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] * in[0] * in[0];
    }
};

struct Root {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = sqrtf(in[0]);
    }
};

struct ReciprocalRoot {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = 1.0f / sqrtf(in[0]);
    }
};

struct Power {
    double exponent;
    __device__ void operator()(const float *in, float *out) const {
        out[0] = (float)pow((double)in[0], exponent);
    }
};

struct Exp {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = expf(in[0]);
    }
};

struct Log {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = logf(in[0]);
    }
};

struct AtMost {
    float limit;
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] > limit ? limit : in[0]; /* NaN stays NaN */
    }
};

struct AtLeast {
    float limit;
    __device__ void operator()(const float *in, float *out) const {
        out[0] = kernel_at_least(in[0], limit);
    }
};

/* b is one row, which all rows of a share: its index is found for each piece of 16 bytes, of the
 * smallest type. */
template <typename T, typename A, typename R, typename F>
__global__ void __launch_bounds__(THREADS)
    with_row_kernel(T *out, const A *a, const R *b, size_t n, size_t nb, F f) {
    constexpr int V = VECTOR<A, R>;
    bool whole = nb % V == 0 && is_aligned(b);
    Span span = whole ? span_of<V>(n, a, out) : Span{n, n};
    if (span.head) { /* a piece of a would lie across two of b */
        span = Span{n, n};
    }
    for_span<V>(
        span, n, (size_t)blockIdx.x * blockDim.x + threadIdx.x, (size_t)gridDim.x * blockDim.x,
        [&](size_t i) {
            float in[2] = {widen(a[i]), widen(b[i % nb])}, y;
            f(in, &y);
            narrow(&out[i], y);
        },
        [&](size_t i) {
            float x[V], y[V];
            load<V>(x, a + i);
            load<V>(y, b + i % nb);
#pragma unroll
            for (int v = 0; v < V; v++) {
                float in[2] = {x[v], y[v]};
                f(in, &x[v]);
            }
            store<V>(out + i, x);
        });
}

/* Each number of x (1, where it is NULL) and its row's. */
template <typename T, typename F>
__global__ void __launch_bounds__(THREADS)
    with_column_kernel(T *out, const T *x, const T *column, size_t n, size_t cols, F f) {
    constexpr int V = VECTOR<T>;
    bool whole = cols % V == 0 && (!x || is_aligned(x));
    Span span = whole ? span_of<V>(n, out) : Span{n, n};
    if (span.head) { /* a piece would lie across two rows */
        span = Span{n, n};
    }
    for_span<V>(
        span, n, (size_t)blockIdx.x * blockDim.x + threadIdx.x, (size_t)gridDim.x * blockDim.x,
        [&](size_t i) {
            float in[2] = {x ? widen(x[i]) : 1.0f, widen(column[i / cols])}, y;
            f(in, &y);
            narrow(&out[i], y);
        },
        [&](size_t i) {
            float many[V] = {}, number = widen(column[i / cols]);
            if (x) {
                load<V>(many, x + i);
            }
#pragma unroll
            for (int v = 0; v < V; v++) {
                float in[2] = {x ? many[v] : 1.0f, number};
                f(in, &many[v]);
            }
            store<V>(out + i, many);
        });
}

/* out is of the wider of both types. */
template <typename T, typename A, typename R, typename F>
KernelCudaFault with_row(KernelCuda *lane, const char *name, T *out, const A *a, const R *b,
                         size_t n, size_t nb, F f) {
    return launch(lane, name, with_row_kernel<T, A, R, F>,
                  dim3(grid_for(lane, divide_up(n, VECTOR<A, R>))), dim3(THREADS), 0, out, a, b, n,
                  nb, f);
}

/* Of one type; or a or the row is of fp32, and so is out. */
template <typename F>
KernelCudaFault with_row(KernelCuda *lane, const char *name, void *out, const void *a,
                         KernelCudaType type, const void *b, KernelCudaType row_type, size_t n,
                         size_t nb, F f) {
    if (row_type != type && type != KERNEL_CUDA_F32 && row_type != KERNEL_CUDA_F32) {
        return kernel_cuda_fault("rows and a row of two types of 16 bits");
    }
    return with_type(row_type == KERNEL_CUDA_F32 ? type : row_type, [&](auto t) {
        using T = decltype(t);
        return row_type == type
                   ? with_row(lane, name, (T *)out, (const T *)a, (const T *)b, n, nb, f)
               : type == KERNEL_CUDA_F32
                   ? with_row(lane, name, (float *)out, (const float *)a, (const T *)b, n, nb, f)
                   : with_row(lane, name, (float *)out, (const T *)a, (const float *)b, n, nb, f);
    });
}

template <typename F>
KernelCudaFault with_column(KernelCuda *lane, const char *name, void *out, const void *x,
                            const void *column, size_t n, size_t cols, KernelCudaType type, F f) {
    if (!n) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, name, with_column_kernel<T, F>,
                      dim3(grid_for(lane, divide_up(n, VECTOR<T>))), dim3(THREADS), 0, (T *)out,
                      (const T *)x, (const T *)column, n, cols, f);
    });
}

template <typename F>
KernelCudaFault from_one(KernelCuda *lane, const char *name, void *out, const void *x, size_t n,
                         KernelCudaType type, F f) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return each(lane, name, Arrays<const T, 1>{{(const T *)x}}, Arrays<T, 1>{{(T *)out}}, n, f);
    });
}

template <typename F>
KernelCudaFault from_two(KernelCuda *lane, const char *name, void *out, const void *a,
                         const void *b, size_t n, KernelCudaType type, F f) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return each(lane, name, Arrays<const T, 2>{{(const T *)a, (const T *)b}},
                    Arrays<T, 1>{{(T *)out}}, n, f);
    });
}

/* From one storage to another. */
template <typename F>
KernelCudaFault between(KernelCuda *lane, const char *name, void *out, KernelCudaType out_type,
                        const void *x, KernelCudaType x_type, size_t n, F f) {
    return with_type(out_type, [&](auto to) {
        return with_type(x_type, [&](auto from) {
            using Y = decltype(to);
            using X = decltype(from);
            return each(lane, name, Arrays<const X, 1>{{(const X *)x}}, Arrays<Y, 1>{{(Y *)out}}, n,
                        f);
        });
    });
}

template <typename X, typename Y>
__global__ void __launch_bounds__(THREADS) accumulate_kernel(Y *sum, const X *x, size_t n) {
    constexpr int V = VECTOR<X, Y>;
    Span span = sizeof(X) <= sizeof(Y) ? span_of<V>(n, x) : span_of<V>(n, sum);
    if (!is_aligned(x + span.head) || !is_aligned(sum + span.head)) {
        span = Span{n, n};
    }
    for_span<V>(
        span, n, (size_t)blockIdx.x * blockDim.x + threadIdx.x, (size_t)gridDim.x * blockDim.x,
        [&](size_t i) { narrow(&sum[i], widen(sum[i]) + widen(x[i])); },
        [&](size_t i) {
            float a[V], b[V];
            load<V>(a, sum + i);
            load<V>(b, x + i);
#pragma unroll
            for (int v = 0; v < V; v++) {
                a[v] += b[v];
            }
            store<V>(sum + i, a);
        });
}

} // namespace

KernelCudaFault kernel_cuda_fill(KernelCuda *lane, void *out, size_t n, double value,
                                 KernelCudaType type) {
    if (!n) {
        return NULL;
    }
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "fill", fill_kernel<T>, dim3(grid_for(lane, divide_up(n, VECTOR<T>))),
                      dim3(THREADS), 0, (T *)out, n, (float)value);
    });
}

KernelCudaFault kernel_cuda_arange_i64(KernelCuda *lane, int64_t *out, size_t n, int64_t first,
                                       int64_t step) {
    if (!n) {
        return NULL;
    }
    return launch(lane, "arange", arange_kernel, dim3(grid_for(lane, n)), dim3(THREADS), 0, out, n,
                  first, step);
}

KernelCudaFault kernel_cuda_add(KernelCuda *lane, void *out, const void *a, const void *b, size_t n,
                                size_t nb, KernelCudaType type) {
    return nb == n ? from_two(lane, "add", out, a, b, n, type, Add{})
                   : kernel_cuda_add_row(lane, out, a, b, n, nb, type, type);
}

KernelCudaFault kernel_cuda_add_row(KernelCuda *lane, void *out, const void *x, const void *row,
                                    size_t n, size_t cols, KernelCudaType type,
                                    KernelCudaType row_type) {
    return n ? with_row(lane, "add (rows)", out, x, type, row, row_type, n, cols, Add{}) : NULL;
}

KernelCudaFault kernel_cuda_mul(KernelCuda *lane, void *out, const void *a, const void *b, size_t n,
                                KernelCudaType type) {
    return from_two(lane, "mul", out, a, b, n, type, Mul{});
}

KernelCudaFault kernel_cuda_add_scaled(KernelCuda *lane, void *out, const void *a, const void *b,
                                       size_t n, double factor, KernelCudaType type) {
    return from_two(lane, "add scaled", out, a, b, n, type, AddScaled{(float)factor});
}

KernelCudaFault kernel_cuda_divide(KernelCuda *lane, void *out, const void *a, const void *b,
                                   size_t n, KernelCudaType type) {
    return from_two(lane, "divide", out, a, b, n, type, Divide{});
}

KernelCudaFault kernel_cuda_exp(KernelCuda *lane, void *out, const void *x, size_t n,
                                KernelCudaType type) {
    return from_one(lane, "exp", out, x, n, type, Exp{});
}

KernelCudaFault kernel_cuda_log(KernelCuda *lane, void *out, const void *x, size_t n,
                                KernelCudaType type) {
    return from_one(lane, "log", out, x, n, type, Log{});
}

KernelCudaFault kernel_cuda_mul_row(KernelCuda *lane, void *out, const void *x, const void *row,
                                    size_t rows, size_t cols, KernelCudaType type,
                                    KernelCudaType row_type) {
    size_t n = rows * cols;
    return n ? with_row(lane, "mul_row", out, x, type, row, row_type, n, cols, Mul{}) : NULL;
}

KernelCudaFault kernel_cuda_mul_column(KernelCuda *lane, void *out, const void *x,
                                       const void *column, size_t rows, size_t cols,
                                       KernelCudaType type) {
    return with_column(lane, "mul_column", out, x, column, rows * cols, cols, type, Mul{});
}

KernelCudaFault kernel_cuda_add_column(KernelCuda *lane, void *out, const void *x,
                                       const void *column, size_t rows, size_t cols,
                                       KernelCudaType type) {
    return with_column(lane, "add_column", out, x, column, rows * cols, cols, type, Add{});
}

KernelCudaFault kernel_cuda_sub_column(KernelCuda *lane, void *out, const void *x,
                                       const void *column, size_t rows, size_t cols,
                                       KernelCudaType type) {
    return with_column(lane, "sub_column", out, x, column, rows * cols, cols, type, Minus{});
}

KernelCudaFault kernel_cuda_divide_column(KernelCuda *lane, void *out, const void *x,
                                          const void *column, size_t rows, size_t cols,
                                          KernelCudaType type) {
    return with_column(lane, "divide_column", out, x, column, rows * cols, cols, type, Divide{});
}

KernelCudaFault kernel_cuda_spread(KernelCuda *lane, void *out, const void *column, size_t rows,
                                   size_t cols, double factor, KernelCudaType type) {
    return with_column(lane, "spread", out, NULL, column, rows * cols, cols, type,
                       Second{(float)factor});
}

KernelCudaFault kernel_cuda_scale(KernelCuda *lane, void *out, KernelCudaType out_type,
                                  const void *x, KernelCudaType x_type, size_t n, double factor) {
    return between(lane, "scale", out, out_type, x, x_type, n, Scale{(float)factor});
}

KernelCudaFault kernel_cuda_cast(KernelCuda *lane, void *out, KernelCudaType out_type,
                                 const void *x, KernelCudaType x_type, size_t n) {
    return between(lane, "cast", out, out_type, x, x_type, n, Cast{});
}

KernelCudaFault kernel_cuda_accumulate(KernelCuda *lane, void *sum, KernelCudaType sum_type,
                                       const void *x, KernelCudaType x_type, size_t n) {
    if (!n) {
        return NULL;
    }
    return with_type(sum_type, [&](auto to) {
        return with_type(x_type, [&](auto from) {
            using Y = decltype(to);
            using X = decltype(from);
            return launch(lane, "accumulate", accumulate_kernel<X, Y>,
                          dim3(grid_for(lane, divide_up(n, VECTOR<X, Y>))), dim3(THREADS), 0,
                          (Y *)sum, (const X *)x, n);
        });
    });
}

/* Powers of whole activations go at memory speed, the others in double. */
static KernelCudaFault power(KernelCuda *lane, void *out, const void *x, size_t n, double exponent,
                             KernelCudaType type) {
    if (exponent == 1) {
        return from_one(lane, "power", out, x, n, type, Cast{});
    }
    if (exponent == 2) {
        return from_one(lane, "power", out, x, n, type, Square{});
    }
    if (exponent == 3) {
        return from_one(lane, "power", out, x, n, type, Cube{});
    }
    if (exponent == 0.5) {
        return from_one(lane, "power", out, x, n, type, Root{});
    }
    if (exponent == -0.5) {
        return from_one(lane, "power", out, x, n, type, ReciprocalRoot{});
    }
    return from_one(lane, "power", out, x, n, type, Power{exponent});
}

KernelCudaFault kernel_cuda_number(KernelCuda *lane, void *out, const void *x, size_t n,
                                   KernelCudaNumber op, double by, KernelCudaType type) {
    switch (op) {
    case KERNEL_CUDA_POWER:
        return power(lane, out, x, n, by, type);
    case KERNEL_CUDA_ADD_NUMBER:
        return from_one(lane, "add_number", out, x, n, type, Plus{(float)by});
    case KERNEL_CUDA_TIMES_NUMBER:
        return from_one(lane, "times_number", out, x, n, type, Scale{(float)by});
    case KERNEL_CUDA_AT_MOST:
        return from_one(lane, "at_most", out, x, n, type, AtMost{(float)by});
    case KERNEL_CUDA_AT_LEAST:
        return from_one(lane, "at_least", out, x, n, type, AtLeast{(float)by});
    }
    return kernel_cuda_fault("a number's op that is none");
}
