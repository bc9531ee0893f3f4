/* kernels/cuda/rows/norm-held.cuh - backward of a norm's row that the threads of a block hold in
 * registers; for .cu files of this folder only. What is computed stands in norm-backward.cu.
 */
#pragma once
#include "kernels/cuda/rows/norm.cuh"

namespace cu {

/* What backward does, whoever holds its rows. */
template <typename T, typename S, typename W> struct Backward {
    T *dx;
    float *dweight, *dbias; /* parts: [blocks, width]; may be NULL */
    const T *dsum;
    const S *dy;
    const T *x;
    const W *weight;
    const float *mean, *rstd;
    size_t rows, width, x_row;
};

/* Pieces a thread has registers for: those of two types are larger. */
template <typename T, typename S> constexpr int MOST_ITEMS = sizeof(T) == sizeof(S) ? ITEMS : 2;

/* ---- sums of columns ------------------------------------------------------------------------ */

/* Sums of a thread's own columns, of KINDS kinds (of dweight, dbias): in registers or, where those
 * would not hold them, in shared memory. */
template <int V, int N, int KINDS, bool SHARED> struct Sums {
    float x[KINDS][N][V] = {};
    __device__ void add(int kind, int item, const float (&by)[V]) {
#pragma unroll
        for (int v = 0; v < V; v++) {
            x[kind][item][v] += by[v];
        }
    }
    __device__ void get(float (&sum)[V], int kind, int item) const {
#pragma unroll
        for (int v = 0; v < V; v++) {
            sum[v] = x[kind][item][v];
        }
    }
};

template <int V, int N, int KINDS> struct Sums<V, N, KINDS, true> {
    static __device__ float4 *at(int kind, int item, int four) {
        float4 *all = shared_memory<float4>();
        return &all[((kind * N + item) * (V / 4) + four) * blockDim.x + threadIdx.x];
    }
    __device__ Sums() {
#pragma unroll
        for (int i = 0; i < KINDS * N * V / 4; i++) {
            *at(0, 0, i) = make_float4(0, 0, 0, 0);
        }
    }
    __device__ void add(int kind, int item, const float (&by)[V]) {
#pragma unroll
        for (int f = 0; f < V / 4; f++) {
            float4 sum = *at(kind, item, f);
            *at(kind, item, f) = make_float4(sum.x + by[4 * f], sum.y + by[4 * f + 1],
                                             sum.z + by[4 * f + 2], sum.w + by[4 * f + 3]);
        }
    }
    __device__ void get(float (&sum)[V], int kind, int item) const {
#pragma unroll
        for (int f = 0; f < V / 4; f++) {
            float4 four = *at(kind, item, f);
            sum[4 * f] = four.x;
            sum[4 * f + 1] = four.y;
            sum[4 * f + 2] = four.z;
            sum[4 * f + 3] = four.w;
        }
    }
};

/* ---- a row ---------------------------------------------------------------------------------- */

template <typename T, typename S, bool CENTERED, int N> struct BackwardSums {
    static constexpr int KINDS = CENTERED ? 2 : 1, V = VECTOR<T, S>;
    static constexpr bool SHARED = N * V > 16; /* elements a thread */
    typedef Sums<V, N, KINDS, SHARED> Of;
    static constexpr size_t shared_bytes(unsigned threads) {
        return SHARED ? (size_t)KINDS * N * V * threads * sizeof(float) : 0;
    }
};

/* Of x in the lower 16 lanes, of y in the others: half the exchanges that two sums would take. */
static __device__ float halves_of_warp(float x, float y) {
    bool upper = threadIdx.x & LANES / 2;
    return (upper ? y : x) + __shfl_xor_sync(0xffffffffu, upper ? x : y, LANES / 2);
}

static __device__ float half_warp_sum(float x) {
#pragma unroll
    for (int bits = LANES / 4; bits > 0; bits /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, bits);
    }
    return x;
}

/* Two sums over the block, for all threads. Each turn has room of its own, and so has the one
 * before it: a barrier a turn suffices. */
static __device__ void two_row_sums(float *x, float *y, unsigned turn) {
    BLOCK_SHARED(float[2][LANES], parts); /* 16 warps: those of x, then those of y */
    float both = half_warp_sum(halves_of_warp(*x, *y));
    float *mine = parts[turn & 1];
    unsigned lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    unsigned half = LANES / 2, warps = blockDim.x / LANES;
    if (lane % half == 0) {
        mine[lane + warp] = both;
    }
    __syncthreads();
    both = half_warp_sum(lane % half < warps ? mine[lane] : 0.0f);
    *x = __shfl_sync(0xffffffffu, both, 0);
    *y = __shfl_sync(0xffffffffu, both, LANES / 2);
}

/* What this thread reads of a row, as it lies. */
template <typename T, typename S, typename W, bool CENTERED, int N> struct BackwardRow {
    using H = Held<T, S, W>;
    typename H::Narrow dy[N];
    typename H::Piece x[N];
    float mean, rstd;
    /* `at`: this thread's first element of it, in dy. */
    __device__ void get(const Backward<T, S, W> &b, size_t row, size_t at) {
        const T *from = b.x + row * b.x_row + H::column(0);
        mean = CENTERED ? b.mean[row] : 0.0f;
        rstd = b.rstd[row];
#pragma unroll
        for (int k = 0; k < N; k++) {
            if (H::has(k, b.width)) {
                dy[k] = H::get(b.dy + at + H::offset(k));
                x[k] = H::get(from + H::offset(k));
            }
        }
    }
};

/* What a thread holds while its block goes from row to row. */
template <typename T, typename S, typename W, bool CENTERED, int N> struct BackwardHeld {
    using H = Held<T, S, W>;
    static constexpr int V = H::V;
    static constexpr bool KEEPS = sizeof(typename H::Piece[N]) < ITEMS * 16; /* beside two rows */
    typename BackwardSums<T, S, CENTERED, N>::Of sums;
    typename H::Weight w[N];
    typename H::Piece more[N];
    BackwardRow<T, S, W, CENTERED, N> now, next;

    static __device__ typename H::Weight get_weight(const Backward<T, S, W> &b, int k) {
        return b.weight ? H::get(b.weight + H::column(k)) : H::template all<W>(1);
    }

    __device__ void begin(const Backward<T, S, W> &b) {
#pragma unroll
        for (int k = 0; KEEPS && k < N; k++) {
            if (H::has(k, b.width)) {
                w[k] = get_weight(b, k);
            }
            more[k] = H::template all<T>(0);
        }
    }

    /* What else flows into the row, before it is waited for. */
    __device__ void get_more(const Backward<T, S, W> &b, size_t start) {
        if (KEEPS && b.dsum && b.dx) {
#pragma unroll
            for (int k = 0; k < N; k++) {
                if (H::has(k, b.width)) {
                    more[k] = H::get(b.dsum + start + H::offset(k));
                }
            }
        }
    }

    /* The row's part in the sums of columns, and this thread's in the row's sums. */
    __device__ void add_up(const Backward<T, S, W> &b, float *sum_g, float *sum_gh) {
#pragma unroll
        for (int k = 0; k < N; k++) {
            if (H::has(k, b.width)) {
                float g[V], h[V], weight[V];
                widen_raw(g, now.dy[k]);
                widen_raw(h, now.x[k]);
                widen_raw(weight, KEEPS ? w[k] : get_weight(b, k));
                if (CENTERED) {
                    sums.add(1, k, g);
                }
#pragma unroll
                for (int v = 0; v < V; v++) {
                    h[v] = (h[v] - now.mean) * now.rstd;
                    *sum_g += g[v] * weight[v];
                    h[v] *= g[v]; /* dweight's part */
                    *sum_gh += h[v] * weight[v];
                }
                sums.add(0, k, h);
            }
        }
    }

    /* dx = rstd g + (off - h slope), with h = (x - mean) rstd */
    __device__ void put(const Backward<T, S, W> &b, size_t start, float off, float slope) {
#pragma unroll
        for (int k = 0; k < N; k++) {
            if (b.dx && H::has(k, b.width)) {
                float g[V], h[V], weight[V], dx[V];
                widen_raw(g, now.dy[k]);
                widen_raw(h, now.x[k]);
                widen_raw(weight, KEEPS ? w[k] : get_weight(b, k));
                if (!KEEPS) {
                    more[k] =
                        b.dsum ? H::get(b.dsum + start + H::offset(k)) : H::template all<T>(0);
                }
                widen_raw(dx, more[k]);
#pragma unroll
                for (int v = 0; v < V; v++) {
                    dx[v] += now.rstd * (g[v] * weight[v]) + (off - (h[v] - now.mean) * slope);
                }
                store<V>(b.dx + start + H::offset(k), dx);
            }
        }
    }

    __device__ void put_sums(const Backward<T, S, W> &b) {
#pragma unroll
        for (int k = 0; k < N; k++) {
            if (H::has(k, b.width)) {
                size_t at = blockIdx.x * b.width + H::column(k);
                float sum[V];
                if (b.dweight) {
                    sums.get(sum, 0, k);
                    store<V>(b.dweight + at, sum);
                }
                if (CENTERED && b.dbias) {
                    sums.get(sum, CENTERED, k);
                    store<V>(b.dbias + at, sum);
                }
            }
        }
    }
};

} // namespace cu
