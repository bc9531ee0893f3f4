/* plan/autograd/loop.h - what variables of the training loop hold.
 *
 * `out = model(batch)` in a loop holds what forward returned through backward and the optimizer,
 * and through the next forward too: a variable lets go of what it had when it is given another. So
 * two passes' results are alive while a forward runs. Their buffers are two sets, by turns: what is
 * alive behind a step is what the step after next leaves alive.
 */
#pragma once

#include "plan/autograd/eager.h"

/* What forward makes now is to be held so, in a buffer of this turn's. */
bool plan_loop_will_hold(const PlanRun *run, const PlanGraphValue *value);
PlanTensor plan_loop_new_tensor(PlanRun *run, const PlanGraphValue *value, const char *name);
/* In forward, behind the graph's step: variables are given what they hold from here on. */
void plan_loop_takes(PlanRun *run, uint32_t step);
/* The root's forward has returned: what the pass before returned goes. */
void plan_loop_drops_older(PlanRun *run);
/* Forward is through. */
void plan_loop_is_older(PlanRun *run);
