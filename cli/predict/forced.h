/* cli/predict/forced.h - whether NCCL can do as it is forced to.
 *
 * --nccl-algo and --nccl-proto hold for the collectives that have such an algorithm and protocol;
 * the others are predicted without (sim/costs/nccl.h). NCCL itself may end such a run, so who
 * forces is told.
 *
 * Owns: nothing. Threads: a note is printed by one.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"

/* On standard error, where some collective of the plan does not obey. */
void cli_forced_note(const Plan *plan, const ModelCluster *cluster);
