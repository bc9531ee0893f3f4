/* plan/build.h - a network's graph and a strategy become a plan. */
#pragma once

#include "plan/graph.h"
#include "plan/plan.h"
#include "plan/strategy.h"

/* strategy must be settled. network_name and network_text are carried along for people and
 * tools. */
Plan *plan_build(const PlanGraph *graph, const PlanStrategy *strategy, const char *network_name,
                 const char *network_text, GError **error);
