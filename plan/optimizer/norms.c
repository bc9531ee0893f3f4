#include "plan/optimizer/norms.h"

#include "plan/autograd/launch.h"
#include "plan/autograd/tensor.h"

void plan_clip_all_reduce(PlanRun *run, PlanTensor sums, PlanAxis axis, uint64_t ranks) {
    plan_builder_collective(&run->builder, PLAN_OP_ALL_REDUCE, axis, ranks, PLAN_REDUCTION_SUM,
                            NOTHING, plan_run_operand_of(run, sums));
    plan_builder_launch(&run->builder, PLAN_LANE_COMPUTE);
}

/* A functional all-reduce works on a copy, and is waited for at once. */
PlanTensor plan_norms_over_ranks(PlanRun *run, PlanTensor norms, PlanAxis axis, uint64_t ranks,
                                 const char *name) {
    PlanTensor squares = launch_new(run, PLAN_OP_POWER, norms, 2, "squares");
    PlanTensor sums = launch_new(run, PLAN_OP_COPY, squares, 0, "sums");
    plan_clip_all_reduce(run, sums, axis, ranks);
    PlanTensor roots = launch_new(run, PLAN_OP_POWER, sums, 0.5, name);
    plan_run_unref(run, squares);
    plan_run_unref(run, sums);
    return roots;
}

PlanTensor plan_clip_new_zero(PlanRun *run) {
    PlanTensor zero = plan_run_new_empty(run, 1, PLAN_FP32, "zero");
    launch_in_place(run, PLAN_LANE_COMPUTE, PLAN_OP_FILL, 0, plan_run_operand_of(run, zero));
    return zero;
}

/* The square of the norm of parameters that are not sharded: there are none. */
static void add_what_is_whole(PlanRun *run, PlanTensor square) {
    PlanTensor zero = plan_clip_new_zero(run);
    plan_run_accumulate(run, zero, square);
    plan_run_unref(run, zero);
}

PlanTensor plan_clip_over_ranks(PlanRun *run, PlanTensor local, PlanAxis axis, uint64_t ranks) {
    PlanTensor square = launch_new(run, PLAN_OP_POWER, local, 2, "square");
    plan_clip_all_reduce(run, square, axis, ranks);
    if (run->strategy->pytorch == PLAN_PYTORCH_2_0) {
        add_what_is_whole(run, square);
    }
    PlanTensor norm = launch_new(run, PLAN_OP_POWER, square, 0.5, "norm");
    plan_run_unref(run, square);
    return norm;
}
