/* plan/autograd/checkpoint.h - blocks that are run again in backward: checkpoint.c what forward
 * holds of one, selective.c which results it keeps as well, recompute.c running it again.
 *
 * Inside plan/ only.
 */
#pragma once

#include "plan/autograd/tensor.h"

void plan_run_enter_checkpoint(PlanRun *run, uint32_t step);
void plan_run_leave_checkpoint(PlanRun *run);
void plan_run_end_checkpoint(PlanRun *run, PlanCheckpoint *checkpoint); /* all has been used */
void plan_run_recompute(PlanRun *run, uint32_t checkpoint);

void plan_run_drop_results(PlanRun *run,
                           const PlanCheckpoint *checkpoint); /* of a second forward */

/* ---- what is kept (selective.c) -------------------------------------------------------------- */

bool plan_run_selects(const PlanRun *run); /* whether checkpoints keep what was chosen */
void plan_run_keep_selected(PlanRun *run, uint32_t op_id); /* of the block forward is in */
/* Whether selective checkpointing keeps the largest magnitudes that float8 layers find in their
 * weights and inputs, so that the recomputation need not look for them again: it does in compiled
 * blocks whose layers ranks share. And: keeps the one just found. */
bool plan_run_keeps_largest(const PlanRun *run);
void plan_run_keep_largest(PlanRun *run);
/* Whether the result of the product that runs, or of one so many behind it, is kept. */
bool plan_run_keeps_product(const PlanRun *run, unsigned ahead);

/* ---- what the three ask each other ----------------------------------------------------------- */

/* Whether backward wants something that the op makes, and not only what it is given. */
bool plan_keeps_an_output(const PlanRun *run, const PlanGraphOp *op);

/* Whether the outputs of a block's next op are kept, which is counted if it is a product: asked of
 * each once in forward, and once more when the block is recomputed. */
bool plan_selects_next(PlanRun *run, const PlanGraphOp *op);
/* Whether the op need not run again: what it makes is scattered, and that was kept. */
bool plan_is_left_out(const PlanRun *run, const PlanGraphOp *op);
/* Makes the outputs that forward kept those of the op. */
void plan_take_kept(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op);
/* Likewise for the scale of the weight, in a float8 layer that ranks share. */
void plan_take_scale(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op);
