/* plan/optimizer/groups.h - the optimizer's groups of parameters, one or two. Inside plan/ only.
 *
 * A foreach operator takes DTensors or plain tensors, not both, so these are two groups, numbers 0
 * and 1:
 *   FSDP2               parameters that it is told to ignore, and its shards
 *   nothing is wrapped, and tensor ranks leave sequences whole
 *                       parameters that each rank has whole, and those that ranks share
 * With Muon group 0 is its matrices and group 1 what AdamW steps.
 */
#pragma once

#include "plan/autograd/run.h"

unsigned plan_n_groups(const PlanRun *run);
unsigned plan_group_of(const PlanRun *run, uint32_t parameter);
bool plan_muon_takes(const PlanRun *run, uint32_t parameter);
