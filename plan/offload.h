/* plan/offload.h - what waits, or is done, in the host's memory. Inside plan/ only.
 *
 * Two schedules of this project's own. Activations: when a checkpointed block's forward has been
 * issued, its first argument is copied to a slot of the host on a lane of its own and let go; the
 * allocator gives its memory away when that copy has run. Before the block is computed again the
 * argument comes back on another lane; that of the block before it is asked for at the same time,
 * so that its way back is hidden behind this block's backward. The last block's stays, for backward
 * needs it at once. A slot holds one argument of one pass.
 *
 * Optimizer: the moments live on the host, beside a copy of what the rank owns of the parameters.
 * Each gradient is copied there; when it has come the host steps, while the next are on their way,
 * and the stepped parameter goes back. Compute waits for all of them.
 */
#pragma once

#include "plan/optimizer.h"

extern const char *const plan_offload_lanes[]; /* NULL-terminated, after the flavour's */

void plan_offload_step(const PlanOver *all, bool first);
void plan_offload_send(PlanRun *run, uint32_t checkpoint);       /* its block has been left */
void plan_offload_bring_back(PlanRun *run, uint32_t checkpoint); /* it is to be computed again */
