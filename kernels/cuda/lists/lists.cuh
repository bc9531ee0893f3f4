/* kernels/cuda/lists/lists.cuh - lists of tensors (optimizer.h) and how a launch deals them out;
 * for .cu files of this folder only.
 *
 * A launch takes up to TENSORS tensors, named in its arguments, and blocks are dealt out to them by
 * their elements: one large flat shard or many small parameters fill the device alike. Types are
 * looked at when the kernel runs, four elements at a time, so one kernel serves every mixture.
 */
#pragma once
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/lists/optimizer.h"

namespace cu {

enum {
    TENSORS = 48,  /* of one launch: 2.7 KB of its arguments */
    CHUNK = 16384, /* elements a block works on */
    LISTS = KERNEL_CUDA_MAX_LISTS,
};

/* Lists as READS and WRITES name them. */
enum : unsigned {
    X = 1,
    Y = 2,
    Z = 4,
    W = 8,
};

struct Tensors {
    void *data[LISTS][TENSORS];
    float *step[TENSORS];
    size_t elements[TENSORS];
    unsigned first_block[TENSORS + 1];
    uint8_t type[LISTS][TENSORS];
    unsigned n;
};

/* A block's part of a tensor. */
struct Part {
    unsigned tensor;
    size_t first, last;
};

static inline __device__ Part part_of(const Tensors &t) {
    unsigned k = 0;
    while (t.first_block[k + 1] <= blockIdx.x) {
        k++;
    }
    size_t first = (size_t)(blockIdx.x - t.first_block[k]) * CHUNK;
    return Part{k, first, min(t.elements[k], first + CHUNK)};
}

/* Pieces of four elements that a thread has under way together: 48 bytes of fp32 or more, since
 * what reads one list of 16-bit numbers would have but 8. */
template <unsigned READS>
constexpr int LISTS_READ = (READS & 1) + (READS >> 1 & 1) + (READS >> 2 & 1) + (READS >> 3 & 1);
template <unsigned READS>
constexpr int AT_ONCE = LISTS_READ<READS> == 1   ? 4
                        : LISTS_READ<READS> == 2 ? 2
                                                 : 1;

/* A block's arrays and how their numbers are stored. */
struct Lists {
    void *data[LISTS];
    KernelCudaType type[LISTS];
};

/* Runs f on elements i .. i + 3, which were loaded, and stores what it writes. FLOATS: all are
 * fp32. */
template <unsigned READS, unsigned WRITES, bool FLOATS, typename F>
__device__ void four(const Lists &lists, size_t i, const Raw4 (&raw)[LISTS], const F &f) {
    float x[LISTS][4];
#pragma unroll
    for (int l = 0; l < LISTS; l++) {
        if (READS >> l & 1) {
            widen4(x[l], raw[l], FLOATS ? KERNEL_CUDA_F32 : lists.type[l]);
        }
    }
#pragma unroll
    for (int v = 0; v < 4; v++) {
        float one[LISTS];
#pragma unroll
        for (int l = 0; l < LISTS; l++) {
            one[l] = READS >> l & 1 ? x[l][v] : 0.0f;
        }
        f(one);
#pragma unroll
        for (int l = 0; l < LISTS; l++) {
            x[l][v] = one[l];
        }
    }
#pragma unroll
    for (int l = 0; l < LISTS; l++) {
        if (WRITES >> l & 1) {
            store4(lists.data[l], FLOATS ? KERNEL_CUDA_F32 : lists.type[l], i, x[l]);
        }
    }
}

/* The block's elements first .. end - 1, a multiple of four. */
template <unsigned READS, unsigned WRITES, bool FLOATS, typename F>
__device__ void for_fours(const Lists &lists, size_t first, size_t end, const F &f) {
    constexpr int TURNS = AT_ONCE<READS>;
    size_t stride = blockDim.x * 4;
    for (size_t i = first + threadIdx.x * 4; i < end; i += stride * TURNS) {
        Raw4 raw[TURNS][LISTS];
#pragma unroll
        for (int u = 0; u < TURNS; u++) {
#pragma unroll
            for (int l = 0; l < LISTS; l++) {
                if (READS >> l & 1 && i + u * stride < end) {
                    raw[u][l] = load_raw(lists.data[l], FLOATS ? KERNEL_CUDA_F32 : lists.type[l],
                                         i + u * stride);
                }
            }
        }
#pragma unroll
        for (int u = 0; u < TURNS; u++) {
            if (i + u * stride < end) {
                four<READS, WRITES, FLOATS>(lists, i + u * stride, raw[u], f);
            }
        }
    }
}

/* Runs f on each element of the block's part: in[l] and out[l] are list l's. Lists whose bit is in
 * `reads` are loaded, those in `writes` stored. */
template <unsigned READS, unsigned WRITES, typename F>
__device__ void for_part(const Tensors &t, const Part &part, const F &f) {
    Lists lists;
    bool together = true, floats = true;
#pragma unroll
    for (int l = 0; l < LISTS; l++) {
        if ((READS | WRITES) >> l & 1) {
            lists.data[l] = t.data[l][part.tensor];
            lists.type[l] = (KernelCudaType)t.type[l][part.tensor];
            together = together && is_aligned4(lists.data[l], lists.type[l], 0);
            floats = floats && lists.type[l] == KERNEL_CUDA_F32;
        }
    }
    size_t whole = together ? part.first + (part.last - part.first) / 4 * 4 : part.first;
    if (floats) {
        for_fours<READS, WRITES, true>(lists, part.first, whole, f);
    } else {
        for_fours<READS, WRITES, false>(lists, part.first, whole, f);
    }
    for (size_t i = whole + threadIdx.x; i < part.last; i += blockDim.x) {
        float one[LISTS] = {};
#pragma unroll
        for (int l = 0; l < LISTS; l++) {
            if (READS >> l & 1) {
                one[l] = load1(lists.data[l], lists.type[l], i);
            }
        }
        f(one);
#pragma unroll
        for (int l = 0; l < LISTS; l++) {
            if (WRITES >> l & 1) {
                store1(lists.data[l], lists.type[l], i, one[l]);
            }
        }
    }
}

/* ---- dealing out ---------------------------------------------------------------------------- */

enum Empty {
    SKIP,
    KEEP
};

static inline void add_tensor(Tensors *some, const KernelCudaTensors *all, size_t i, float *step) {
    unsigned k = some->n++;
    for (int l = 0; l < LISTS; l++) {
        if (all->data[l]) {
            some->data[l][k] = all->data[l][i];
            some->type[l][k] = (uint8_t)all->types[l][i];
        }
    }
    some->step[k] = step;
    some->elements[k] = all->elements[i];
    some->first_block[k + 1] = some->first_block[k] + (unsigned)divide_up(all->elements[i], CHUNK);
}

/* Calls f(tensors, blocks) for as many tensors as a launch takes, until all are done. */
template <typename F>
static inline KernelCudaFault for_launches(const KernelCudaTensors *all, float *const *steps,
                                           Empty empty, F f) {
    Tensors some = {};
    for (size_t i = 0; i < all->n; i++) {
        if (all->elements[i] || empty == KEEP) {
            add_tensor(&some, all, i, steps ? steps[i] : NULL);
        }
        if (some.n == TENSORS || (i + 1 == all->n && some.n)) {
            KERNEL_CUDA_TRY(f(some, some.first_block[some.n]));
            some.n = 0;
        }
    }
    return NULL;
}

} // namespace cu
