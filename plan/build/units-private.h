/* plan/build/units-private.h - questions that both units.c, which makes units, and fits.c, which
 * refuses some, have to ask. */
#pragma once

#include "plan/build/units.h"

/* Whether the flavour has units besides the root. */
bool plan_strategy_wraps(const PlanStrategy *strategy);
/* The first module from number m on whose name or class matches; the number of modules if none
 * does. */
uint32_t plan_next_named(const PlanGraph *graph, const GRegex *whole, uint32_t m);
/* For each module, whether it is ever called. A family's modules all are; in a traced network a
 * list of modules is not. */
bool *plan_called_modules(const PlanGraph *graph);
