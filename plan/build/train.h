/* plan/build/train.h - the training loop, which writes a role's program. Inside plan/ only. */
#pragma once

#include "plan/autograd/eager.h"
#include "plan/flavours/replay.h"

/* Construction and three steps. run: the first of n_runs, one for each stage of the role's ranks.
 * first: the role whose passes may be copied, NULL for that one itself, which notes them in passes.
 */
void plan_train(PlanRun *run, uint32_t n_runs, PlanRole *role, const PlanRole *first,
                PlanPasses *passes);
/* Fills the input with the pass's batch, of so many that it has there. */
void plan_next_batch(PlanRun *run, uint64_t n_passes);
