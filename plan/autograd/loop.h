/* plan/autograd/loop.h - what the training loop holds of what the root's forward returned.
 *
 * Python's `model(batch)["loss"]` lets go of everything else at once. A local variable of a
 * function that runs one pass lets go of it when the function returns, after backward. A variable
 * of the training loop itself holds it until it is assigned the next pass's: so the results of two
 * passes are alive while a forward runs. Their buffers are then two sets, used in turn, so that
 * every second step leaves the same buffers allocated.
 */
#pragma once

#include "plan/autograd/tensor.h"

/* Whether a value that forward makes now stays alive in the next pass. Such a value lies in the set
 * of buffers of this pass's parity (plan_loop_new_tensor()). */
bool plan_loop_makes(const PlanRun *run, const PlanGraphValue *value);
PlanTensor plan_loop_new_tensor(PlanRun *run, const PlanGraphValue *value, const char *name);
/* In forward, behind the graph's step: it may have made something that is returned. */
void plan_loop_takes(PlanRun *run, uint32_t step);
void plan_loop_forward_returned(PlanRun *run);
void plan_loop_backward_is_through(PlanRun *run);
/* It ends, and lets go of what it still holds. */
void plan_loop_ends(PlanRun *run);
