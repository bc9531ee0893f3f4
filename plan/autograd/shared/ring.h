/* plan/autograd/shared/ring.h - sequences that the ranks of the context axis share, as PyTorch's
 * context_parallel() has attention do it (torch.distributed.tensor.experimental: a ring, with its
 * load balance, and keys and values gathered at once; PyTorch 2.13, recorded: tests/oracle/,
 * *-context-*).
 *
 * A sequence is cut into twice as many parts as ranks, and rank r of n has parts r and 2 n - 1 - r.
 * In hop 0 each attends to its own tokens, causally, while the others' keys and values are
 * gathered; in hop i to those of the rank i before it: of a rank before it on the axis all its
 * queries see the first half of the keys, of one behind it the second half of its queries sees all.
 * What that gives is merged in fp32 by the logarithms of the sums. Backward does the same hops, and
 * passes the gradients of keys and values on, from rank to rank, until they are home.
 *
 * Ranks of one place on the axis do the same; others have other shapes (roles). Collectives have a
 * lane of their own. Inside plan/ only.
 */
#pragma once

#include "plan/autograd/backward.h"

extern const char *const plan_ring_lanes[]; /* behind the flavour's; ends with NULL */

/* A rank's place on the axis; the run's own. */
static inline uint64_t plan_ring_place_of(const PlanRun *run, uint64_t rank) {
    return rank / run->graph->shared.tensor % run->graph->shared.context;
}
static inline uint64_t plan_ring_place(const PlanRun *run) {
    return plan_ring_place_of(run, run->owner.rank);
}

/* Whether halves of a sequence are put together, which leaves attention's result and the gradient
 * of its queries head by head: not on the last rank, whose queries see a part of all. */
static inline bool plan_ring_joins(const PlanRun *run) {
    return plan_ring_place(run) + 1 < run->graph->shared.context;
}

void plan_ring_forward(PlanRun *run, const PlanGraphOp *op);
void plan_ring_backward(const PlanBackward *b);
/* The same inside of a compiled block, which gives what was gathered, too. */
void plan_ring_compiled_forward(PlanRun *run, const PlanGraphOp *op);
void plan_ring_compiled_backward(const PlanBackward *b);
/* What attention gave, in rows of tokens: copied where it lies head by head. */
void plan_ring_rows_forward(PlanRun *run, const PlanGraphOp *op);
