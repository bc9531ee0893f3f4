/* plan/op/alike.h - ops that are the same but for whose buffers they use.
 *
 * The blocks of a network repeat, and so do roles: most ops have the same kind, dims and operand
 * sizes as an earlier one, which need not be checked or costed again. To find it, two guesses
 * suffice: if the op before was like op n, this one is like op n + 1; else it is like one of the
 * last few of its kind.
 *
 * Borrows: the roles that it is asked about. Threads: one. Cost: a few comparisons an op.
 */
#pragma once

#include "plan/plan.h"

typedef struct {
    const PlanRole *role;
    const PlanOp *op; /* NULL: none */
} PlanAlikeOp;

/* The last few different ops of each kind; a block has a handful. Zeros: none yet. */
typedef struct {
    struct {
        PlanAlikeOp ops[8];
        unsigned next;
    } of[PLAN_N_OP_KINDS];
    PlanAlikeOp guess;  /* the op that the next one asked about is probably like */
    PlanAlikeOp begins; /* the first op of the role asked about */
    bool of_any_number; /* ops are alike even if they are of another parameter or random stream */
} PlanAlike;

/* An op asked about earlier that is like this one; NULL: none is known. Ask about all ops of a role
 * in order (those that PlanRole calls copies may be left out), and of one role after the other. */
const PlanOp *plan_alike_find(PlanAlike *alike, const PlanRole *role, const PlanOp *op);

/* Remembers an op that plan_alike_find() knew none for; the oldest of its kind is forgotten. */
void plan_alike_note(PlanAlike *alike, const PlanRole *role, const PlanOp *op);
