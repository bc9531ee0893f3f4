/* plan/units.h - units of a run, and which blocks it checkpoints. Inside plan/ only. */
#pragma once

#include "plan/autograd/eager.h"

void plan_assign_units(PlanRun *run); /* run has its graph and its strategy */
bool plan_check_units(const PlanRun *run, GError **error);
bool *plan_choose_checkpoints(const PlanGraph *graph, const PlanStrategy *strategy);
