/* plan/build/units-private.h - what who makes units (units.c) and who refuses them (fits.c) both
 * ask. */
#pragma once

#include "plan/build/units.h"

/* Whether the flavour has units besides the root. */
bool plan_strategy_wraps(const PlanStrategy *strategy);
/* The first module so named from number m on; else one beyond the last. */
uint32_t plan_next_named(const PlanGraph *graph, const GRegex *whole, uint32_t m);
/* By module. A family's all are called; of a traced network lists of modules are not. */
bool *plan_called_modules(const PlanGraph *graph);
uint32_t plan_unit_n_trained(const PlanRun *run, uint32_t unit);
