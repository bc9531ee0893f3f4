/* plan/flavours/replay.h - the passes of a step, written down again for other steps and roles.
 *
 * Where roles differ in what they own alone, they differ in construction and in the optimizer's
 * step, and so do steps. What lies between, forward and backward, is one program: the first role
 * plays it on the graph in its first step. Its second step and the other roles copy what that wrote
 * and number its buffers and ops anew. Inside plan/ only.
 */
#pragma once

#include "plan/autograd/tensor.h"

/* How long each of the builder's arrays was at some moment. */
typedef struct {
    uint32_t instrs, buffers, ops, operands, parts, dims, attrs, events;
} PlanWritten;

/* Where those passes stand in section first. */
typedef struct {
    PlanWritten begin, end;
} PlanPasses;

PlanWritten plan_replay_written(const PlanRun *run);
/* Writes the passes that `first` played; NULL: the run itself did, in an earlier section. */
void plan_replay(PlanRun *run, const PlanRole *first, const PlanPasses *passes);
