/* plan/build/units.h - units of a run. Inside plan/ only. */
#pragma once

#include "plan/autograd/tensor.h"

void plan_assign_units(PlanRun *run); /* run has its graph and its strategy */
void plan_clear_units(PlanRun *run);
/* The units in the order in which a network is wrapped: inner ones before those around them, the
 * root last. Transfer full. */
uint32_t *plan_units_inner_first(const PlanRun *run);
/* Whether any unit lies inside a checkpointed module. */
bool plan_units_split_blocks(const PlanRun *run);
/* Whether it has parameters, and none of them is trained. */
bool plan_unit_is_frozen(const PlanRun *run, uint32_t unit);
/* Whether some of its parameters are trained and some are not. */
bool plan_unit_is_mixed(const PlanRun *run, uint32_t unit);
