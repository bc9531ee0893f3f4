/* plan/alike.h - ops that are the same but for whose buffers they use.
 *
 * Blocks are alike, so most ops have the kind, the dims and the sizes of operands of one of the
 * last few of their kind: what is true of that one's sizes, and what it costs, holds for them too.
 *
 * Borrows: the role that it is asked about. Threads: one. Cost: a few comparisons an op.
 */
#pragma once

#include "plan/plan.h"

/* The last different ones of each kind; a block has a handful. Zeros: none yet. */
typedef struct {
    struct {
        const PlanOp *ops[8];
        unsigned next;
    } of[PLAN_N_OP_KINDS];
} PlanAlike;

/* The one of those noted that is like it; NULL when none is. */
const PlanOp *plan_alike_find(const PlanAlike *alike, const PlanRole *role, const PlanOp *op);

/* To be found from now on, in the place of the oldest of its kind. */
void plan_alike_note(PlanAlike *alike, const PlanOp *op);
