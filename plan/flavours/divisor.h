/* plan/flavours/divisor.h - what gradients are divided by, before and after a reduction.
 *
 * About half of the ranks each, so that neither sums overflow nor shares underflow: both FSDPs
 * (DefaultState._get_gradient_predivide_factor; _get_gradient_divide_factors).
 */
#pragma once

#include <stdint.h>

typedef struct {
    double before, after;
} PlanDivisor;

static inline PlanDivisor plan_divisor_of(uint64_t ranks) {
    uint64_t before = 1;
    while (ranks % before == 0 && ranks / before > before) {
        before *= 2;
    }
    return (PlanDivisor){(double)before, (double)ranks / (double)before};
}
