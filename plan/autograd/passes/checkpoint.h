/* plan/autograd/passes/checkpoint.h - blocks that are run again in backward: checkpoint.c what
 * forward holds of one, selective.c which results it keeps as well, recompute.c running it again.
 *
 * Inside plan/ only.
 */
#pragma once

#include "plan/autograd/tensor.h"

void plan_run_enter_checkpoint(PlanRun *run, uint32_t step);
void plan_run_leave_checkpoint(PlanRun *run);
void plan_run_end_checkpoint(PlanRun *run, PlanCheckpoint *checkpoint); /* all has been used */
/* Keeps what the op has made, if that is chosen: of the block forward is in. */
void plan_run_keep_selected(PlanRun *run, uint32_t op_id);
void plan_run_recompute(PlanRun *run, uint32_t checkpoint);
void plan_run_drop_results(PlanRun *run,
                           const PlanCheckpoint *checkpoint); /* of a second forward */

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
