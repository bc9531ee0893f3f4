/* plan/autograd/unit.h - what is asked of a run's units. Inside plan/ only. */
#pragma once

#include "plan/autograd/run.h"

/* The units in the order in which a network is wrapped: inner ones before those around them, the
 * root last. Transfer full. */
uint32_t *plan_units_inner_first(const PlanRun *run);

uint32_t plan_unit_n_trained(const PlanRun *run, uint32_t unit);
/* Whether it has parameters, and none of them is trained. */
bool plan_unit_is_frozen(const PlanRun *run, uint32_t unit);
/* Whether some of its parameters are trained and some are not. */
bool plan_unit_is_mixed(const PlanRun *run, uint32_t unit);

/* ---- checkpointed modules ------------------------------------------------------------------- */

/* The checkpointed module that a module is, or is in; PLAN_NONE. */
uint32_t plan_checkpointed_around(const PlanRun *run, uint32_t module);
/* Whether the unit lies inside that checkpointed module (PLAN_NONE: inside none), and does not
 * begin with the module itself. */
bool plan_checkpoint_is_around(const PlanRun *run, uint32_t module, uint32_t unit);
/* The checkpointed module around a unit, experts apart; PLAN_NONE. */
uint32_t plan_unit_checkpointed_around(const PlanRun *run, uint32_t unit);
/* Whether any unit lies inside a checkpointed module. */
bool plan_units_split_blocks(const PlanRun *run);
