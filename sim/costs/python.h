/* sim/costs/python.h - Python that runs around launches, beside what they cost by themselves.
 *
 * DTensor dispatches each layer that ranks share, and moves its tensors, in Python. Checkpoints
 * (not reentrant) see each tensor that a block saves, when it runs and when it runs again;
 * selective ones see each operator, too. Compiled blocks run without either.
 *
 * Owns: nothing. Threads: any.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"
#include "sim/costs/strategy.h"
#include "sim/time.h"

/* By op of the role, on top of its launch; NULL where there is nothing of it. Transfer full. */
SimTime *sim_python_costs_new(SimStrategy *strategy, const PlanRole *role,
                              const ModelCluster *cluster);
