/* plan/op/shape.h - whether an op's operands are as large, and of the dtypes, as its dims say.
 *
 * Kernels trust their shapes; a plan may come from a file that somebody edited. So the checker asks
 * here once, and no device has to.
 */
#pragma once

#include "plan/plan.h"

/* NULL when all is well; else what is wrong. Transfer full. */
char *plan_op_shape_fault(const Plan *plan, const PlanRole *role, const PlanOp *op);

/* How many elements of operand i the op touches, counted from the operand's start. More than its
 * own where rows lie apart: a part of a row then stands for the rows between. */
uint64_t plan_op_elements_touched(const PlanRole *role, const PlanOp *op, uint32_t i);
