/* plan/autograd/addends.h - sums beside adapters, as a compiler has them: in the kernel that reads
 * them.
 *
 * Inside plan/ only. Inductor writes no kernel for a sum alone. So both terms live until the kernel
 * that reads the sum has run, and what is made of the sum's gradient is made by the kernel that
 * makes that gradient. A plan adds up in place, with an op that counts as a part of that kernel.
 */
#pragma once

#include "plan/autograd/eager.h"

/* Adds a gradient that the module's backward made to what the edge's slot has, and takes its
 * reference. False: the module is in no program with adapters, and nothing was done. */
bool plan_addends_add(PlanRun *run, PlanEdge edge, PlanTensor *slot, PlanTensor gradient);
/* Node id made these gradients, one for each edge: those of adapters' products are made of them. */
void plan_addends_scale(PlanRun *run, uint32_t id, const PlanTensor *made);
/* The block's op has run again: what its backward reads as well. */
void plan_addends_read_again(PlanRun *run, uint32_t op_id);
/* Node id has run. */
void plan_addends_let_go(PlanRun *run, uint32_t id);
