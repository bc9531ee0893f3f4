/* plan/graph/results.h - what the root returns, copied where it is left.
 *
 * DistributedDataParallel passes what its module returns through a function of autograd of its own
 * (_DDPSink), which clones each tensor, logits too, so that what is changed in place later is
 * nobody else's. Its list holds the originals until all are cloned. Inside plan/graph/ only.
 */
#pragma once

#include "plan/graph/private.h"

/* The root has been left with them: their names mean their copies. */
void plan_results_copy(PlanGraph *graph, const uint32_t *results, unsigned n);
