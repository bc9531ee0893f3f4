/* plan/build/run.h - a run (autograd/run.h), made and let go of. Inside plan/ only. */
#pragma once

#include "plan/autograd/run.h"

void plan_run_init(PlanRun *run, const PlanGraph *graph, const PlanStrategy *strategy,
                   PlanArena *arena, uint32_t rank);
void plan_run_clear(PlanRun *run);
