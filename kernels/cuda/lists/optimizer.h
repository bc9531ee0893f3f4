/* kernels/cuda/lists/optimizer.h - optimizer steps and gradient norms over lists of tensors.
 *
 * As PyTorch's foreach and fused kernels: chunks of all tensors are dealt out to the blocks of few
 * launches. Each list has a type of its own; arithmetic is in fp32. Bound: memory; a fused AdamW
 * over fp32 moves 28 bytes an element.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KERNEL_CUDA_MAX_LISTS = 4
};

/* n tensors; data[l][i] is list l's tensor i, of elements[i]. Tensors of 0 elements are skipped.
 * types[i] of list l at types[l][i], so that a list may mix them. */
typedef struct {
    size_t n;
    void *const *data[KERNEL_CUDA_MAX_LISTS];
    const KernelCudaType *types[KERNEL_CUDA_MAX_LISTS];
    const size_t *elements;
} KernelCudaTensors;

/* The pieces of foreach Adam and SGD. x is list 0, y list 1, z list 2; the last list named is
 * written. */
typedef enum {
    KERNEL_CUDA_EACH_ZERO,       /* x = 0 */
    KERNEL_CUDA_EACH_MUL,        /* x *= number */
    KERNEL_CUDA_EACH_DIV,        /* x /= number */
    KERNEL_CUDA_EACH_ADD,        /* x += number */
    KERNEL_CUDA_EACH_COPY,       /* y = x */
    KERNEL_CUDA_EACH_SQRT,       /* y = sqrt(x) */
    KERNEL_CUDA_EACH_DIV_TO,     /* y = x / number */
    KERNEL_CUDA_EACH_SUM,        /* y += x */
    KERNEL_CUDA_EACH_ADD_SCALED, /* y += number x */
    KERNEL_CUDA_EACH_LERP,       /* y += number (x - y); from 0.5 up, x - (x - y)(1 - number) */
    KERNEL_CUDA_EACH_ADDCMUL,    /* y += number x x */
    KERNEL_CUDA_EACH_ADDCDIV,    /* z += number x / y */
    KERNEL_CUDA_EACH_ADD_TO,     /* z = x + number y */
    KERNEL_CUDA_EACH_LERP_TO,    /* z = x + number (y - x), likewise */
} KernelCudaEach;

KernelCudaFault kernel_cuda_foreach(KernelCuda *lane, const KernelCudaTensors *tensors,
                                    KernelCudaEach op, float number);

/* x *= factor[0], a number on the device (clipping). */
KernelCudaFault kernel_cuda_foreach_scale_by(KernelCuda *lane, const KernelCudaTensors *tensors,
                                             const void *factor, KernelCudaType factor_type);

typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
    bool
        decoupled; /* AdamW: weight decay shrinks the parameter; else it is added to the gradient */
    int64_t step;  /* counts from 1; not read where the count lies on the device */
} KernelCudaAdam;

/* Lists: gradient, parameter, exp_avg, exp_avg_sq. steps: one float a tensor on the device, counted
 * up first (host array of device pointers); NULL: adam->step. */
KernelCudaFault kernel_cuda_adam(KernelCuda *lane, const KernelCudaTensors *tensors,
                                 float *const *steps, const KernelCudaAdam *adam);

/* Of gradients of a scaled loss (torch.amp.GradScaler); all numbers here are fp32 on the device.
 * x *= inverse[0]; found[0] becomes 1 where one of them was not finite, and else stays. */
KernelCudaFault kernel_cuda_unscale(KernelCuda *lane, const KernelCudaTensors *tensors,
                                    const float *inverse, float *found);

/* As kernel_cuda_adam() with steps, but for nothing where found[0] is not 0; gradients are divided
 * by scale[0] first (NULL: they are not). */
KernelCudaFault kernel_cuda_adam_if_finite(KernelCuda *lane, const KernelCudaTensors *tensors,
                                           float *const *steps, const KernelCudaAdam *adam,
                                           const float *found, const float *scale);

/* As PyTorch's _amp_update_scale_: scale[0] times growth after `interval` steps in a row without
 * such a number, unless that would not be finite; else times backoff. tracker[0]: steps so far. */
KernelCudaFault kernel_cuda_update_scale(KernelCuda *lane, const float *found, float *scale,
                                         float *tracker, double growth, double backoff,
                                         double interval);

typedef struct {
    double lr, momentum, weight_decay;
    bool first; /* the momentum becomes the gradient */
} KernelCudaSgd;

/* Lists: gradient, parameter and, unless momentum is 0, momentum. */
KernelCudaFault kernel_cuda_sgd(KernelCuda *lane, const KernelCudaTensors *tensors,
                                const KernelCudaSgd *sgd);

/* List 1's tensor i, of one element, becomes the 2-norm of list 0's tensor i (0 of an empty one).
 * Two stages, in a fixed order. */
KernelCudaFault kernel_cuda_norms(KernelCuda *lane, const KernelCudaTensors *tensors);
/* Likewise the largest magnitude; NaN where a number is. */
KernelCudaFault kernel_cuda_largest_of_each(KernelCuda *lane, const KernelCudaTensors *tensors);

#ifdef __cplusplus
}
#endif
