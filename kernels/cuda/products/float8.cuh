/* kernels/cuda/products/float8.cuh - sources of float8 (float8.h) as kernels read them; for .cu
 * files of this folder only.
 */
#pragma once
#include "kernels/cuda/each.cuh"
#include "kernels/cuda/products/float8.h"

namespace cu {

static inline __device__ uint32_t float_bits(float x) {
    return __float_as_uint(x);
}
static inline __device__ float float_from_bits(uint32_t bits) {
    return __uint_as_float(bits);
}

#define FLOAT8_INLINE static inline __device__
#include "kernels/float8-bits.h"

enum {
    PIECE = 8, /* numbers that a thread reads at a time */
};

enum Made {
    AS_IT_IS,
    BY_NORM,
    BY_SWIGLU
};

/* V numbers of a row as they lie, with what they are multiplied by. */
template <typename T, int V> struct Taken {
    Raw<V, T> x, more;
    float rstd;
};

/* What the kernels take of a source. */
template <typename T_, Made MADE> struct Numbers {
    typedef T_ T;
    /* At least, of a multiprocessor; more would leave too few registers for two arrays. */
    static constexpr int BLOCKS = MADE == BY_SWIGLU ? 3 : 4;
    const T *x, *up, *weight;
    const float *rstd;
    size_t rows, cols;
    template <int V> __device__ Taken<T, V> take(size_t i, size_t row, size_t col) const {
        Taken<T, V> taken = {};
        taken.x = load_raw<V>(x + i);
        if (MADE != AS_IT_IS) {
            taken.more = load_raw<V>(MADE == BY_NORM ? weight + col : up + i);
        }
        if (MADE == BY_NORM) {
            taken.rstd = rstd[row];
        }
        return taken;
    }
    template <int V> __device__ Taken<T, V> take(size_t row, size_t col) const {
        return take<V>(row * cols + col, row, col);
    }
    template <int V>
    __device__ Taken<T, V> take(size_t i) const { /* only a norm asks where it is */
        size_t row = MADE == BY_NORM ? i / cols : 0;
        return take<V>(i, row, i - row * cols);
    }
    template <int V> __device__ void make(float (&z)[V], const Taken<T, V> &taken) const {
        float more[V];
        widen_raw(z, taken.x);
        widen_raw(more, taken.more);
#pragma unroll
        for (int v = 0; v < V; v++) {
            z[v] = MADE == BY_NORM     ? z[v] * (taken.rstd * more[v])
                   : MADE == BY_SWIGLU ? __fdividef(z[v], 1 + expf(-z[v])) * more[v]
                                       : z[v];
        }
    }
};

template <typename T, Made MADE>
static inline Numbers<T, MADE> numbers_of(const KernelCudaFloat8Source *s) {
    return {(const T *)s->x, (const T *)s->up, (const T *)s->weight, s->rstd, s->rows, s->cols};
}

/* f is called with what a source holds. */
template <typename F>
static inline KernelCudaFault with_numbers(const KernelCudaFloat8Source *s, F f) {
    return with_type(s->type, [=](auto zero) {
        typedef decltype(zero) T;
        return s->up     ? f(numbers_of<T, BY_SWIGLU>(s))
               : s->rstd ? f(numbers_of<T, BY_NORM>(s))
                         : f(numbers_of<T, AS_IT_IS>(s));
    });
}

/* Pieces that a thread has asked for: with so many blocks a multiprocessor has 32 KB under way, of
 * two arrays 48. */
template <typename N> constexpr int AT_ONCE = TURNS_OF<PIECE *(int)sizeof(typename N::T)>;

/* Whether a source goes PIECE numbers at a time. */
static inline bool in_whole_pieces(const KernelCudaFloat8Source *s) {
    uintptr_t all = (uintptr_t)s->x | (uintptr_t)s->up | (uintptr_t)s->weight;
    return s->cols % PIECE == 0 && all % 16 == 0;
}

/* Of n magnitudes, what casts multiply by, or its inverse, which products multiply by
 * (float8-scale.cu). */
KernelCudaFault of_magnitudes(KernelCuda *lane, float *out, KernelCudaFloat8Scale magnitudes,
                              size_t n, KernelCudaFloat8 to, bool to_power, bool inverse);

} // namespace cu
