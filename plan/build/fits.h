/* plan/build/fits.h - whether a strategy can be planned for this network. Inside plan/ only. */
#pragma once

#include "plan/autograd/tensor.h"

/* run: as it begins. The error names the module or parameter, and what to set. */
bool plan_strategy_fits(const PlanRun *run, GError **error);
