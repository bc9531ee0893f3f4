/* plan/autograd/checkpoint.h - blocks that are run again in backward: checkpoint.c what forward
 * holds of one, selective.c which results it keeps as well, recompute.c running it again.
 *
 * Inside plan/ only.
 */
#pragma once

#include "plan/autograd/eager.h"

void plan_run_enter_checkpoint(PlanRun *run, uint32_t step);
void plan_run_leave_checkpoint(PlanRun *run);
void plan_run_end_checkpoint(PlanRun *run, PlanCheckpoint *checkpoint); /* all has been used */
void plan_run_recompute(PlanRun *run, uint32_t checkpoint);

void plan_run_drop_results(PlanRun *run,
                           const PlanCheckpoint *checkpoint); /* of a second forward */

/* ---- what is kept (selective.c) -------------------------------------------------------------- */

bool plan_run_selects(const PlanRun *run); /* whether checkpoints keep what was chosen */
void plan_run_keep_selected(PlanRun *run, uint32_t op_id); /* of the block forward is in */
/* Largest numbers of weights and of what layers in float8 are given: kept by selective
 * checkpointing of compiled blocks that ranks share, so that nobody looks for them again; now,
 * of one. */
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
/* Its outputs are those kept in forward. */
void plan_take_kept(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op);
/* The scale of its weight, of a layer in float8 that ranks share, is the one kept in forward. */
void plan_take_scale(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op);
