/* kernels/host/lists/eight-bit.h - AdamW with states in 8 bits, as torchao has it (AdamW8bit of
 * 0.18).
 *
 * Of each number of a state there is the place of one of 256 values, which lie in a map in order
 * (kernels/eight-bit-step.h), times the largest magnitude of 256 neighbours. n is a multiple of
 * 256. What a step does not name of a state is not looked at.
 * Bound: memory.
 */
#pragma once
#include <stddef.h>

#include "kernels/eight-bit-step.h"

/* One step; updates param and both states, reads grad. A magnitude is at least `least`. */
void kernel_adam_8bit(float *param, const float *grad, const KernelState8bit *exp_avg,
                      const KernelState8bit *exp_avg_sq, size_t n, float least,
                      const KernelAdamOne *one);
/* In two: what is scaled, and param unless it is NULL; */
void kernel_adam_8bit_scaled(float *param, const float *grad, const KernelState8bit *exp_avg,
                             const KernelState8bit *exp_avg_sq, size_t n, float least,
                             const KernelAdamOne *one);
/* and param, by the old states, and places of what was scaled. */
void kernel_adam_8bit_update(float *param, const float *grad, const KernelState8bit *exp_avg,
                             const KernelState8bit *exp_avg_sq, size_t n, const KernelAdamOne *one);
/* Places of n numbers from -1 to 1. */
void kernel_put_codes(uint8_t *codes, const float *x, const float *map, size_t n);
/* The same step of states in fp32. */
void kernel_adam_one(float *param, float *exp_avg, float *exp_avg_sq, const float *grad, size_t n,
                     const KernelAdamOne *one);
