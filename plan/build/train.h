/* plan/build/train.h - the training loop, which writes a role's program. Inside plan/ only. */
#pragma once

#include "plan/flavours/replay.h"

/* Writes construction and three steps. run: the first of n_runs, one for each stage that a rank of
 * the role has. first: an earlier role, whose passes are copied as noted in `passes`; NULL: this is
 * the first role, which fills `passes` in. */
void plan_train(PlanRun *run, uint32_t n_runs, PlanRole *role, const PlanRole *first,
                PlanPasses *passes);
