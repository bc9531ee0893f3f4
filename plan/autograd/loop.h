/* plan/autograd/loop.h - what the training loop holds of what the root's forward returned.
 *
 * Python's `model(batch)["loss"]` lets go of all else at once, a variable of a function that runs
 * one pass when backward is through. A variable of a loop in no such function lets go of what it
 * had when it is given another: so two passes' results are alive while a forward runs. Their
 * buffers are two sets, used alternately: what is alive behind a step is what the step after next
 * leaves.
 */
#pragma once

#include "plan/autograd/eager.h"

/* What forward makes now is alive in the next pass too, and lies in the buffers of this pass's
 * parity. */
bool plan_loop_makes(const PlanRun *run, const PlanGraphValue *value);
PlanTensor plan_loop_new_tensor(PlanRun *run, const PlanGraphValue *value, const char *name);
/* In forward, behind the graph's step: it may have made something that is returned. */
void plan_loop_takes(PlanRun *run, uint32_t step);
void plan_loop_forward_returned(PlanRun *run);
void plan_loop_backward_is_through(PlanRun *run);
/* It ends, and lets go of what it still holds. */
void plan_loop_ends(PlanRun *run);
