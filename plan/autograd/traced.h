/* plan/autograd/traced.h - ops of a traced network (plan/traced.h). Inside plan/ only. */
#pragma once

#include "plan/autograd/backward.h"

static inline bool plan_traced_is(const PlanGraphOp *op) {
    return (PlanGraphView)op->kind == PLAN_GRAPH_TRACED;
}
const PlanTracedKind *plan_traced_kind(const PlanGraph *graph, const PlanGraphOp *op);

void plan_traced_forward(PlanRun *run, uint32_t op_id, const PlanGraphOp *op);
void plan_traced_backward(const PlanBackward *b);
/* What its node keeps, in the order in which it is let go. */
void plan_traced_save(PlanRun *run, const PlanGraphOp *op, PlanNode *node);
bool plan_traced_keeps_an_output(const PlanGraph *graph, const PlanGraphOp *op);
/* A kernel that gives a buffer its first numbers. */
void plan_traced_launch_first(PlanRun *run, PlanTensor tensor);
/* A kernel over all of two tensors that makes a third. */
void plan_traced_launch_sum(PlanRun *run, PlanTensor a, PlanTensor b, PlanTensor sum);
