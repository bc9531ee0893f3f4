/* plan/autograd/differentiate/saved.h - what an op keeps for its backward. Inside plan/ only. */
#pragma once

#include "plan/graph/graph.h"

/* Whether backward asks for any of its values, parameters too. */
bool plan_saves_anything(const PlanGraph *graph, const PlanGraphOp *op);
/* Which of its values an op keeps for its backward, in the order in which they are let go. */
unsigned plan_saved_values(const PlanGraph *graph, const PlanGraphOp *op, uint8_t *ret_positions);
/* Whether a norm of a sum keeps what it adds up: of a compiled block, where the second summand is
 * smaller than the sum, and the first is kept anyhow. */
bool plan_keeps_summands(const PlanGraph *graph, const PlanGraphOp *op);
/* A column that others are divided by is summed up anew for backward. */
bool plan_makes_column_again(const PlanGraph *graph, const PlanGraphOp *op);
