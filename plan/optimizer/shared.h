/* plan/optimizer/shared.h - gradients of layers that ranks share, where no flavour reduces them.
 * Inside plan/ only.
 *
 * Where tensor ranks share layers and nothing is sharded, a gradient may be a DTensor that is not
 * summed over the ranks yet, and every operator that reads it has to settle it first
 * (plan_shared_settled()).
 */
#pragma once

#include "plan/optimizer/over.h"

static inline bool plan_settles(const PlanRun *run) {
    return run->graph->shared.tensor > 1 && run->strategy->flavour == PLAN_FLAVOUR_PLAIN;
}
/* By parameter, what was made so. NULL: nothing is to settle. Transfer full. */
PlanTensor *plan_settle_gradients(const PlanOver *over);
/* The same of one parameter; PLAN_NO_TENSOR: its gradient needs no settling. */
PlanTensor plan_settled_sum(PlanRun *run, uint32_t parameter);
void plan_settled_let_go(PlanRun *run, PlanTensor *settled); /* NULL is fine; and frees it */
