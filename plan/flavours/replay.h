/* plan/flavours/replay.h - the passes of one role, written down again for another.
 *
 * Where roles differ in what they own alone, they differ in construction and in the optimizer's
 * step. What lies between, forward and backward, is one program: the first role plays it on the
 * graph, the others copy what that wrote and number its buffers and ops anew. Inside plan/ only.
 */
#pragma once

#include "plan/autograd/eager.h"

/* How much had been written of everything. */
typedef struct {
    uint32_t instrs, buffers, ops, operands, dims, attrs, events;
} PlanMark;

/* The passes of each section, from the first one's beginning on. */
typedef struct {
    PlanMark begin[PLAN_N_SECTIONS], end[PLAN_N_SECTIONS];
} PlanPasses;

PlanMark plan_replay_mark(const PlanRun *run);
/* Writes the passes of the run's section as `first` has them. */
void plan_replay(PlanRun *run, const PlanRole *first, const PlanPasses *passes);
