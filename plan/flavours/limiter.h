/* plan/flavours/limiter.h - FSDP1's rate limiter: which free the host waits for before it gathers.
 *
 * Inside plan/ only. Each free of a gathered unit records an event and queues it; each call that
 * gathers takes the oldest and waits for it, if the queue is as long as the limit. The queue goes
 * on from step to step, so what a step waits for depends on the steps before; plan_limiter_settle()
 * plays the step over, without writing anything, until it leaves the queue as it found it.
 *
 * Facts: torch/distributed/fsdp/_limiter_utils.py and _runtime_utils.py, PyTorch 2.13; the same
 * since 1.13, which had it first (recordings of 1.13.1, 2.0.1 and 2.4.1).
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint32_t limit; /* 0: off */
    int32_t step;
    uint32_t n_frees; /* of this step */
    GArray *queue;    /* frees, oldest first */
    GArray *at_begin; /* the queue when the step began */
    GArray *history;  /* bool: what this step did: a free, or a call that gathers */
} PlanLimiter;

void plan_limiter_init(PlanLimiter *limiter, uint32_t limit);
void plan_limiter_clear(PlanLimiter *limiter);
void plan_limiter_begin_step(PlanLimiter *limiter);
/* Called within a step: from here on frees are numbered from `first`, and what the step has done so
 * far is taken as done once, not in the steps to come. */
void plan_limiter_count_from(PlanLimiter *limiter, uint32_t first);
/* Which free of the step this is; its event has that number. */
uint32_t plan_limiter_free(PlanLimiter *limiter);
/* True when the host waits: for the event of free ret_free, recorded ret_before steps ago. What is
 * older than PLAN_MAX_BEFORE steps has long passed. */
bool plan_limiter_gather(PlanLimiter *limiter, uint32_t *ret_free, uint8_t *ret_before);
/* Whether the step has left the queue as it found it. */
bool plan_limiter_is_steady(const PlanLimiter *limiter);
/* Call between steps, when the steps to come are all like the last. */
void plan_limiter_settle(PlanLimiter *limiter);
