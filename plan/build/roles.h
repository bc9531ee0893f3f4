/* plan/build/roles.h - which ranks play one role. Inside plan/ only. */
#pragma once

#include "plan/autograd/eager.h"

/* Those of one stage whose shapes are equal. Where rows are not even, they are not in every stage's
 * parameters, so a stage may have roles that do the same. */
void plan_find_roles(Plan *plan, const PlanRun *run);
