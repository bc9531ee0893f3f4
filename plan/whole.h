/* plan/whole.h - flavours in which every rank holds every parameter whole.
 *
 * What one rank alone and DDP have in common. Inside plan/ only.
 */
#pragma once

#include "plan/eager.h"

typedef struct {
    uint32_t *buffers; /* of each parameter */
} PlanWhole;

void plan_whole_construct(PlanRun *run, PlanWhole *whole);
PlanOperand plan_whole_operand(PlanRun *run, const PlanWhole *whole, uint32_t parameter);
PlanOperand plan_whole_gradient(PlanRun *run, uint32_t parameter);
void plan_whole_zero_grad(PlanRun *run);
/* Fills a buffer with a parameter's first values. rank_stride: how many elements further each rank
 * of the axis starts; n: how many are this rank's. */
void plan_init_parameter(PlanRun *run, uint32_t parameter, uint32_t buffer, PlanAxis axis,
                         uint64_t n, uint64_t rank_stride);
