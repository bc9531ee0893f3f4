/* plan/flavours/replay.h - the passes of a step, written down again for other steps and roles.
 *
 * Where roles differ in what they own alone, they differ in construction and in the optimizer's
 * step, and so do steps. What lies between, forward and backward, is one program: the first role
 * plays it on the graph in its first step. Its second step and the other roles copy what that wrote
 * and number its buffers and ops anew. Inside plan/ only.
 */
#pragma once

#include "plan/autograd/eager.h"

/* How much had been written of everything. */
typedef struct {
    uint32_t instrs, buffers, ops, operands, parts, dims, attrs, events;
} PlanMark;

/* Where those passes stand in section first. */
typedef struct {
    PlanMark begin, end;
} PlanPasses;

PlanMark plan_replay_mark(const PlanRun *run);
/* Writes the passes that `first` played; NULL: the run itself did, in an earlier section. */
void plan_replay(PlanRun *run, const PlanRole *first, const PlanPasses *passes);
