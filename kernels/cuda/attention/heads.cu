/* kernels/cuda/attention/heads.cu - see heads.h. Bound: memory. Heads' numbers go 16 bytes a thread
 * where all of them lie so; masks and positions an element. Neighbours lie side by side.
 */
#include "kernels/cuda/attention/heads.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

enum {
    HEADS_AT_ONCE = 16, /* whose biases are 32 bytes of halves, as much as memory gives at a time */
    MOVES_AT_ONCE = 2,  /* of 16 bytes that a thread has asked for */
};

template <typename I> struct Shape { I batch, seq, heads, dim; };

/* Where the row of a head of a token begins, of `heads` heads. */
template <typename I>
__device__ size_t head_row(const Shape<I> &s, I token, I head, I heads, bool apart) {
    I b = token / s.seq;
    size_t row =
        apart ? ((size_t)b * heads + head) * s.seq + token % s.seq : (size_t)token * heads + head;
    return row * s.dim;
}

/* A row of tokens' heads, or of heads' tokens if they lie apart. */
template <typename I> struct Place { I token, head; };

template <typename I> __device__ Place<I> place_of(I row, I seq, I heads, bool apart) {
    I outer = row / (apart ? seq : heads), inner = row - outer * (apart ? seq : heads);
    if (!apart) {
        return Place<I>{outer, inner};
    }
    I batch = outer / heads;
    return Place<I>{batch * seq + inner, outer - batch * heads};
}

template <typename T, typename I>
__global__ void __launch_bounds__(THREADS)
    repeat_kernel(T *y, const T *x, Shape<I> s, I n, size_t row_stride, I repeats, bool apart) {
    for_work<MOVES_AT_ONCE>(
        n, /* in y's order */
        [&](I i) {
            I row = i / s.dim, j = i - row * s.dim;
            Place<I> at = place_of(row, s.seq, s.heads * repeats, apart);
            return x[at.token * row_stride + (size_t)(at.head / repeats) * s.dim + j];
        },
        [&](I i, const T &moved) { y[i] = moved; });
}

/* n pieces of V elements. */
template <typename T, int V, typename I>
__global__ void __launch_bounds__(THREADS)
    sum_kernel(T *y, const T *x, Shape<I> s, I n, I repeats, bool x_apart, bool y_apart) {
    I pieces = s.dim / V;
    FOR_WORK(I, i, n) {
        I row = i / pieces, j = (i - row * pieces) * V;
        Place<I> at = place_of(row, s.seq, s.heads, y_apart);
        size_t from = head_row(s, at.token, at.head * repeats, s.heads * repeats, x_apart) + j;
        size_t step = x_apart ? (size_t)s.seq * s.dim : s.dim;
        float sum[V] = {};
#pragma unroll 4
        for (I r = 0; r < repeats; r++) {
            float z[V];
            load<V>(z, x + from + r * step);
#pragma unroll
            for (int v = 0; v < V; v++) {
                sum[v] += z[v];
            }
        }
        store<V>(y + (size_t)i * V, sum);
    }
}

template <typename T, typename I>
__global__ void __launch_bounds__(THREADS)
    heads_copy_kernel(T *y, const T *x, Shape<I> s, I n, size_t row_stride, bool back) {
    for_work<MOVES_AT_ONCE>(
        n,
        [&](I i) {
            I row = i / s.dim, j = i - row * s.dim;
            Place<I> at = place_of(row, s.seq, s.heads, !back);
            return back ? x[head_row(s, at.token, at.head, s.heads, true) + j]
                        : x[at.token * row_stride + (size_t)at.head * s.dim + j];
        },
        [&](I i, const T &moved) { y[i] = moved; });
}

/* ---- masks ---------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
    upper_mask_kernel(uint8_t *mask, const uint8_t *all, size_t rows, size_t cols) {
    FOR_WORK(size_t, i, rows * cols) {
        mask[i] = i % cols > i / cols ? all[i] : (uint8_t)0;
    }
}

/* Pieces of V elements; of more than one, inner is 1, and each has a byte of the mask. */
template <typename T, int V, typename I>
__global__ void __launch_bounds__(THREADS)
    masked_fill_kernel(T *y, const T *x, const uint8_t *mask, I pieces, I n, I inner, float value) {
    FOR_WORK(I, i, pieces) {
        I at = i * V;
        float z[V];
        uint8_t hides[V];
        load<V>(z, x + at);
        if constexpr (V > 1) {
            memcpy(hides, __builtin_assume_aligned(mask + at % n, V), V);
        } else {
            hides[0] = mask[at / inner % n];
        }
#pragma unroll
        for (int v = 0; v < V; v++) {
            z[v] = hides[v] ? value : z[v];
        }
        store<V>(y + at, z);
    }
}

__global__ void __launch_bounds__(THREADS)
    positive_kernel(uint8_t *mask, const int64_t *x, size_t n) {
    FOR_WORK(size_t, i, n) {
        mask[i] = x[i] > 0;
    }
}

/* ---- relative bias -------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
    distances_kernel(int64_t *distance, const int64_t *position, size_t n) {
    FOR_WORK(size_t, i, n * n) {
        distance[i] = position[i % n] - position[i / n];
    }
}

__global__ void __launch_bounds__(THREADS)
    absolute_kernel(int64_t *out, const int64_t *x, size_t n) {
    FOR_WORK(size_t, i, n) {
        out[i] = x[i] < 0 ? -x[i] : x[i];
    }
}

__global__ void __launch_bounds__(THREADS)
    at_most_kernel(int64_t *out, const int64_t *x, size_t n, int64_t limit) {
    FOR_WORK(size_t, i, n) {
        out[i] = x[i] < limit ? x[i] : limit;
    }
}

__global__ void __launch_bounds__(THREADS)
    compare_kernel(uint8_t *mask, const int64_t *position, const int64_t *index, size_t n,
                   size_t cols, bool later) {
    FOR_WORK(size_t, i, n) {
        mask[i] = (position[i % cols] > index[i / cols]) == later;
    }
}

__global__ void __launch_bounds__(THREADS)
    both_kernel(uint8_t *mask, const uint8_t *one, const uint8_t *other, size_t n, size_t n_one) {
    FOR_WORK(size_t, i, n) {
        mask[i] = one[i % n_one] & other[i];
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS) to_bias_kernel(T *y, const uint8_t *mask, const T *shown,
                                                          const T *hidden, size_t all, size_t n) {
    FOR_WORK(size_t, i, all) {
        y[i] = mask[i % n] ? *shown : *hidden;
    }
}

/* A position's biases of neighbouring heads lie side by side: a thread has HEADS_AT_ONCE of them in
 * registers, and takes them to each sequence, where neighbouring threads' numbers lie so. */
template <typename T, typename S>
__global__ void __launch_bounds__(THREADS, 4)
    bias_add_kernel(T *y, const S *x, const T *bias, size_t batch, size_t heads, size_t n) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    size_t first = (size_t)blockIdx.y * HEADS_AT_ONCE;
    unsigned here = (unsigned)min(heads - first, (size_t)HEADS_AT_ONCE);
    float by[HEADS_AT_ONCE];
    if (i >= n) {
        return;
    }
#pragma unroll
    for (unsigned h = 0; h < HEADS_AT_ONCE; h++) {
        by[h] = h < here ? widen(bias[i * heads + first + h]) : 0.0f;
    }
    for (size_t b = 0, at = first * n + i; b < batch; b++, at += heads * n) {
        const S *from = x + at;
        T *to = y + at;
        S raw[HEADS_AT_ONCE];
#pragma unroll
        for (unsigned h = 0; h < HEADS_AT_ONCE && h < here; h++, from += n) {
            raw[h] = *from;
        }
#pragma unroll
        for (unsigned h = 0; h < HEADS_AT_ONCE && h < here; h++, to += n) {
            narrow(to, widen(raw[h]) + by[h]);
        }
    }
}

/* What is moved: rows of heads' dims, inside rows that begin row_stride elements apart. */
uintptr_t moved(const KernelCudaHeads *h, size_t row_stride, const void *y, const void *x) {
    return (uintptr_t)y | (uintptr_t)x | (h->dim | row_stride) * kernel_cuda_type_bytes(h->type);
}

template <typename I> Shape<I> shape_of(const KernelCudaHeads *h, size_t per = 1) {
    return Shape<I>{(I)h->batch, (I)h->seq, (I)h->heads, (I)(h->dim / per)};
}

size_t elements_of(const KernelCudaHeads *h) {
    return h->batch * h->seq * h->heads * h->dim;
}

} // namespace

KernelCudaFault kernel_cuda_repeat_heads(KernelCuda *lane, void *y, const void *x,
                                         const KernelCudaHeads *heads, size_t row_stride,
                                         size_t repeats, bool apart) {
    return with_unit(heads->type, moved(heads, row_stride, y, x), [&](auto t, size_t per) {
        size_t n = elements_of(heads) / per * repeats;
        return with_index(n, [&](auto index) {
            using T = decltype(t);
            using I = decltype(index);
            return launch_for(lane, "repeat_heads", n, repeat_kernel<T, I>, (T *)y, (const T *)x,
                              shape_of<I>(heads, per), n, row_stride / per, repeats, apart);
        });
    });
}

KernelCudaFault kernel_cuda_sum_heads(KernelCuda *lane, void *y, const void *x,
                                      const KernelCudaHeads *heads, size_t repeats, bool x_apart,
                                      bool y_apart) {
    return with_type(heads->type, [&](auto t) {
        using T = decltype(t);
        return in_pieces<VECTOR<T>>(heads->dim, (uintptr_t)y | (uintptr_t)x, elements_of(heads),
                                    [&](auto count, auto index) {
                                        constexpr int V = decltype(count)::value;
                                        using I = decltype(index);
                                        size_t n = elements_of(heads) / V;
                                        return launch_for(lane, "sum_heads", n, sum_kernel<T, V, I>,
                                                          (T *)y, (const T *)x, shape_of<I>(heads),
                                                          n, repeats, x_apart, y_apart);
                                    });
    });
}

KernelCudaFault kernel_cuda_heads_copy(KernelCuda *lane, void *y, const void *x,
                                       const KernelCudaHeads *heads, size_t row_stride, bool back) {
    return with_unit(heads->type, moved(heads, row_stride, y, x), [&](auto t, size_t per) {
        size_t n = elements_of(heads) / per;
        return with_index(n, [&](auto index) {
            using T = decltype(t);
            using I = decltype(index);
            return launch_for(lane, "heads_copy", n, heads_copy_kernel<T, I>, (T *)y, (const T *)x,
                              shape_of<I>(heads, per), n, row_stride / per, back);
        });
    });
}

KernelCudaFault kernel_cuda_ones_mask(KernelCuda *lane, uint8_t *mask, size_t n) {
    return kernel_cuda_check("cudaMemsetAsync (ones_mask)",
                             cudaMemsetAsync(mask, 1, n, lane->stream));
}

KernelCudaFault kernel_cuda_upper_mask(KernelCuda *lane, uint8_t *mask, const uint8_t *all,
                                       size_t rows, size_t cols) {
    return launch_for(lane, "upper_mask", rows * cols, upper_mask_kernel, mask, all, rows, cols);
}

KernelCudaFault kernel_cuda_masked_fill(KernelCuda *lane, void *y, const void *x,
                                        const uint8_t *mask, size_t outer, size_t n, size_t inner,
                                        double value, KernelCudaType type) {
    size_t all = outer * n * inner;
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        constexpr int V = VECTOR<T>;
        bool whole = inner == 1 && n % V == 0 && ((uintptr_t)y | (uintptr_t)x) % 16 == 0 &&
                     (uintptr_t)mask % V == 0;
        return with_index(all, [&](auto index) {
            using I = decltype(index);
            return launch_for(lane, "masked_fill", whole ? all / V : all,
                              whole ? masked_fill_kernel<T, V, I> : masked_fill_kernel<T, 1, I>,
                              (T *)y, (const T *)x, mask, whole ? all / V : all, n, inner,
                              (float)value);
        });
    });
}

KernelCudaFault kernel_cuda_compare_mask(KernelCuda *lane, uint8_t *mask, const int64_t *position,
                                         const int64_t *index, size_t rows, size_t cols,
                                         bool later) {
    return launch_for(lane, later ? "later_mask" : "upto_mask", rows * cols, compare_kernel, mask,
                      position, index, rows * cols, cols, later);
}

KernelCudaFault kernel_cuda_both_mask(KernelCuda *lane, uint8_t *mask, const uint8_t *one,
                                      const uint8_t *other, size_t n, size_t n_one) {
    return launch_for(lane, "both_mask", n, both_kernel, mask, one, other, n, n_one);
}

KernelCudaFault kernel_cuda_mask_to_bias(KernelCuda *lane, void *y, const uint8_t *mask,
                                         const void *shown, const void *hidden, size_t n,
                                         size_t batch, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch_for(lane, "mask_to_bias", n * batch, to_bias_kernel<T>, (T *)y, mask,
                          (const T *)shown, (const T *)hidden, n * batch, n);
    });
}

KernelCudaFault kernel_cuda_distances(KernelCuda *lane, int64_t *distance, const int64_t *position,
                                      size_t n) {
    return launch_for(lane, "distances", n * n, distances_kernel, distance, position, n);
}

KernelCudaFault kernel_cuda_absolute_i64(KernelCuda *lane, int64_t *out, const int64_t *x,
                                         size_t n) {
    return launch_for(lane, "absolute", n, absolute_kernel, out, x, n);
}

KernelCudaFault kernel_cuda_at_most_i64(KernelCuda *lane, int64_t *out, const int64_t *x, size_t n,
                                        int64_t limit) {
    return launch_for(lane, "clamp", n, at_most_kernel, out, x, n, limit);
}

KernelCudaFault kernel_cuda_positive_mask(KernelCuda *lane, uint8_t *mask, const int64_t *x,
                                          size_t n) {
    return launch_for(lane, "positive_mask", n, positive_kernel, mask, x, n);
}

KernelCudaFault kernel_cuda_bias_add(KernelCuda *lane, void *y, const void *x,
                                     KernelCudaType x_type, const void *bias, size_t batch,
                                     size_t heads, size_t n, KernelCudaType type) {
    if (!batch || !heads || !n) {
        return NULL;
    }
    return with_narrower(type, x_type, [&](auto t, auto s) {
        using T = decltype(t);
        using S = decltype(s);
        return launch(
            lane, "bias_add", bias_add_kernel<T, S>,
            dim3(block_each(divide_up(n, THREADS)), (unsigned)divide_up(heads, HEADS_AT_ONCE)),
            dim3(THREADS), 0, (T *)y, (const S *)x, (const T *)bias, batch, heads, n);
    });
}
