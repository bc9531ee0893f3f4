/* plan/units.h - units of a run, and which blocks it checkpoints. Inside plan/ only. */
#pragma once

#include "plan/autograd/eager.h"

void plan_assign_units(PlanRun *run); /* run has its graph and its strategy */
void plan_clear_units(PlanRun *run);
bool plan_check_units(const PlanRun *run, GError **error);
/* Whether it has parameters, of which none is trained. */
bool plan_unit_is_frozen(const PlanRun *run, uint32_t unit);
bool *plan_choose_checkpoints(const PlanGraph *graph, const PlanStrategy *strategy);
