/* plan/build/checkpoints.h - which modules of a network a strategy checkpoints. Inside plan/
 * only. */
#pragma once

#include "plan/graph/graph.h"

/* For each module, whether it is checkpointed. Transfer full. */
bool *plan_choose_checkpoints(const PlanGraph *graph, const PlanStrategy *strategy);
