/* plan/autograd/addends.h - the sum of a layer's result and its adapter's, in compiled blocks.
 *
 * Inside plan/ only. Inductor merges such a sum into the kernel that reads it. So both terms live
 * until that kernel has run; and in backward the kernel that makes the sum's gradient also makes
 * the gradient scaled for the adapter. A plan adds in place, with an op that counts as part of
 * that kernel (plan_op_is_within()).
 */
#pragma once

#include "plan/autograd/tensor.h"

/* Adds a gradient that the module's backward made to what the edge's slot has, and takes its
 * reference. False: the module is in no program with adapters, and nothing was done. */
bool plan_addends_add(PlanRun *run, PlanEdge edge, PlanTensor *slot, PlanTensor gradient);
/* Node id made these gradients, one for each edge: those of adapters' products are made of them. */
void plan_addends_scale(PlanRun *run, uint32_t id, const PlanTensor *made);
/* The block's op has run again: what its backward reads as well. */
void plan_addends_read_again(PlanRun *run, uint32_t op_id);
/* Node id has run. */
void plan_addends_let_go(PlanRun *run, uint32_t id);
