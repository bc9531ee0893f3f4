/* kernels/eight-bit-step.h - a step of AdamW in fp32, number by number, and where a number stands
 * among 256 values, as torchao's AdamW8bit has both; for the host and for CUDA.
 */
#pragma once
#include <math.h>
#include <stdint.h>

#include "kernels/everywhere.h"
#include "kernels/four-bit-codes.h"

/* A state, n places of codes. A step writes the new ones, or, where it is a step in two, first the
 * magnitudes, most, and each number over its own, scaled. */
typedef struct {
    uint8_t *codes;
    float *absmax;
    const float *map;
    float *most, *scaled;
} KernelState8bit;

/* What is the same for all numbers, worked out in fp32 as PyTorch does of numbers in tensors. */
typedef struct {
    float lr, decay;    /* decay: times lr */
    float rest1, rest2; /* 1 - beta */
    float correction1, root_correction2;
    float eps;
} KernelAdamOne;

/* step: counts from 1. */
static inline KernelAdamOne kernel_adam_one_of(double lr, double beta1, double beta2, double eps,
                                               double weight_decay, int64_t step) {
    KernelAdamOne one;
    one.lr = (float)lr;
    one.decay = (float)lr * (float)weight_decay;
    one.rest1 = (float)(1 - beta1);
    one.rest2 = (float)(1 - beta2);
    one.correction1 = 1 - powf((float)beta1, (float)step);
    one.root_correction2 = sqrtf(1 - powf((float)beta2, (float)step));
    one.eps = (float)eps;
    return one;
}

KERNEL_EVERYWHERE static inline float kernel_moved(float from, float to, float weight) {
    return weight < 0.5f ? from + weight * (to - from) : to - (to - from) * (1 - weight);
}

/* The parameter, of the new moments. */
KERNEL_EVERYWHERE static inline float kernel_adam_one_step(float p, float exp_avg, float exp_avg_sq,
                                                           const KernelAdamOne *one) {
    float denominator = sqrtf(exp_avg_sq) / one->root_correction2 + one->eps;
    return p - one->decay * p - one->lr * (exp_avg / one->correction1) / denominator;
}

/* The place of the value nearest to x, of 256 in order; halfway between two the upper one's. */
KERNEL_EVERYWHERE static inline uint8_t kernel_code_of(const float *map, float x) {
    unsigned below = 0;
    for (unsigned half = 128; half > 0; half /= 2) {
        below += x >= map[below + half] ? half : 0;
    }
    unsigned above = below < 255 ? below + 1 : below;
    return (uint8_t)(x - map[below] >= (map[above] - map[below]) * 0.5f ? above : below);
}
