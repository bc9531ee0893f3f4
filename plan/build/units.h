/* plan/build/units.h - units of a run. Inside plan/ only. */
#pragma once

#include "plan/autograd/run.h"

void plan_assign_units(PlanRun *run); /* run has its graph and its strategy */
void plan_clear_units(PlanRun *run);
