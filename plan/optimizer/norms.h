/* plan/optimizer/norms.h - norms of which each rank knows a part. Inside plan/ only. */
#pragma once

#include "plan/autograd/tensor.h"

/* Sums numbers over all ranks of the axis, in place. */
void plan_clip_all_reduce(PlanRun *run, PlanTensor sums, PlanAxis axis, uint64_t ranks);
/* For each of some norms of this rank's gradients, the norm over all ranks of the axis, in a new
 * tensor. */
PlanTensor plan_norms_over_ranks(PlanRun *run, PlanTensor norms, PlanAxis axis, uint64_t ranks,
                                 const char *name);
/* The same of one norm; on the device, in fp32. */
PlanTensor plan_clip_over_ranks(PlanRun *run, PlanTensor local, PlanAxis axis, uint64_t ranks);
/* The norm of a rank without gradients. */
PlanTensor plan_clip_new_zero(PlanRun *run);
