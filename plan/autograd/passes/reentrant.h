/* plan/autograd/passes/reentrant.h - a block whose checkpoint is reentrant: before backward comes
 * to anything in it, it runs again as a whole, with hooks of its own for the units in it; and what
 * the checkpoint was given, and made, lives until backward has left the block.
 *
 * Inside plan/ only.
 */
#pragma once

#include "plan/autograd/tensor.h"

/* The block that a node of autograd's is in, if its checkpoint is reentrant; PLAN_NONE. */
uint32_t plan_reentrant_block(const PlanRun *run, const PlanNode *node);
/* The block runs again, if it has not; given: the gradient of its result. */
void plan_reentrant_begin(PlanRun *run, uint32_t block, PlanTensor given);
/* Backward goes on in another block (PLAN_NONE: in none). */
void plan_reentrant_leave(PlanRun *run, uint32_t next_block);
