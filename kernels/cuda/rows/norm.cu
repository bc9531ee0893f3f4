/* kernels/cuda/rows/norm.cu - see norm.h: forward. Bound: memory.
 *
 * norm.cuh says who takes a row. Variance is that of the numbers less their mean. All that a thread
 * reads it asks for before it waits for any of it.
 */
#include "kernels/cuda/rows/norm.h"

#include "kernels/cuda/rows/norm.cuh"

using namespace cu;

namespace {

enum {
    SHORT_THREADS = 128, /* of blocks where a warp or less takes a row */
};

/* What forward reads and writes. */
template <typename T, typename S, typename W> struct Forward {
    T *sum;
    S *y;
    float *mean, *rstd;
    const T *a;
    const S *r;
    const W *weight, *bias;
    size_t rows, width, a_row;
    float eps;
};

/* ---- held ----------------------------------------------------------------------------------- */

/* A row's part of one thread: what it reads, as it lies, and the numbers that are normed. */
template <typename T, typename S, typename W, bool BIASED, int N> struct ForwardRow {
    using H = Held<T, S, W>;
    static constexpr int V = H::V;
    typename H::Piece a[N];
    typename H::Weight w[N], b[N];
    typename H::Narrow r[N];
    float x[N][V];

    /* from: its first element in a; start: in all other arrays of rows. */
    __device__ void get(const Forward<T, S, W> &f, const T *from, size_t start) {
#pragma unroll
        for (int k = 0; k < N; k++) {
            if (H::has(k, f.width)) {
                a[k] = H::get(from + H::offset(k));
                if (f.r) {
                    r[k] = H::get(f.r + start + H::offset(k));
                }
                w[k] = H::get(f.weight + H::column(k));
                if (BIASED) {
                    b[k] = H::get(f.bias + H::column(k));
                }
            }
        }
    }

    /* What is normed is what is stored. */
    __device__ void add_term(const Forward<T, S, W> &f, int k, size_t start, bool inside) {
        float other[V];
        widen_raw(other, r[k]);
#pragma unroll
        for (int v = 0; v < V; v++) {
            x[k][v] += other[v];
        }
        a[k] = narrow_raw<V, T>(x[k]);
        widen_raw(x[k], a[k]);
        if (inside) {
            store_raw(f.sum + start + H::offset(k), a[k]);
        }
    }

    /* Returns this thread's part of the row's total. */
    __device__ float add_up(const Forward<T, S, W> &f, size_t start, bool inside) {
        float total = 0;
#pragma unroll
        for (int k = 0; k < N; k++) {
            if (H::has(k, f.width)) {
                widen_raw(x[k], a[k]);
                if (f.r) {
                    add_term(f, k, start, inside);
                }
#pragma unroll
                for (int v = 0; v < V; v++) {
                    total += x[k][v];
                }
            }
        }
        return total;
    }

    /* Returns this thread's part of the total of squares. */
    __device__ float take_off(const Forward<T, S, W> &f, float mean) {
        float squares = 0;
#pragma unroll
        for (int k = 0; k < N; k++) {
            if (H::has(k, f.width)) {
#pragma unroll
                for (int v = 0; v < V; v++) {
                    x[k][v] -= mean;
                    squares += x[k][v] * x[k][v];
                }
            }
        }
        return squares;
    }

    __device__ void put(const Forward<T, S, W> &f, size_t start, float rstd) {
#pragma unroll
        for (int k = 0; k < N; k++) {
            if (H::has(k, f.width)) {
                float weight[V], bias[V] = {};
                widen_raw(weight, w[k]);
                if (BIASED) {
                    widen_raw(bias, b[k]);
                }
#pragma unroll
                for (int v = 0; v < V; v++) {
                    x[k][v] = x[k][v] * rstd * weight[v] + bias[v];
                }
                store<V>(f.y + start + H::offset(k), x[k]);
            }
        }
    }
};

/* There is a weight. */
template <typename T, typename S, typename W, bool CENTERED, bool BIASED, int N>
__global__ void __launch_bounds__(ROW_THREADS) forward_held_kernel(Forward<T, S, W> f) {
    using H = Held<T, S, W>;
    size_t row = first_row();
    bool inside = row < f.rows; /* all lanes take part in sums */
    size_t start = (inside ? row * f.width : 0) + H::column(0);
    float mean = 0, inverse = 1.0f / (float)f.width;
    ForwardRow<T, S, W, BIASED, N> held;
    held.get(f, f.a + (inside ? row * f.a_row : 0) + H::column(0), start);
    float total = held.add_up(f, start, inside);
    if (CENTERED) {
        mean = row_sum(total) * inverse;
    }
    float rstd = rsqrtf(row_sum(held.take_off(f, mean)) * inverse + f.eps);
    if (!inside) {
        return;
    }
    if (threadIdx.x == 0) {
        f.rstd[row] = rstd;
        if (CENTERED) {
            f.mean[row] = mean;
        }
    }
    held.put(f, start, rstd);
}

/* ---- streamed ------------------------------------------------------------------------------- */

template <typename T, typename S, typename W, bool CENTERED>
__global__ void __launch_bounds__(ROW_THREADS) forward_streamed_kernel(Forward<T, S, W> f) {
    size_t row = blockIdx.x, start = row * f.width;
    const T *a = f.a + row * f.a_row, *x = f.r ? f.sum + start : a;
    float total = 0, squares = 0, mean = 0;
    for (size_t i = threadIdx.x; i < f.width; i += blockDim.x) {
        if (f.r) { /* each thread reads back what it wrote itself */
            narrow(&f.sum[start + i], widen(a[i]) + widen(f.r[start + i]));
        }
        total += widen(x[i]);
    }
    if (CENTERED) {
        mean = row_sum(total) / (float)f.width;
    }
    for (size_t i = threadIdx.x; i < f.width; i += blockDim.x) {
        float off = widen(x[i]) - mean;
        squares += off * off;
    }
    float rstd = 1.0f / sqrtf(row_sum(squares) / (float)f.width + f.eps);
    if (threadIdx.x == 0) {
        f.rstd[row] = rstd;
        if (CENTERED) {
            f.mean[row] = mean;
        }
    }
    for (size_t i = threadIdx.x; i < f.width; i += blockDim.x) {
        float w = f.weight ? widen(f.weight[i]) : 1.0f;
        float b = CENTERED && f.bias ? widen(f.bias[i]) : 0.0f;
        narrow(&f.y[start + i], (widen(x[i]) - mean) * rstd * w + b);
    }
}

/* ---- choosing ------------------------------------------------------------------------------- */

template <typename T, typename S, typename W, bool CENTERED, int N>
KernelCudaFault forward_held(KernelCuda *lane, const char *name, const Forward<T, S, W> &f,
                             unsigned threads, unsigned rows) {
    dim3 grid(block_each(divide_up(f.rows, rows))), block(threads, rows);
    if constexpr (CENTERED) {
        if (f.bias) {
            return launch(lane, name, forward_held_kernel<T, S, W, true, true, N>, grid, block, 0,
                          f);
        }
    }
    return launch(lane, name, forward_held_kernel<T, S, W, CENTERED, false, N>, grid, block, 0, f);
}

template <typename T, typename S, typename W, bool CENTERED>
KernelCudaFault forward(KernelCuda *lane, const char *name, const Forward<T, S, W> &f) {
    size_t pieces = f.width / VECTOR<T, S>;
    bool held = f.weight && (f.width | f.a_row) % VECTOR<T, S> == 0 &&
                pieces <= ROW_THREADS * ITEMS && aligned(f.a) && aligned(f.r) && aligned(f.sum) &&
                aligned(f.y) && aligned(f.weight) && aligned(f.bias);
    if (!held) {
        return launch(lane, name, forward_streamed_kernel<T, S, W, CENTERED>,
                      dim3(block_each(f.rows)), dim3(streamed_threads(f.width)), 0, f);
    }
    bool is_short = pieces <= LANES * ITEMS;
    unsigned threads = is_short ? lanes_for(pieces) : row_threads(pieces, 2);
    unsigned rows = is_short ? SHORT_THREADS / threads : 1;
    size_t items = divide_up(pieces, threads);
    return items == 1   ? forward_held<T, S, W, CENTERED, 1>(lane, name, f, threads, rows)
           : items == 2 ? forward_held<T, S, W, CENTERED, 2>(lane, name, f, threads, rows)
                        : forward_held<T, S, W, CENTERED, ITEMS>(lane, name, f, threads, rows);
}

} // namespace

KernelCudaFault kernel_cuda_layernorm_forward(KernelCuda *lane, void *sum, void *y, float *mean,
                                              float *rstd, const void *a, const void *r,
                                              const void *weight, const void *bias,
                                              const KernelCudaNorm *norm) {
    if (!norm->rows || !norm->width) {
        return NULL;
    }
    return with_norm_types(norm, [&](auto t, auto s, auto w) {
        using T = decltype(t);
        using S = decltype(s);
        using W = decltype(w);
        return forward<T, S, W, true>(lane, "layernorm",
                                      {(T *)sum, (S *)y, mean, rstd, (const T *)a, (const S *)r,
                                       (const W *)weight, (const W *)bias, norm->rows, norm->width,
                                       row_of(norm), norm->eps});
    });
}

KernelCudaFault kernel_cuda_rmsnorm_forward(KernelCuda *lane, void *sum, void *y, float *rstd,
                                            const void *a, const void *r, const void *weight,
                                            const KernelCudaNorm *norm) {
    if (!norm->rows || !norm->width) {
        return NULL;
    }
    return with_norm_types(norm, [&](auto t, auto s, auto w) {
        using T = decltype(t);
        using S = decltype(s);
        using W = decltype(w);
        return forward<T, S, W, false>(lane, "rmsnorm",
                                       {(T *)sum, (S *)y, NULL, rstd, (const T *)a, (const S *)r,
                                        (const W *)weight, NULL, norm->rows, norm->width,
                                        row_of(norm), norm->eps});
    });
}
