/* plan/op/alike.h - ops that are the same but for whose buffers they use.
 *
 * Blocks are alike, and so are roles: most ops have the kind, the dims and the sizes of operands of
 * the op that follows what the op before was like, or of one of the last few of their kind. What is
 * true of that one's sizes, and what it costs, holds for them too.
 *
 * Borrows: the roles that it is asked about. Threads: one. Cost: a few comparisons an op.
 */
#pragma once

#include "plan/plan.h"

typedef struct {
    const PlanRole *role;
    const PlanOp *op; /* NULL: none */
} PlanAlikeOp;

/* The last different ones of each kind; a block has a handful. Zeros: none yet. */
typedef struct {
    struct {
        PlanAlikeOp ops[8];
        unsigned next;
    } of[PLAN_N_OP_KINDS];
    PlanAlikeOp guess;     /* what the next op asked about may well be like */
    PlanAlikeOp begins;    /* the first op of the role asked about */
    bool of_any_parameter; /* first values are alike whichever parameter they are of */
} PlanAlike;

/* The op asked about earlier that is like it; NULL when none is known. A role's ops are asked about
 * in order, each of them, and one role after the other; copies (PlanRole) may be left out. */
const PlanOp *plan_alike_find(PlanAlike *alike, const PlanRole *role, const PlanOp *op);

/* To be found from now on, in the place of the oldest of its kind. */
void plan_alike_note(PlanAlike *alike, const PlanRole *role, const PlanOp *op);
