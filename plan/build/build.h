/* plan/build/build.h - a network's graph and a strategy become a plan. */
#pragma once

#include "plan/graph/graph.h"
#include "plan/plan.h"
#include "plan/strategy/strategy.h"

/* For each parameter, whether its unit has both trained and frozen parameters. NULL: no unit has.
 * Transfer full. */
bool *plan_units_joined(const PlanGraph *graph, const PlanStrategy *strategy);

/* For each module, whether the hooks of a unit run on it. Transfer full. */
bool *plan_units_modules(const PlanGraph *graph, const PlanStrategy *strategy);

/* How much of a plan is written. */
typedef enum {
    PLAN_FORM_WHOLE,
    /* For a prediction in which rank 0 stands for all, or in stages those of its pipeline do: their
     * roles alone get programs, those that they have in a whole plan. Of the others only the ranks
     * are known. Such a plan has no digest, is not handed on, and no other rank can play it. */
    PLAN_FORM_FOR_ONE,
    /* The same for a prediction's figures alone: of a step of many passes some are written, and one
     * of them stands for those that are not (plan/fold.h). Where a simulator finds that they repeat
     * only later, the form before it has more of them, and PLAN_FORM_FOR_ONE has all. */
    PLAN_FORM_FOLDED_LATEST,
    PLAN_FORM_FOLDED_LATE,
    PLAN_FORM_FOLDED,
    PLAN_N_FORMS
} PlanForm;

/* strategy must be settled. network_name and network_text are carried along for people and tools.
 *
 * Checking a plan takes about as long as building it. That this builder makes sound plans is for
 * tests to say, so a plan is checked here only where FORESHARD_CHECK is in the environment, as it
 * is in every test. Who hands one on, to a file or to real ranks, asks plan_check() first. */
Plan *plan_build(const PlanGraph *graph, const PlanStrategy *strategy, const char *network_name,
                 const char *network_text, PlanForm form, GError **error);
