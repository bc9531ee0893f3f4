/* plan/mesh.h - where a rank stands among all ranks of a plan: its place on each axis, and what
 * follows from that.
 *
 * Owns: nothing. Threads: any number.
 */
#pragma once

#include "plan/plan.h"

/* An axis divides all ranks into groups of axes[axis] ranks, each `stride` after the one before.
 * A rank's place is its index in its group. Tensor is the innermost axis:
 *   rank = ((pipeline * axes[REPLICATE] + replicate) * axes[SHARD] + shard) * axes[TENSOR] + tensor
 * Part, context, expert and alike cut the shard axis: shard = alike * axes[EXPERT] + expert. On
 * axis none each rank is alone. */
uint32_t plan_axis_stride(const Plan *plan, PlanAxis axis);
uint32_t plan_rank_on_axis(const Plan *plan, uint32_t rank, PlanAxis axis);
uint32_t plan_group_of_rank(const Plan *plan, uint32_t rank, PlanAxis axis);
/* "rank 24", or in a pipeline "rank 24, stage 3 of 4" or "rank 24, stages 3, 7 of 8". Transfer
 * full. */
char *plan_rank_text(const Plan *plan, uint32_t rank);
/* The same of a rank at that place of a pipeline of `places` ranks, which has `each` stages: number
 * place, place + places, ... */
char *plan_rank_in_stages(uint32_t rank, uint64_t place, uint64_t places, uint64_t each);
/* A plan without a program, all of whose ranks are on the shard axis. For callers that have a
 * number of ranks and no plan, and want to use the functions above. */
Plan plan_line(uint32_t world);

static inline uint32_t plan_ranks_of_stage(const Plan *plan) {
    /* A plan that was written by hand may say 0. */
    return plan->world / MAX(1, plan->axes[PLAN_AXIS_PIPELINE]);
}
/* How many stages each rank has; the units of each include one called root. */
uint32_t plan_stages_of_rank(const Plan *plan);
/* Whether the place `peer` follows `place` on the pipeline axis. Where ranks have several stages
 * the axis is a ring, so the first place follows the last. With two places each would then follow
 * the other; here only the second counts as following the first. */
static inline bool plan_is_behind(const Plan *plan, uint32_t place, int64_t peer) {
    uint32_t places = plan->axes[PLAN_AXIS_PIPELINE];
    return places == 2 ? peer > place : peer == (place + 1) % places;
}
/* Ranks that differ only in their tensor, context or pipeline place read the same batch. Which of
 * the batches a rank reads, and how many there are. */
static inline uint32_t plan_batch_of_rank(const Plan *plan, uint32_t rank) {
    return rank % plan_ranks_of_stage(plan) /
           (plan->axes[PLAN_AXIS_TENSOR] * plan->axes[PLAN_AXIS_CONTEXT]);
}
static inline uint32_t plan_n_batches(const Plan *plan) {
    return plan_ranks_of_stage(plan) /
           (plan->axes[PLAN_AXIS_TENSOR] * plan->axes[PLAN_AXIS_CONTEXT]);
}
/* Context parallel cuts a sequence into twice as many parts as the axis has ranks. To balance
 * causal attention, rank r gets part r from the front and part r from the back (`second`). */
static inline uint32_t plan_part_of_sequence(const Plan *plan, uint32_t rank, bool second) {
    uint32_t place = plan_rank_on_axis(plan, rank, PLAN_AXIS_CONTEXT);
    return second ? 2 * plan->axes[PLAN_AXIS_CONTEXT] - 1 - place : place;
}
/* The axis among whose ranks a parameter is split. */
static inline PlanAxis plan_axis_of_split(PlanSplit split) {
    return split == PLAN_SPLIT_NONE      ? PLAN_AXIS_NONE
           : split >= PLAN_SPLIT_EXPERTS ? PLAN_AXIS_EXPERT
                                         : PLAN_AXIS_TENSOR;
}
/* Elements of a parameter that one rank of that axis has. */
static inline uint64_t plan_parameter_elements_of_rank(const Plan *plan,
                                                       const PlanParameter *parameter) {
    return parameter->elements / plan->axes[plan_axis_of_split((PlanSplit)parameter->split)];
}
