/* plan/autograd/passes/record.h - what forward records for backward: a node for each op and each
 * unit, with what it keeps (tape.h). Inside plan/ only.
 */
#pragma once

#include "plan/autograd/tensor.h"

void plan_record_op(PlanRun *run, uint32_t op_id); /* it has run */
/* The node keeps what its op saves, as forward or a recomputation has just made it. */
void plan_run_save(PlanRun *run, const PlanGraphOp *op, PlanNode *node);

/* The step enters the unit, or leaves it. */
void plan_record_enter_unit(PlanRun *run, const PlanGraphStep *step, uint32_t unit);
void plan_record_leave_unit(PlanRun *run, const PlanGraphStep *step, uint32_t unit);
/* FSDP1: the same of a unit that is not trained, which waits for its arguments' gradients. */
void plan_record_watch_arguments(PlanRun *run, const PlanGraphStep *step, uint32_t unit);
/* FSDP1: from now on gradients of the unit's parameters flow into its flat parameter. */
void plan_run_split_flat(PlanRun *run, uint32_t unit);
