/* plan/autograd/traced.h - ops of a traced network (plan/graph/traced.h). Inside plan/ only. */
#pragma once

#include "plan/autograd/backward.h"

static inline bool plan_traced_is(const PlanGraphOp *op) {
    return (PlanGraphKind)op->kind == PLAN_GRAPH_TRACED;
}
const PlanTracedKind *plan_traced_kind(const PlanGraph *graph, const PlanGraphOp *op);

void plan_traced_forward(PlanRun *run, uint32_t op_id, const PlanGraphOp *op);
void plan_traced_backward(const PlanBackward *b);
/* What its node keeps, in the order in which it is let go. */
void plan_traced_save(PlanRun *run, const PlanGraphOp *op, PlanNode *node);
bool plan_traced_keeps_an_output(const PlanGraph *graph, const PlanGraphOp *op);
/* What a pass is given besides the first tensor, from the data. */
void plan_traced_fill_input(PlanRun *run, uint32_t input);
/* A kernel that gives a buffer its first numbers. */
void plan_traced_launch_first(PlanRun *run, uint32_t value, PlanTensor tensor);
/* Whose gradients are added up: a parameter's, or an output's, by its value. */
typedef struct {
    bool is_parameter;
    uint32_t index;
} PlanTracedTarget;
/* Before a backward. */
void plan_traced_begin_sums(PlanRun *run);
void plan_traced_launch_sum(PlanRun *run, PlanTracedTarget target, PlanTensor a, PlanTensor b,
                            PlanTensor sum);
/* What becomes a parameter's gradient, laid out as that is. */
void plan_traced_launch_copy(PlanRun *run, uint32_t parameter, PlanTensor gradient,
                             PlanTensor copy);
