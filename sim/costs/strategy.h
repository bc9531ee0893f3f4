/* sim/costs/strategy.h - a plan's strategy, read from its text when a cost first depends on it.
 *
 * Reading it takes longer than most of a prediction, and most costs do not depend on it.
 *
 * Owns: what was read. Borrows: the plan. Threads: one.
 */
#pragma once

#include "plan/plan.h"
#include "plan/strategy/strategy.h"

/* Begins as {.plan = plan}. */
typedef struct {
    const Plan *plan;
    bool is_asked_for; /* it has been read, or cannot be */
    bool is_known;     /* it could be read */
    PlanStrategy read;
} SimStrategy;

/* NULL: it cannot be read, because the plan was written by hand or by another version. */
const PlanStrategy *sim_strategy(SimStrategy *strategy);
