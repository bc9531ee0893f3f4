/* plan/strategy/private.h - what the files that settle a strategy have between them. */
#pragma once

#include "plan/strategy/strategy.h"

/* Sets error to MESSAGE, PLAN_ERROR_VALUE. Returns false. */
bool plan_strategy_refuse(GError **error, const char *message);

/* What ranks share (shared.c): error where it was not recorded beside the other keys. */
bool plan_strategy_tensor_is_known(const PlanStrategy *s, GError **error);
bool plan_strategy_context_is_known(const PlanStrategy *s, GError **error);
bool plan_strategy_experts_are_known(const PlanStrategy *s, GError **error);
/* Units stay whole in stages unless the strategy says otherwise. */
bool plan_strategy_pipeline_is_known(PlanStrategy *s, GError **error);
