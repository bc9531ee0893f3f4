/* kernels/cuda/optimizer.cu - see optimizer.h. Bound: memory.
 *
 * A launch takes up to TENSORS tensors, named in its arguments, and blocks are dealt out to them by
 * their elements: one large flat shard or many small parameters fill the device alike. Types are
 * looked at when the kernel runs, four elements at a time, so one kernel serves every mixture.
 */
#include "kernels/cuda/optimizer.h"

#include <float.h>

#include "kernels/cuda/each.cuh"
#include "kernels/cuda/magnitude.cuh"

using namespace cu;

namespace {

enum {
    TENSORS = 48,  /* of one launch: 2.3 KB of its arguments */
    CHUNK = 16384, /* elements a block works on */
    LISTS = KERNEL_CUDA_MAX_LISTS,
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

__device__ Part part_of(const Tensors &t) {
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

template <unsigned READS, unsigned WRITES, typename F>
__global__ void __launch_bounds__(THREADS) foreach_kernel(const __grid_constant__ Tensors t, F f) {
    for_part<READS, WRITES>(t, part_of(t), f);
}

enum : unsigned {
    X = 1,
    Y = 2,
    Z = 4,
    W = 8,
};

/* ---- pieces --------------------------------------------------------------------------------- */

__device__ float between(float from, float to, float weight) {
    return weight < 0.5f ? from + weight * (to - from) : to - (to - from) * (1.0f - weight);
}

#define PIECE(name, expression)                                                                    \
    struct name {                                                                                  \
        float number;                                                                              \
        __device__ void operator()(float *x) const {                                               \
            expression;                                                                            \
        }                                                                                          \
    }

PIECE(Zero, x[0] = 0.0f);
PIECE(Mul, x[0] *= number);
PIECE(Div, x[0] /= number);
PIECE(Add, x[0] += number);
PIECE(Copy, x[1] = x[0]);
PIECE(Sqrt, x[1] = sqrtf(x[0]));
PIECE(DivTo, x[1] = x[0] / number);
PIECE(Sum, x[1] += x[0]);
PIECE(AddScaled, x[1] += number * x[0]);
PIECE(Lerp, x[1] = between(x[1], x[0], number));
PIECE(LerpTo, x[2] = between(x[0], x[1], number));
PIECE(Addcmul, x[1] += number * x[0] * x[0]);
PIECE(Addcdiv, x[2] += number * x[0] / x[1]);
PIECE(AddTo, x[2] = x[0] + number * x[1]);

struct ScaleBy {
    const void *factor;
    KernelCudaType type;
    __device__ void operator()(float *x) const {
        x[0] *= load1(factor, type, 0);
    }
};

/* ---- whole steps ---------------------------------------------------------------------------- */

/* A step of Adam, its numbers formed in double and rounded once, as the host has it; the quotient
 * is within two units of the last place (an exact one takes as long as all the rest). Lists:
 * gradient, parameter, exp_avg, exp_avg_sq. */
struct Adam {
    float kept, coupled, rest1, beta2, rest2, step_size, per_root2, eps;
    __device__ void operator()(float *x) const {
        float p = x[1] * kept, g = x[0] + coupled * p;
        x[2] += rest1 * (g - x[2]);
        x[3] = x[3] * beta2 + rest2 * g * g;
        x[1] = p - __fdividef(step_size * x[2], sqrtf(x[3]) * per_root2 + eps);
    }
};

__host__ __device__ Adam adam_at(const KernelCudaAdam &a, double step) {
    double correction1 = 1.0 - pow(a.beta1, step), correction2 = 1.0 - pow(a.beta2, step);
    return Adam{(float)(a.decoupled ? 1.0 - a.lr * a.weight_decay : 1.0),
                (float)(a.decoupled ? 0.0 : a.weight_decay),
                (float)(1.0 - a.beta1),
                (float)a.beta2,
                (float)(1.0 - a.beta2),
                (float)(a.lr / correction1),
                (float)(1.0 / sqrt(correction2)),
                (float)a.eps};
}

/* found: NULL, or not 0 where nothing is stepped. */
__global__ void count_steps_kernel(const __grid_constant__ Tensors t, const float *found) {
    if (threadIdx.x < t.n && (!found || *found == 0.0f)) {
        *t.step[threadIdx.x] += 1.0f;
    }
}

/* The tensor's own count of steps gives the corrections: one thread forms them for the block. */
__global__ void __launch_bounds__(THREADS)
    adam_steps_kernel(const __grid_constant__ Tensors t, KernelCudaAdam a) {
    BLOCK_SHARED(Adam, adam);
    Part part = part_of(t);
    if (threadIdx.x == 0) {
        adam = adam_at(a, (double)*t.step[part.tensor]);
    }
    __syncthreads();
    for_part<X | Y | Z | W, Y | Z | W>(t, part, adam);
}

/* The gradient, which a loss times some number has left, is stored as it is without. */
struct ScaledAdam {
    Adam adam;
    float inverse;
    __device__ void operator()(float *x) const {
        x[0] *= inverse;
        adam(x);
    }
};

template <bool SCALED>
__global__ void __launch_bounds__(THREADS)
    adam_if_finite_kernel(const __grid_constant__ Tensors t, KernelCudaAdam a, const float *found,
                          const float *scale) {
    BLOCK_SHARED(Adam, adam);
    if (*found != 0.0f) {
        return;
    }
    Part part = part_of(t);
    if (threadIdx.x == 0) {
        adam = adam_at(a, (double)*t.step[part.tensor]);
    }
    __syncthreads();
    if constexpr (SCALED) {
        for_part<X | Y | Z | W, X | Y | Z | W>(t, part,
                                               ScaledAdam{adam, (float)(1.0 / (double)*scale)});
    } else {
        for_part<X | Y | Z | W, Y | Z | W>(t, part, adam);
    }
}

/* A block tells once: where all is beyond range, no more than it has to wait for the others. */
__global__ void __launch_bounds__(THREADS)
    unscale_kernel(const __grid_constant__ Tensors t, const float *inverse, float *found) {
    float by = *inverse, beyond = 0;
    for_part<X, X>(t, part_of(t), [&](float *x) {
        beyond = fabsf(x[0]) <= FLT_MAX ? beyond : 1.0f; /* nor if it is not a number */
        x[0] *= by;
    });
    beyond = row_max(beyond);
    if (threadIdx.x == 0 && beyond != 0.0f) {
        atomicCAS((unsigned *)found, __float_as_uint(0.0f), __float_as_uint(1.0f));
    }
}

__global__ void update_scale_kernel(const float *found, float *scale, float *tracker, float growth,
                                    float backoff, float interval) {
    bool is_finite = *found == 0.0f, grows = is_finite && *tracker + 1.0f == interval;
    float grown = *scale * (!is_finite ? backoff : grows ? growth : 1.0f);
    *scale = fabsf(grown) <= FLT_MAX ? grown : *scale;
    *tracker = is_finite && !grows ? *tracker + 1.0f : 0.0f;
}

/* Lists: gradient, parameter, momentum. */
struct SgdPlain {
    float lr, decay;
    __device__ void operator()(float *x) const {
        x[1] -= lr * (x[0] + decay * x[1]);
    }
};

struct SgdMomentum {
    float lr, decay, momentum;
    bool first;
    __device__ void operator()(float *x) const {
        float g = x[0] + decay * x[1];
        x[2] = first ? g : momentum * x[2] + g;
        x[1] -= lr * x[2];
    }
};

/* ---- norms ---------------------------------------------------------------------------------- */

/* What a block finds of its numbers: by each, and of what its threads have; the first has it. */
struct TwoNorm {
    typedef float Part;
    static __device__ void take(float *part, float x) {
        *part += x * x;
    }
    static __device__ void join(float *part, float other) {
        *part += other;
    }
    static __device__ float of_block(float part) {
        return row_sum(part);
    }
    static __device__ float result(float part) {
        return sqrtf(part);
    }
};

struct Largest {
    typedef uint32_t Part;
    static __device__ void take(uint32_t *part, float x) {
        *part = larger(*part, magnitude_of(x));
    }
    static __device__ void join(uint32_t *part, uint32_t other) {
        *part = larger(*part, other);
    }
    static __device__ uint32_t of_block(uint32_t part) {
        return block_largest(part);
    }
    static __device__ float result(uint32_t part) {
        return __uint_as_float(part);
    }
};

template <typename N>
__global__ void __launch_bounds__(THREADS)
    norm_parts_kernel(const __grid_constant__ Tensors t, typename N::Part *parts) {
    typename N::Part part = 0;
    for_part<X, 0>(t, part_of(t), [&](float *x) { N::take(&part, x[0]); });
    part = N::of_block(part);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = part;
    }
}

/* A block a tensor joins that tensor's parts, in order. */
template <typename N>
__global__ void __launch_bounds__(THREADS)
    norms_kernel(const __grid_constant__ Tensors t, const typename N::Part *parts) {
    unsigned first = t.first_block[blockIdx.x], last = t.first_block[blockIdx.x + 1];
    typename N::Part part = 0;
    for (unsigned i = first + threadIdx.x; i < last; i += blockDim.x) {
        N::join(&part, parts[i]);
    }
    part = N::of_block(part);
    if (threadIdx.x == 0) {
        store1(t.data[1][blockIdx.x], (KernelCudaType)t.type[1][blockIdx.x], 0, N::result(part));
    }
}

/* ---- dealing out ---------------------------------------------------------------------------- */

enum Empty {
    SKIP,
    KEEP
};

void add_tensor(Tensors *some, const KernelCudaTensors *all, size_t i, float *step) {
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
KernelCudaFault for_launches(const KernelCudaTensors *all, float *const *steps, Empty empty, F f) {
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

template <unsigned READS, unsigned WRITES, typename F>
KernelCudaFault foreach (KernelCuda *lane, const char *name, const KernelCudaTensors *tensors,
                         F f) {
    return for_launches(tensors, NULL, SKIP, [&](const Tensors &some, unsigned blocks) {
        return launch(lane, name, foreach_kernel<READS, WRITES, F>, dim3(blocks), dim3(THREADS), 0,
                      some, f);
    });
}

} // namespace

static KernelCudaFault count_steps(KernelCuda *lane, const Tensors &some, const float *found) {
    return launch(lane, "adam (count)", count_steps_kernel, dim3(1),
                  dim3(divide_up(TENSORS, LANES) * LANES), 0, some, found);
}

KernelCudaFault kernel_cuda_foreach(KernelCuda *lane, const KernelCudaTensors *tensors,
                                    KernelCudaEach op, float number) {
    switch (op) {
    case KERNEL_CUDA_EACH_ZERO:
        return foreach<0, X>(lane, "foreach zero", tensors, Zero{number});
    case KERNEL_CUDA_EACH_MUL:
        return foreach<X, X>(lane, "foreach mul", tensors, Mul{number});
    case KERNEL_CUDA_EACH_DIV:
        return foreach<X, X>(lane, "foreach div", tensors, Div{number});
    case KERNEL_CUDA_EACH_ADD:
        return foreach<X, X>(lane, "foreach add", tensors, Add{number});
    case KERNEL_CUDA_EACH_COPY:
        return foreach<X, Y>(lane, "foreach copy", tensors, Copy{number});
    case KERNEL_CUDA_EACH_SQRT:
        return foreach<X, Y>(lane, "foreach sqrt", tensors, Sqrt{number});
    case KERNEL_CUDA_EACH_DIV_TO:
        return foreach<X, Y>(lane, "foreach div to", tensors, DivTo{number});
    case KERNEL_CUDA_EACH_SUM:
        return foreach<X | Y, Y>(lane, "foreach sum", tensors, Sum{number});
    case KERNEL_CUDA_EACH_ADD_SCALED:
        return foreach<X | Y, Y>(lane, "foreach add scaled", tensors, AddScaled{number});
    case KERNEL_CUDA_EACH_LERP:
        return foreach<X | Y, Y>(lane, "foreach lerp", tensors, Lerp{number});
    case KERNEL_CUDA_EACH_ADDCMUL:
        return foreach<X | Y, Y>(lane, "foreach addcmul", tensors, Addcmul{number});
    case KERNEL_CUDA_EACH_ADDCDIV:
        return foreach<X | Y | Z, Z>(lane, "foreach addcdiv", tensors, Addcdiv{number});
    case KERNEL_CUDA_EACH_ADD_TO:
        return foreach<X | Y, Z>(lane, "foreach add to", tensors, AddTo{number});
    case KERNEL_CUDA_EACH_LERP_TO:
        return foreach<X | Y, Z>(lane, "foreach lerp to", tensors, LerpTo{number});
    }
    return kernel_cuda_fault("a foreach op that is none");
}

KernelCudaFault kernel_cuda_foreach_scale_by(KernelCuda *lane, const KernelCudaTensors *tensors,
                                             const void *factor, KernelCudaType factor_type) {
    return foreach<X, X>(lane, "foreach scale by", tensors, ScaleBy{factor, factor_type});
}

KernelCudaFault kernel_cuda_adam(KernelCuda *lane, const KernelCudaTensors *tensors,
                                 float *const *steps, const KernelCudaAdam *adam) {
    if (!steps) {
        return foreach<X | Y | Z | W, Y | Z | W>(lane, "adam", tensors,
                                                 adam_at(*adam, (double)adam->step));
    }
    return for_launches(tensors, steps, KEEP,
                        [&](const Tensors &some, unsigned blocks) -> KernelCudaFault {
                            KERNEL_CUDA_TRY(count_steps(lane, some, NULL));
                            return blocks ? launch(lane, "adam", adam_steps_kernel, dim3(blocks),
                                                   dim3(THREADS), 0, some, *adam)
                                          : NULL;
                        });
}

KernelCudaFault kernel_cuda_adam_if_finite(KernelCuda *lane, const KernelCudaTensors *tensors,
                                           float *const *steps, const KernelCudaAdam *adam,
                                           const float *found, const float *scale) {
    return for_launches(
        tensors, steps, KEEP, [&](const Tensors &some, unsigned blocks) -> KernelCudaFault {
            KERNEL_CUDA_TRY(count_steps(lane, some, found));
            return blocks
                       ? launch(lane, "adam (if finite)",
                                scale ? adam_if_finite_kernel<true> : adam_if_finite_kernel<false>,
                                dim3(blocks), dim3(THREADS), 0, some, *adam, found, scale)
                       : NULL;
        });
}

KernelCudaFault kernel_cuda_unscale(KernelCuda *lane, const KernelCudaTensors *tensors,
                                    const float *inverse, float *found) {
    return for_launches(tensors, NULL, SKIP, [&](const Tensors &some, unsigned blocks) {
        return launch(lane, "unscale", unscale_kernel, dim3(blocks), dim3(THREADS), 0, some,
                      inverse, found);
    });
}

KernelCudaFault kernel_cuda_update_scale(KernelCuda *lane, const float *found, float *scale,
                                         float *tracker, double growth, double backoff,
                                         double interval) {
    return launch(lane, "update_scale", update_scale_kernel, dim3(1), dim3(1), 0, found, scale,
                  tracker, growth, backoff, interval);
}

KernelCudaFault kernel_cuda_sgd(KernelCuda *lane, const KernelCudaTensors *tensors,
                                const KernelCudaSgd *sgd) {
    float lr = (float)sgd->lr, decay = (float)sgd->weight_decay, momentum = (float)sgd->momentum;
    if (momentum == 0.0f) {
        return foreach<X | Y, Y>(lane, "sgd", tensors, SgdPlain{lr, decay});
    }
    if (sgd->first) { /* what lies there is not a number yet */
        return foreach<X | Y, Y | Z>(lane, "sgd momentum", tensors,
                                     SgdMomentum{lr, decay, momentum, true});
    }
    return foreach<X | Y | Z, Y | Z>(lane, "sgd momentum", tensors,
                                     SgdMomentum{lr, decay, momentum, false});
}

template <typename N>
static KernelCudaFault norms(KernelCuda *lane, const KernelCudaTensors *tensors) {
    typedef typename N::Part Part;
    return for_launches(
        tensors, NULL, KEEP, [&](const Tensors &some, unsigned blocks) -> KernelCudaFault {
            void *parts;
            KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, (blocks + 1) * sizeof(Part), &parts));
            if (blocks) {
                KERNEL_CUDA_TRY(launch(lane, "norms", norm_parts_kernel<N>, dim3(blocks),
                                       dim3(THREADS), 0, some, (Part *)parts));
            }
            return launch(lane, "norms (end)", norms_kernel<N>, dim3(some.n), dim3(THREADS), 0,
                          some, (const Part *)parts);
        });
}

KernelCudaFault kernel_cuda_norms(KernelCuda *lane, const KernelCudaTensors *tensors) {
    return norms<TwoNorm>(lane, tensors);
}

KernelCudaFault kernel_cuda_largest_of_each(KernelCuda *lane, const KernelCudaTensors *tensors) {
    return norms<Largest>(lane, tensors);
}
