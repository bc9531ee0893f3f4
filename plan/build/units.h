/* plan/build/units.h - units of a run. Inside plan/ only. */
#pragma once

#include "plan/autograd/eager.h"

void plan_assign_units(PlanRun *run); /* run has its graph and its strategy */
void plan_clear_units(PlanRun *run);
/* Units with those inside of them before them, so the root last: as a network is wrapped. */
uint32_t *plan_units_inner_first(const PlanRun *run);
/* Whether one lies inside of a checkpointed module. */
bool plan_units_split_blocks(const PlanRun *run);
/* Whether it has parameters, of which none is trained. */
bool plan_unit_is_frozen(const PlanRun *run, uint32_t unit);
/* Some of its parameters are trained, and some are not. */
bool plan_unit_is_mixed(const PlanRun *run, uint32_t unit);
