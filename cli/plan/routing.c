#include "cli/plan/routing.h"

#include "plan/strategy/strategy.h"

char *cli_routing_text(const Plan *plan) {
    PlanStrategy strategy;
    if (plan->axes[PLAN_AXIS_EXPERT] <= 1 ||
        !plan_strategy_of_text(&strategy, plan->strategy, NULL)) {
        return NULL;
    }
    return strategy.expert_overload > 1
               ? g_strdup_printf(
                     "routing: the busiest of %u ranks that share experts, with %g times "
                     "its even share of rows",
                     plan->axes[PLAN_AXIS_EXPERT], strategy.expert_overload)
               : g_strdup_printf("routing: taken as even among %u ranks that share experts (see "
                                 "--expert-overload)",
                                 plan->axes[PLAN_AXIS_EXPERT]);
}
