/* plan/optimizer/clip.h - clipping by the norm of all gradients. Inside plan/ only. */
#pragma once

#include "plan/autograd/tensor.h"

/* Scales the gradients down to the strategy's norm. Each of `ranks` ranks of the axis knows
 * its own part of them; PLAN_AXIS_NONE: each rank knows all of them. */
void plan_clip_norm(PlanRun *run, PlanAxis axis, uint64_t ranks);
void plan_clip_whole(PlanRun *run);
/* Where ranks share experts, or share layers but not sequences: one norm of what they share, and
 * one of the rest. */
void plan_clip_norms_of_two(PlanRun *run, uint64_t ranks);
/* Of FSDP2 in PyTorch 2.4. */
void plan_clip_norm_of_2_4(PlanRun *run, uint64_t ranks);
/* FSDP1's clipping: each rank's own norm, then the norm of those. zero: the norm of a rank without
 * gradients, from plan_clip_new_zero(); PLAN_NO_TENSOR: it is made where it is needed. */
void plan_clip_flat(PlanRun *run, PlanAxis axis, uint64_t ranks, PlanTensor zero);
