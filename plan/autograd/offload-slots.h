/* plan/autograd/offload-slots.h - the host's memory, in numbered slots, and what copies to and from
 * it. Inside plan/ only.
 *
 * An argument of a checkpointed block has a slot; then each parameter has some; behind these lie
 * those that gradients need, and those of numbers that the host reads (read.h).
 */
#pragma once

#include "plan/autograd/tensor.h"

/* Of a parameter. */
typedef enum {
    PLAN_ON_HOST_GRADIENT,
    PLAN_ON_HOST_PARAMETER,
    PLAN_N_ON_HOST = 4 /* and both moments, which the device makes */
} PlanOnHost;

/* Behind the slots of all parameters: a gradient that has arrived to be added, the norms of all
 * gradients, and the norm of these. */
enum {
    PLAN_OFFLOAD_ARRIVED,
    PLAN_OFFLOAD_NORMS,
    PLAN_OFFLOAD_NORM,
    PLAN_N_OFFLOAD_SLOTS
};

extern const char *const plan_offload_lanes[]; /* NULL-terminated, after the flavour's */
enum {
    PLAN_LANE_TO_HOST,
    PLAN_LANE_FROM_HOST
};
static inline uint8_t plan_offload_lane(const PlanRun *run, unsigned which) {
    return (uint8_t)(run->lanes.n_of_flavour + which);
}

static inline bool plan_offload_has_params(const PlanRun *run) {
    return run->strategy->offload == PLAN_OFFLOAD_PARAMS;
}

/* Whose slots hold the parameter: with parameters offloaded FSDP1's are parts of flat ones. */
uint32_t plan_offload_owner(const PlanRun *run, uint32_t parameter);
uint32_t plan_offload_slot(const PlanRun *run, uint32_t parameter, PlanOnHost which);
uint32_t plan_offload_slots_end(const PlanRun *run); /* behind those of all parameters */

void plan_offload_move(PlanRun *run, PlanOpKind kind, uint32_t slot, PlanOperand tensor,
                       uint8_t lane);
/* To the host, which waits for it. */
void plan_offload_fetch(PlanRun *run, uint32_t slot, PlanOperand tensor, uint8_t lane);
void plan_offload_ask(PlanRun *run, PlanTensor number); /* the host waits for it */

/* The host computes. */
void plan_offload_do(PlanRun *run, PlanOpKind kind, PlanAxis axis, const int64_t *dims,
                     const double *attrs);
void plan_offload_round(PlanRun *run, uint32_t slot, uint64_t elements, PlanDtype dtype);
