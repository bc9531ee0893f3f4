#include "sim/costs/strategy.h"

const PlanStrategy *sim_strategy(SimStrategy *strategy) {
    if (!strategy->is_asked_for) {
        strategy->is_asked_for = true;
        strategy->is_known = plan_strategy_of_text(&strategy->read, strategy->plan->strategy, NULL);
    }
    return strategy->is_known ? &strategy->read : NULL;
}
