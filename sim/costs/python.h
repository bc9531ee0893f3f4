/* sim/costs/python.h - what Python around the launches of a role costs the host.
 *
 * DTensor dispatches each layer that ranks share, and moves its tensors, in Python. Checkpoints
 * (not reentrant) see each tensor that a block saves, when it runs and when it runs again;
 * selective ones see each operator as well. Compiled blocks run without either.
 *
 * Owns: nothing. Threads: any.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"
#include "sim/costs/strategy.h"
#include "sim/time.h"

/* By op of the role: what comes on top of its launch. NULL: nothing, for any op. Transfer full. */
SimTime *sim_python_costs_new(SimStrategy *strategy, const PlanRole *role,
                              const ModelCluster *cluster);
