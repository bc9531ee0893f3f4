/* plan/build/roles.h - which ranks play one role. Inside plan/ only. */
#pragma once

#include "plan/autograd/tensor.h"

/* Puts ranks of one stage with equal shapes in one role. Uneven rows may lie in other stages'
 * parameters, so a stage can have several identical roles. */
void plan_find_roles(Plan *plan, const PlanRun *run);
