/* sim/costs/strategy.h - a plan's strategy, read from its text when a cost first depends on it.
 *
 * Reading it takes longer than most of a prediction, and most costs do without.
 *
 * Owns: what was read. Borrows: the plan. Threads: one.
 */
#pragma once

#include "plan/plan.h"
#include "plan/strategy/strategy.h"

/* {.plan = plan} before it is asked for. */
typedef struct {
    const Plan *plan;
    bool is_asked_for, is_known;
    PlanStrategy read;
} SimStrategy;

/* NULL: the plan is by hand, or of another version. */
const PlanStrategy *sim_strategy(SimStrategy *strategy);
