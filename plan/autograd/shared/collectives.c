#include "plan/autograd/shared/collectives.h"

#include "plan/autograd/shared/words.h"

void plan_shared_communicate(PlanRun *run, PlanOpKind kind, PlanReduction reduction,
                             PlanTensor given, PlanTensor taken) {
    plan_builder_collective(&run->builder, kind, PLAN_AXIS_TENSOR, run->graph->shared.tensor,
                            reduction, plan_run_operand_of(run, given),
                            plan_run_operand_of(run, taken));
    plan_run_launch(run);
}

void plan_shared_all_reduce(PlanRun *run, PlanTensor x, PlanReduction reduction) {
    plan_shared_communicate(run, PLAN_OP_ALL_REDUCE, reduction, PLAN_NO_TENSOR, x);
}

PlanTensor plan_shared_reduced(PlanRun *run, PlanTensor x, PlanReduction reduction) {
    PlanTensor y = new_like(run, x, x.elements, "reduced");
    LAUNCH(run, PLAN_OP_COPY, DIMS((int64_t)x.elements), NULL, x, y);
    plan_shared_all_reduce(run, y, reduction);
    return y;
}

PlanTensor plan_shared_of_all(PlanRun *run, PlanTensor own) {
    PlanTensor all = new_like(run, own, own.elements * run->graph->shared.tensor, "gathered");
    plan_shared_communicate(run, PLAN_OP_ALL_GATHER, 0, own, all);
    return all;
}
