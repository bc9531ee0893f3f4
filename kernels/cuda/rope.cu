/* kernels/cuda/rope.cu - see rope.h. Bound: memory; tables come from cache. */
#include "kernels/cuda/rope.h"

#include <algorithm>

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

/* Where a head of x begins. */
__device__ size_t head_in_row(size_t row, size_t heads, size_t stride, size_t dim) {
    return row / heads * stride + row % heads * dim;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    tables_kernel(T *cosines, T *sines, size_t seq, size_t dim, double base, size_t first) {
    size_t half = dim / 2;
    FOR_WORK(size_t, i, seq * half) {
        size_t s = i / half, j = i % half;
        double angle = (double)(first + s) * pow(base, -2.0 * (double)j / (double)dim);
        float c = (float)cos(angle), d = (float)sin(angle);
        narrow(&cosines[s * dim + j], c);
        narrow(&cosines[s * dim + j + half], c);
        narrow(&sines[s * dim + j], d);
        narrow(&sines[s * dim + j + half], d);
    }
}

/* Both elements of V pairs are read before either is written, so y may be x.
 *     y[j]     = x[j]     cos[j]     - x[j + h] sin[j]
 *     y[j + h] = x[j + h] cos[j + h] + x[j]     sin[j + h]
 * back: sin changes places and sign. */
template <typename T, typename C, int V, typename I>
__global__ void __launch_bounds__(THREADS)
    rotate_kernel(T *y, const T *x, const C *cosines, const C *sines, I n, I heads, size_t stride,
                  I seq, I half, bool back) {
    I pieces = half / V;
    FOR_WORK(I, i, n) {
        I row = i / pieces, token = row / heads, j = (i - row * pieces) * V;
        size_t at = (size_t)row * 2 * half + j, table = (size_t)(token % seq) * 2 * half + j;
        size_t from = token * stride + (size_t)(row - token * heads) * 2 * half + j;
        float low[V], high[V], c0[V], c1[V], s0[V], s1[V];
        if constexpr (V > 1) {
            load<V>(low, x + from);
            load<V>(high, x + from + half);
            load<V>(c0, cosines + table);
            load<V>(c1, cosines + table + half);
            load<V>(s0, sines + table);
            load<V>(s1, sines + table + half);
        } else {
            low[0] = widen(x[from]);
            high[0] = widen(x[from + half]);
            c0[0] = widen(cosines[table]);
            c1[0] = widen(cosines[table + half]);
            s0[0] = widen(sines[table]);
            s1[0] = widen(sines[table + half]);
        }
#pragma unroll
        for (int v = 0; v < V; v++) {
            float a = low[v], b = high[v];
            low[v] = back ? a * c0[v] + b * s1[v] : a * c0[v] - b * s0[v];
            high[v] = back ? b * c1[v] - a * s0[v] : b * c1[v] + a * s1[v];
        }
        if constexpr (V > 1) {
            store<V>(y + at, low);
            store<V>(y + at + half, high);
        } else {
            narrow(&y[at], low[0]);
            narrow(&y[at + half], high[0]);
        }
    }
}

/* ---- its pieces ----------------------------------------------------------------------------- */

template <typename T>
__global__ void __launch_bounds__(THREADS)
    negate_half_kernel(T *y, const T *x, size_t rows, size_t half, size_t from, size_t heads,
                       size_t stride) {
    FOR_WORK(size_t, i, rows * half) {
        size_t at = head_in_row(i / half, heads, stride, 2 * half);
        narrow(&y[i], -widen(x[at + from + i % half]));
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    join_halves_kernel(T *y, const T *lower, const T *x, size_t rows, size_t half, size_t heads,
                       size_t stride) {
    FOR_WORK(size_t, i, rows * 2 * half) {
        size_t row = i / (2 * half), j = i % (2 * half);
        y[i] = j < half ? lower[row * half + j]
                        : x[head_in_row(row, heads, stride, 2 * half) + j - half];
    }
}

/* Rows that share a position: `heads` neighbours, or if they lie apart one after each seq rows. */
template <typename T, typename C>
__global__ void __launch_bounds__(THREADS)
    table_mul_kernel(T *y, const T *x, const C *table, size_t rows, size_t heads, size_t stride,
                     size_t dim, size_t seq) {
    FOR_WORK(size_t, i, rows * dim) {
        size_t row = i / dim, j = i % dim;
        float by = widen(table[row / heads % seq * dim + j]);
        narrow(&y[i], widen(x[head_in_row(row, heads, stride, dim) + j]) * by);
    }
}

/* ---- neighbours as complex numbers ---------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
    turn_table_kernel(float *turns, size_t seq, size_t dim, double base) {
    size_t half = dim / 2;
    FOR_WORK(size_t, i, seq * half) {
        double angle = (double)(i / half) * pow(base, -2.0 * (double)(i % half) / (double)dim);
        turns[2 * i] = (float)cos(angle);
        turns[2 * i + 1] = (float)sin(angle);
    }
}

__global__ void __launch_bounds__(THREADS)
    turn_kernel(float *y, const float *x, const float *turns, size_t rows, size_t heads,
                size_t stride, size_t seq, size_t half) {
    FOR_WORK(size_t, i, rows * half) {
        size_t row = i / half, j = 2 * (i % half);
        const float *in = x + head_in_row(row, heads, stride, 2 * half) + j;
        const float *by = turns + row / heads % seq * 2 * half + j;
        float real = in[0], imaginary = in[1];
        y[2 * i] = real * by[0] - imaginary * by[1];
        y[2 * i + 1] = real * by[1] + imaginary * by[0];
    }
}

__global__ void __launch_bounds__(THREADS) conjugate_kernel(float *y, const float *x, size_t n) {
    FOR_WORK(size_t, i, n) {
        y[i] = i % 2 ? -x[i] : x[i];
    }
}

bool aligned(const void *at) {
    return (uintptr_t)at % 16 == 0;
}

template <typename T, typename C, int V>
KernelCudaFault rotate(KernelCuda *lane, void *y, const void *x, const void *cosines,
                       const void *sines, const KernelCudaRope *r, bool back) {
    size_t half = r->dim / 2, n = r->tokens * r->heads * half / V;
    return with_index(std::max({n, half, r->seq}), [&](auto index) {
        using I = decltype(index);
        return launch(lane, "rope", rotate_kernel<T, C, V, I>, dim3(grid_for(lane, n)),
                      dim3(THREADS), 0, (T *)y, (const T *)x, (const C *)cosines, (const C *)sines,
                      n, r->heads, r->stride, r->seq, half, back);
    });
}

} // namespace

KernelCudaFault kernel_cuda_rope_tables(KernelCuda *lane, void *cos_table, void *sin_table,
                                        size_t seq, size_t dim, double base, size_t first_position,
                                        KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "rope_tables", tables_kernel<T>, dim3(grid_for(lane, seq * dim / 2)),
                      dim3(THREADS), 0, (T *)cos_table, (T *)sin_table, seq, dim, base,
                      first_position);
    });
}

KernelCudaFault kernel_cuda_rope(KernelCuda *lane, void *y, const void *x, const void *cos_table,
                                 const void *sin_table, const KernelCudaRope *rope, bool back) {
    return with_type(rope->type, [&](auto t) {
        return with_type(rope->table_type, [&](auto c) {
            using T = decltype(t);
            using C = decltype(c);
            constexpr int V = VECTOR<T, C>;
            bool whole = rope->dim / 2 % V == 0 && rope->stride % V == 0 && aligned(y) &&
                         aligned(x) && aligned(cos_table) && aligned(sin_table);
            return whole ? rotate<T, C, V>(lane, y, x, cos_table, sin_table, rope, back)
                         : rotate<T, C, 1>(lane, y, x, cos_table, sin_table, rope, back);
        });
    });
}

KernelCudaFault kernel_cuda_negate_half(KernelCuda *lane, void *y, const void *x, size_t rows,
                                        size_t half, size_t from, size_t heads, size_t stride,
                                        KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "negate_half", negate_half_kernel<T>, dim3(grid_for(lane, rows * half)),
                      dim3(THREADS), 0, (T *)y, (const T *)x, rows, half, from, heads, stride);
    });
}

KernelCudaFault kernel_cuda_join_halves(KernelCuda *lane, void *y, const void *lower, const void *x,
                                        size_t rows, size_t half, size_t heads, size_t stride,
                                        KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "join_halves", join_halves_kernel<T>,
                      dim3(grid_for(lane, rows * 2 * half)), dim3(THREADS), 0, (T *)y,
                      (const T *)lower, (const T *)x, rows, half, heads, stride);
    });
}

KernelCudaFault kernel_cuda_table_mul(KernelCuda *lane, void *y, const void *x, const void *table,
                                      const KernelCudaRope *rope, bool apart) {
    size_t rows = rope->tokens * rope->heads;
    return with_type(rope->type, [&](auto t) {
        return with_type(rope->table_type, [&](auto c) {
            using T = decltype(t);
            using C = decltype(c);
            return launch(lane, "table_mul", table_mul_kernel<T, C>,
                          dim3(grid_for(lane, rows * rope->dim)), dim3(THREADS), 0, (T *)y,
                          (const T *)x, (const C *)table, rows, apart ? 1 : rope->heads,
                          apart ? rope->dim : rope->stride, rope->dim, rope->seq);
        });
    });
}

KernelCudaFault kernel_cuda_turn_table(KernelCuda *lane, float *turns, size_t seq, size_t dim,
                                       double base) {
    return launch(lane, "turn_table", turn_table_kernel, dim3(grid_for(lane, seq * dim / 2)),
                  dim3(THREADS), 0, turns, seq, dim, base);
}

KernelCudaFault kernel_cuda_turn(KernelCuda *lane, float *y, const float *x, const float *turns,
                                 const KernelCudaRope *rope) {
    size_t rows = rope->tokens * rope->heads, half = rope->dim / 2;
    return launch(lane, "turn", turn_kernel, dim3(grid_for(lane, rows * half)), dim3(THREADS), 0, y,
                  x, turns, rows, rope->heads, rope->stride, rope->seq, half);
}

KernelCudaFault kernel_cuda_conjugate(KernelCuda *lane, float *y, const float *x, size_t n) {
    return launch(lane, "conjugate", conjugate_kernel, dim3(grid_for(lane, n)), dim3(THREADS), 0, y,
                  x, n);
}
