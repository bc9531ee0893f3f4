/* kernels/cuda/ranks/ring.cu - see ring.h. Bound: memory. A thread four elements where all lie so,
 * else one.
 */
#include "kernels/cuda/ranks/ring.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

/* V elements, 4 or 1, of an array whose type is known when the kernel runs. */
template <int V>
__device__ void get(float (&x)[V], const void *array, KernelCudaType type, size_t at) {
    if constexpr (V == 4) {
        widen4(x, load_raw(array, type, at), type);
    } else {
        x[0] = load1(array, type, at);
    }
}

template <int V>
__device__ void put(void *array, KernelCudaType type, size_t at, const float (&x)[V]) {
    if constexpr (V == 4) {
        store4(array, type, at, x);
    } else {
        store1(array, type, at, x[0]);
    }
}

/* Whether rows of so many elements can be read four at a time. */
struct Fours {
    bool fit;

    explicit Fours(size_t inner) : fit(inner % 4 == 0) {
    }
    void look_at(const void *array, KernelCudaType type) {
        fit = fit && (uintptr_t)array % (4 * kernel_cuda_type_bytes(type)) == 0;
    }
};

template <int N> struct Number { static constexpr int value = N; };

/* Calls f with how many elements a thread takes, and how many such pieces n elements are, in the
 * type that they are counted in. */
template <typename F> KernelCudaFault in_pieces(const Fours &fours, size_t n, F f) {
    size_t pieces = fours.fit ? n / 4 : n;
    return with_index(pieces, [&](auto of) {
        using I = decltype(of);
        return fours.fit ? f(Number<4>(), (I)pieces) : f(Number<1>(), (I)pieces);
    });
}

/* ---- sums ----------------------------------------------------------------------------------- */

struct Sum {
    KernelCudaRows y, term[KERNEL_CUDA_MOST_TERMS];
    size_t n_terms, inner;
    bool ahead, less;
};

/* Row `row` of those that are written, of an outer part. */
__device__ size_t at_row(const KernelCudaRows &x, size_t outer, size_t row, size_t inner) {
    return (outer * x.rows + x.first + row) * inner;
}

template <int V, typename I>
__global__ void __launch_bounds__(THREADS) sum_kernel(const __grid_constant__ Sum s, I pieces) {
    I row_pieces = (I)(s.inner / V), rows = (I)s.y.n;
    FOR_WORK(I, i, pieces) {
        I all_row = i / row_pieces, outer = all_row / rows, row = all_row - outer * rows;
        size_t column = (size_t)(i - all_row * row_pieces) * V;
        float sum[V] = {};
        for (size_t t = 0; t < s.n_terms; t++) {
            const KernelCudaRows &x = s.term[t];
            size_t before = s.ahead ? 0 : s.y.n - x.n;
            if (row >= before && row - before < x.n) {
                float term[V], sign = s.less && t ? -1.0f : 1.0f;
                get<V>(term, x.data, x.type, at_row(x, outer, row - before, s.inner) + column);
#pragma unroll
                for (int v = 0; v < V; v++) {
                    sum[v] += sign * term[v];
                }
            }
        }
        put<V>(s.y.data, s.y.type, at_row(s.y, outer, row, s.inner) + column, sum);
    }
}

/* ---- heads ---------------------------------------------------------------------------------- */

/* A row of a head: [batch, rows, heads, dim], and where its number is in [batch, heads, rows]. */
template <typename I> struct HeadRow {
    I row, head, batch;

    __device__ HeadRow(I at, I rows, I heads) {
        I token = at / heads;
        batch = token / rows;
        head = at - token * heads;
        row = token - batch * rows;
    }
    __device__ size_t number(size_t heads, size_t rows, size_t of_row) const {
        return (batch * heads + head) * rows + of_row;
    }
};

template <int V, typename I>
__global__ void __launch_bounds__(THREADS)
    mul_kernel(void *y, const void *x, const void *column, I pieces, I rows, I heads, I row_pieces,
               KernelCudaType type) {
    FOR_WORK(I, i, pieces) {
        HeadRow<I> r(i / row_pieces, rows, heads);
        float factor = load1(column, type, r.number(heads, rows, r.row)), z[V];
        get<V>(z, x, type, (size_t)i * V);
#pragma unroll
        for (int v = 0; v < V; v++) {
            z[v] *= factor;
        }
        put<V>(y, type, (size_t)i * V, z);
    }
}

template <int V, typename I>
__global__ void __launch_bounds__(THREADS)
    cast_kernel(void *y, KernelCudaType y_type, const void *x, KernelCudaType x_type, I pieces,
                I heads, I seq, I row_pieces) {
    FOR_WORK(I, i, pieces) {
        I all_row = i / row_pieces;
        HeadRow<I> r(all_row, seq, heads);
        size_t from = r.number(heads, seq, r.row) * row_pieces + (i - all_row * row_pieces);
        float z[V];
        get<V>(z, x, x_type, from * V);
        put<V>(y, y_type, (size_t)i * V, z);
    }
}

/* ---- turns ---------------------------------------------------------------------------------- */

__device__ float log_logistic(float x) { /* of large numbers of either sign, too */
    return fminf(x, 0.0f) - log1pf(expf(-fabsf(x)));
}

struct LogSigmoid {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = log_logistic(in[0]);
    }
};

template <int V, typename I>
__global__ void __launch_bounds__(THREADS)
    merge_kernel(void *y, float *lse, const void *out, const float *out_lse, const void *block,
                 const float *block_lse, I pieces, const __grid_constant__ KernelCudaMerge m) {
    I row_pieces = (I)(m.dim / V);
    size_t before = m.rows - m.block_rows;
    FOR_WORK(I, i, pieces) {
        I all_row = i / row_pieces, piece = i - all_row * row_pieces;
        HeadRow<I> r(all_row, (I)m.rows, (I)m.heads);
        size_t number = r.number(m.heads, m.rows, r.row);
        float sum = out_lse[number], z[V];
        get<V>(z, out, m.out_type, (size_t)i * V);
        if (r.row >= before) {
            size_t row = r.row - before;
            size_t at = (r.batch * m.block_rows + row) * m.heads + r.head;
            float more = block_lse[r.number(m.heads, m.block_rows, row)] - sum, other[V];
            float weight = 1.0f / (1.0f + expf(-more));
            get<V>(other, block, m.block_type, (at * row_pieces + piece) * V);
#pragma unroll
            for (int v = 0; v < V; v++) {
                z[v] -= weight * (z[v] - other[v]);
            }
            sum -= log_logistic(-more);
        }
        put<V>(y, m.y_type, (size_t)i * V, z);
        if (piece == 0) {
            lse[number] = sum;
        }
    }
}

} // namespace

KernelCudaFault kernel_cuda_sum_of_rows(KernelCuda *lane, const KernelCudaRows *y,
                                        const KernelCudaRows *terms, size_t n_terms, bool ahead,
                                        bool less, size_t outer, size_t inner) {
    Sum sum = {};
    Fours fours(inner);
    sum.y = *y;
    sum.n_terms = n_terms;
    sum.inner = inner;
    sum.ahead = ahead;
    sum.less = less;
    fours.look_at(y->data, y->type);
    for (size_t t = 0; t < n_terms; t++) {
        sum.term[t] = terms[t];
        fours.look_at(terms[t].data, terms[t].type);
    }
    return in_pieces(fours, outer * y->n * inner, [&](auto v, auto pieces) {
        return launch_for(lane, "sum_of_rows", pieces,
                          sum_kernel<decltype(v)::value, decltype(pieces)>, sum, pieces);
    });
}

KernelCudaFault kernel_cuda_mul_heads(KernelCuda *lane, void *y, const void *x, const void *column,
                                      size_t batch, size_t rows, size_t heads, size_t dim,
                                      KernelCudaType type) {
    Fours fours(dim);
    fours.look_at(y, type);
    fours.look_at(x, type);
    return in_pieces(fours, batch * rows * heads * dim, [&](auto v, auto pieces) {
        constexpr int V = decltype(v)::value;
        return launch_for(lane, "mul_heads", pieces, mul_kernel<V, decltype(pieces)>, y, x, column,
                          pieces, rows, heads, dim / V, type);
    });
}

KernelCudaFault kernel_cuda_log_sigmoid(KernelCuda *lane, void *y, const void *x, size_t n,
                                        KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return each<T, T, 1, 1>(lane, "log_sigmoid", {{(const T *)x}}, {{(T *)y}}, n, LogSigmoid{});
    });
}

KernelCudaFault kernel_cuda_cast_heads(KernelCuda *lane, void *y, KernelCudaType y_type,
                                       const void *x, KernelCudaType x_type, size_t batch,
                                       size_t heads, size_t seq, size_t dim) {
    Fours fours(dim);
    fours.look_at(y, y_type);
    fours.look_at(x, x_type);
    return in_pieces(fours, batch * heads * seq * dim, [&](auto v, auto pieces) {
        constexpr int V = decltype(v)::value;
        return launch_for(lane, "cast_heads", pieces, cast_kernel<V, decltype(pieces)>, y, y_type,
                          x, x_type, pieces, heads, seq, dim / V);
    });
}

KernelCudaFault kernel_cuda_merge_turn(KernelCuda *lane, void *y, float *lse, const void *out,
                                       const float *out_lse, const void *block,
                                       const float *block_lse, const KernelCudaMerge *m) {
    Fours fours(m->dim);
    fours.look_at(y, m->y_type);
    fours.look_at(out, m->out_type);
    fours.look_at(block, m->block_type);
    return in_pieces(fours, m->batch * m->rows * m->heads * m->dim, [&](auto v, auto pieces) {
        return launch_for(lane, "merge_turn", pieces,
                          merge_kernel<decltype(v)::value, decltype(pieces)>, y, lse, out, out_lse,
                          block, block_lse, pieces, *m);
    });
}
