/* plan/autograd/shared/collectives.h - collectives over the ranks of the tensor axis, each waited
 * for at once. Inside autograd/ only. */
#pragma once

#include "plan/autograd/tensor.h"

/* What a functional all-reduce makes of x, in a new tensor. */
PlanTensor plan_shared_reduced(PlanRun *run, PlanTensor x, PlanReduction reduction);
/* All-reduces a tensor in its place. */
void plan_shared_all_reduce(PlanRun *run, PlanTensor x, PlanReduction reduction);
/* All-gathers a tensor: the parts of all ranks, in order of ranks. */
PlanTensor plan_shared_of_all(PlanRun *run, PlanTensor own);
/* given: PLAN_NO_TENSOR where the collective works in place of `taken`. */
void plan_shared_communicate(PlanRun *run, PlanOpKind kind, PlanReduction reduction,
                             PlanTensor given, PlanTensor taken);
