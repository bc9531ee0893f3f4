/* plan/flavours/ddp.h - what DDP's files have between them. Inside plan/flavours/ only. */
#pragma once

#include "plan/autograd/launch.h"

enum {
    PLAN_DDP_LANE_COMPUTE,
    PLAN_DDP_LANE_REDUCE
};

/* An empty array of uint32_t. */
static inline GArray *plan_ddp_new_list(void) {
    return g_array_new(FALSE, FALSE, sizeof(uint32_t));
}

/* How many ranks have a copy of what this one has. */
static inline uint64_t plan_ddp_ranks(const PlanRun *run) {
    return run->strategy->ranks / run->strategy->pipeline;
}

/* The first rank's buffers are everybody's, before every pass that follows a synchronized one. */
void plan_ddp_broadcast_buffers(PlanRun *run);
