/* kernels/cuda/lists/optimizer.cu - see optimizer.h: steps, whole and in pieces. Bound: memory.
 */
#include "kernels/cuda/lists/optimizer.h"

#include <float.h>

#include "kernels/cuda/lists/lists.cuh"

using namespace cu;

namespace {

template <unsigned READS, unsigned WRITES, typename F>
__global__ void __launch_bounds__(THREADS) foreach_kernel(const __grid_constant__ Tensors t, F f) {
    for_part<READS, WRITES>(t, part_of(t), f);
}

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

/* ---- launches -------------------------------------------------------------------------------- */

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
