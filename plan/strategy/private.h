/* plan/strategy/private.h - what the files that settle a strategy have between them. */
#pragma once

#include "plan/strategy/strategy.h"

/* Sets error to MESSAGE, PLAN_ERROR_VALUE. Returns false. */
bool plan_strategy_refuse(GError **error, const char *message);
/* What was ASKED, why that is NOT planned (NULL: it is, which is returned), and what to set
 * INSTEAD: "ASKED WHY_NOT, or INSTEAD". */
bool plan_strategy_allows(const char *asked, const char *why_not, const char *instead,
                          GError **error);

bool plan_strategy_is_hybrid(const PlanStrategy *strategy);
/* Ranks with the same part of each layer, of the same layers. */
uint64_t plan_strategy_ranks_of_part(const PlanStrategy *strategy);

/* What ranks share (shared.c): error where it was not recorded beside the other keys. */
bool plan_strategy_tensor_is_known(const PlanStrategy *s, GError **error);
bool plan_strategy_context_is_known(const PlanStrategy *s, GError **error);
bool plan_strategy_experts_are_known(const PlanStrategy *s, GError **error);
/* Units stay whole in stages unless the strategy says otherwise. */
bool plan_strategy_pipeline_is_known(PlanStrategy *s, GError **error);
