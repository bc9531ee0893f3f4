/* plan/flavours/construct.h - parameters that are whole on the device before FSDP cuts them.
 *
 * As recorded of both FSDPs (init = whole) and as their sources move what lies on the host or the
 * meta device (init = unit: _move_states_to_device): a unit's parameters are all there until its
 * last shard has been cut. They leave their segments to the allocator. What is written to them
 * nobody reads: a shard is initialized by itself.
 */
#pragma once

#include "plan/autograd/tensor.h"

/* The buffer of each parameter; with init = shard no buffer comes to be, and offloaded parameters
 * are made by the host (autograd/offload.h). */
typedef struct {
    uint32_t *whole;
} PlanConstruct;

/* Makes tables and batch, and with init = whole all parameters (start.h). */
void plan_construct_init(PlanConstruct *construct, PlanRun *run);
void plan_construct_clear(PlanConstruct *construct);
/* Around the cutting of a unit. */
void plan_construct_begin_unit(PlanConstruct *construct, PlanRun *run, uint32_t unit);
void plan_construct_end_unit(const PlanConstruct *construct, PlanRun *run, uint32_t unit);
