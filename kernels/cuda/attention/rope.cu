/* kernels/cuda/attention/rope.cu - see rope.h. Bound: memory; tables come from cache. */
#include "kernels/cuda/attention/rope.h"

#include <algorithm>

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

/* Where a head of x begins, of rows of heads of tokens: `stride` elements from token to token,
 * `head` from head to head. */
template <typename I> __device__ size_t head_in_row(I row, I heads, size_t stride, size_t head) {
    I token = row / heads;
    return token * stride + (row - token * heads) * head;
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
                  size_t head, I seq, I half, bool back) {
    I pieces = half / V;
    FOR_WORK(I, i, n) {
        I row = i / pieces, token = row / heads, j = (i - row * pieces) * V;
        size_t at = (size_t)row * 2 * half + j, table = (size_t)(token % seq) * 2 * half + j;
        size_t from = token * stride + (row - token * heads) * head + j;
        float low[V], high[V], c0[V], c1[V], s0[V], s1[V];
        load<V>(low, x + from);
        load<V>(high, x + from + half);
        load<V>(c0, cosines + table);
        load<V>(c1, cosines + table + half);
        load<V>(s0, sines + table);
        load<V>(s1, sines + table + half);
#pragma unroll
        for (int v = 0; v < V; v++) {
            float a = low[v], b = high[v];
            low[v] = back ? a * c0[v] + b * s1[v] : a * c0[v] - b * s0[v];
            high[v] = back ? b * c1[v] - a * s0[v] : b * c1[v] + a * s1[v];
        }
        store<V>(y + at, low);
        store<V>(y + at + half, high);
    }
}

/* ---- its pieces ----------------------------------------------------------------------------- */

/* n pieces of V elements. */
template <typename T, int V, typename I>
__global__ void __launch_bounds__(THREADS)
    negate_half_kernel(T *y, const T *x, I n, I half, I from, I heads, size_t stride) {
    I pieces = half / V;
    FOR_WORK(I, i, n) {
        I row = i / pieces, j = (i - row * pieces) * V;
        float z[V];
        load<V>(z, x + head_in_row(row, heads, stride, 2 * (size_t)half) + from + j);
#pragma unroll
        for (int v = 0; v < V; v++) {
            z[v] = -z[v];
        }
        store<V>(y + (size_t)i * V, z);
    }
}

/* half and stride count numbers of the type that is moved. */
template <typename T, typename I>
__global__ void __launch_bounds__(THREADS)
    join_halves_kernel(T *y, const T *lower, const T *x, I n, I half, I heads, size_t stride) {
    FOR_WORK(I, i, n) {
        I row = i / (2 * half), j = i - row * (2 * half);
        y[i] = j < half ? lower[(size_t)row * half + j]
                        : x[head_in_row(row, heads, stride, 2 * (size_t)half) + j - half];
    }
}

/* Rows that share a position: `heads` neighbours, or if they lie apart one after each seq rows. n
 * pieces of V elements. */
template <typename Y, typename T, typename C, int V, typename I>
__global__ void __launch_bounds__(THREADS)
    table_mul_kernel(Y *y, const T *x, const C *table, I n, I heads, size_t stride, size_t head,
                     I dim, I seq) {
    I pieces = dim / V;
    FOR_WORK(I, i, n) {
        I row = i / pieces, j = (i - row * pieces) * V, token = row / heads;
        float z[V], by[V];
        load<V>(z, x + token * stride + (row - token * heads) * head + j);
        load<V>(by, table + (size_t)(token % seq) * dim + j);
#pragma unroll
        for (int v = 0; v < V; v++) {
            z[v] *= by[v];
        }
        store<V>(y + (size_t)i * V, z);
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

/* Two complex numbers of 16 bytes, or one, whose parts lie anyhow. */
template <int V> __device__ void load_numbers(float (&x)[V], const float *at) {
    if constexpr (V == 4) {
        load<V>(x, at);
    } else {
        x[0] = at[0];
        x[1] = at[1];
    }
}
template <int V> __device__ void store_numbers(float *at, const float (&x)[V]) {
    if constexpr (V == 4) {
        store<V>(at, x);
    } else {
        at[0] = x[0];
        at[1] = x[1];
    }
}

/* n pieces of V elements, half as many numbers. */
template <int V, typename I>
__global__ void __launch_bounds__(THREADS)
    turn_kernel(float *y, const float *x, const float *turns, I n, I heads, size_t stride,
                size_t head, I dim, I seq) {
    I pieces = dim / V;
    FOR_WORK(I, i, n) {
        I row = i / pieces, j = (i - row * pieces) * V;
        float z[V], by[V];
        load_numbers<V>(z, x + head_in_row(row, heads, stride, head) + j);
        load_numbers<V>(by, turns + (size_t)(row / heads % seq) * dim + j);
#pragma unroll
        for (int v = 0; v < V; v += 2) {
            float real = z[v], imaginary = z[v + 1];
            z[v] = real * by[v] - imaginary * by[v + 1];
            z[v + 1] = real * by[v + 1] + imaginary * by[v];
        }
        store_numbers<V>(y + (size_t)i * V, z);
    }
}

template <int V, typename I>
__global__ void __launch_bounds__(THREADS) conjugate_kernel(float *y, const float *x, I n) {
    FOR_WORK(I, i, n) {
        float z[V];
        load_numbers<V>(z, x + (size_t)i * V);
#pragma unroll
        for (int v = 1; v < V; v += 2) {
            z[v] = -z[v];
        }
        store_numbers<V>(y + (size_t)i * V, z);
    }
}

size_t head_of(const KernelCudaRope *r) {
    return r->head ? r->head : r->dim;
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
                      n, r->heads, r->stride, head_of(r), r->seq, half, back);
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
            bool whole = (rope->dim / 2 | rope->stride | head_of(rope)) % V == 0 && aligned(y) &&
                         aligned(x) && aligned(cos_table) && aligned(sin_table);
            return whole ? rotate<T, C, V>(lane, y, x, cos_table, sin_table, rope, back)
                         : rotate<T, C, 1>(lane, y, x, cos_table, sin_table, rope, back);
        });
    });
}

KernelCudaFault kernel_cuda_negate_half(KernelCuda *lane, void *y, const void *x, size_t rows,
                                        size_t half, size_t from, size_t heads, size_t stride,
                                        KernelCudaType type) {
    size_t n = rows * half;
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return in_pieces<VECTOR<T>>(
            half | from | stride, (uintptr_t)y | (uintptr_t)x, n, [&](auto count, auto index) {
                constexpr int V = decltype(count)::value;
                return launch_for(lane, "negate_half", n / V,
                                  negate_half_kernel<T, V, decltype(index)>, (T *)y, (const T *)x,
                                  n / V, half, from, heads, stride);
            });
    });
}

KernelCudaFault kernel_cuda_join_halves(KernelCuda *lane, void *y, const void *lower, const void *x,
                                        size_t rows, size_t half, size_t heads, size_t stride,
                                        KernelCudaType type) {
    uintptr_t all = (uintptr_t)y | (uintptr_t)lower | (uintptr_t)x |
                    (half | stride) * kernel_cuda_type_bytes(type);
    return with_unit(type, all, [&](auto unit, size_t per) {
        size_t n = rows * 2 * half / per;
        return with_index(n, [&](auto index) {
            using U = decltype(unit);
            return launch_for(lane, "join_halves", n, join_halves_kernel<U, decltype(index)>,
                              (U *)y, (const U *)lower, (const U *)x, n, half / per, heads,
                              stride / per);
        });
    });
}

template <typename Y, typename T, typename C>
static KernelCudaFault table_mul(KernelCuda *lane, Y *y, const T *x, const C *table,
                                 const KernelCudaRope *rope, bool apart) {
    size_t n = rope->tokens * rope->heads * rope->dim, dim = rope->dim, seq = rope->seq;
    size_t heads = apart ? 1 : rope->heads, stride = apart ? rope->dim : rope->stride;
    size_t head = head_of(rope);
    return in_pieces<VECTOR<T, C>>(
        dim | stride | head, (uintptr_t)y | (uintptr_t)x | (uintptr_t)table, n,
        [&](auto count, auto index) {
            constexpr int V = decltype(count)::value;
            return launch_for(lane, "table_mul", n / V,
                              table_mul_kernel<Y, T, C, V, decltype(index)>, y, x, table, n / V,
                              heads, stride, head, dim, seq);
        });
}

KernelCudaFault kernel_cuda_table_mul(KernelCuda *lane, void *y, const void *x, const void *table,
                                      const KernelCudaRope *rope, bool apart) {
    bool is_wide = rope->wide && rope->type != KERNEL_CUDA_F32;
    if (is_wide && rope->table_type != KERNEL_CUDA_F32) {
        return kernel_cuda_fault("table_mul: what is made in fp32 takes a table in fp32");
    }
    return with_type(rope->type, [&](auto t) {
        using T = decltype(t);
        if (is_wide) {
            return table_mul(lane, (float *)y, (const T *)x, (const float *)table, rope, apart);
        }
        return with_type(rope->table_type, [&](auto c) {
            return table_mul(lane, (T *)y, (const T *)x, (const decltype(c) *)table, rope, apart);
        });
    });
}

KernelCudaFault kernel_cuda_turn_table(KernelCuda *lane, float *turns, size_t seq, size_t dim,
                                       double base) {
    return launch(lane, "turn_table", turn_table_kernel, dim3(grid_for(lane, seq * dim / 2)),
                  dim3(THREADS), 0, turns, seq, dim, base);
}

/* Likewise as in_pieces(), of complex numbers: two, or one. */
template <typename F>
static KernelCudaFault in_numbers(size_t steps, uintptr_t addresses, size_t n, F f) {
    if (steps % 4 == 0 && addresses % 16 == 0) {
        return with_index(n, [&](auto index) { return f(Count<4>(), index); });
    }
    return with_index(n, [&](auto index) { return f(Count<2>(), index); });
}

KernelCudaFault kernel_cuda_turn(KernelCuda *lane, float *y, const float *x, const float *turns,
                                 const KernelCudaRope *rope) {
    size_t n = rope->tokens * rope->heads * rope->dim, head = head_of(rope);
    return in_numbers(
        rope->dim | rope->stride | head, (uintptr_t)y | (uintptr_t)x | (uintptr_t)turns, n,
        [&](auto count, auto index) {
            constexpr int V = decltype(count)::value;
            return launch_for(lane, "turn", n / V, turn_kernel<V, decltype(index)>, y, x, turns,
                              n / V, rope->heads, rope->stride, head, rope->dim, rope->seq);
        });
}

KernelCudaFault kernel_cuda_conjugate(KernelCuda *lane, float *y, const float *x, size_t n) {
    return in_numbers(n, (uintptr_t)y | (uintptr_t)x, n, [&](auto count, auto index) {
        constexpr int V = decltype(count)::value;
        return launch_for(lane, "conjugate", n / V, conjugate_kernel<V, decltype(index)>, y, x,
                          n / V);
    });
}
