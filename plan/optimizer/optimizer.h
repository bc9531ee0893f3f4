/* plan/optimizer/optimizer.h - the end of a training step. Inside plan/ only. */
#pragma once

#include "plan/autograd/run.h"

/* The optimizer's part of a training step: clips gradients, steps, drops gradients. runs: the n
 * runs of one rank, one a stage; the first has the builder. */
void plan_run_optimizer(PlanRun *runs, uint32_t n, bool first);
