/* plan/autograd/checkpoint-private.h - what the files of checkpoints (checkpoint.c, selective.c,
 * recompute.c) ask each other. */
#pragma once

#include "plan/autograd/eager.h"

/* Whether backward wants something that the op makes, and not only what it is given. */
bool plan_keeps_an_output(const PlanRun *run, const PlanGraphOp *op);

/* Whether the outputs of a block's next op are kept, which is counted if it is a product: asked of
 * each once in forward, and once more when the block is recomputed. */
bool plan_selects_next(PlanRun *run, const PlanGraphOp *op);
/* Whether the op need not run again: what it makes is scattered, and that was kept. */
bool plan_is_left_out(const PlanRun *run, const PlanGraphOp *op);
/* Its outputs are those kept in forward. */
void plan_take_kept(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op);
/* The scale of its weight, of a layer in float8 that ranks share, is the one kept in forward. */
void plan_take_scale(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op);
