/* plan/build/run.h - what a rank has as it begins, and is rid of at the end. Inside plan/ only. */
#pragma once

#include "plan/autograd/eager.h"

void plan_run_init(PlanRun *run, const PlanGraph *graph, const PlanStrategy *strategy,
                   PlanArena *arena, uint32_t rank);
void plan_run_clear(PlanRun *run);
