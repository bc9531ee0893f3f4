/* plan/flavours/whole.h - flavours in which every rank holds every parameter whole.
 *
 * What one rank alone and DDP have in common. Inside plan/ only.
 */
#pragma once

#include "plan/autograd/tensor.h"

typedef struct {
    uint32_t *buffers; /* of each parameter */
} PlanWhole;

void plan_whole_construct(PlanRun *run, PlanWhole *whole); /* and tables and batch (start.h) */
PlanOperand plan_whole_operand(PlanRun *run, const PlanWhole *whole, uint32_t parameter);
PlanOperand plan_whole_gradient(PlanRun *run, uint32_t parameter);
void plan_whole_drop_gradient(PlanRun *run, uint32_t parameter);
void plan_whole_drop_gradients(PlanRun *run);
/* The same for FSDP, of the parameters that it is told to leave alone (key ignored). */
void plan_ignored_make(PlanRun *run, uint32_t parameter);
PlanOperand plan_ignored_operand(PlanRun *run, uint32_t parameter);
