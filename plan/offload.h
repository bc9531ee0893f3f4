/* plan/offload.h - what a checkpointed block keeps, in the host's memory. Inside plan/ only.
 *
 * This project's own schedule. When a block's forward has been issued, its first argument is copied
 * to a slot of the host on a lane of its own and let go; the allocator gives its memory away when
 * that copy has run. Before the block is computed again the argument comes back on another lane;
 * that of the block before it is asked for at the same time, so that its way back is hidden behind
 * this block's backward. The last block's stays, for backward needs it at once. A slot holds one
 * argument of one pass.
 */
#pragma once

#include "plan/eager.h"

extern const char *const plan_offload_lanes[]; /* NULL-terminated, after the flavour's */

void plan_offload_send(PlanRun *run, uint32_t checkpoint);       /* its block has been left */
void plan_offload_bring_back(PlanRun *run, uint32_t checkpoint); /* it is to be computed again */
