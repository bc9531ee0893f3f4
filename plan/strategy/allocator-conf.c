/* plan/strategy/allocator-conf.c - what a plan says of the allocator, as PyTorch takes it. */
#include "plan/strategy/strategy.h"

static const char *conf_of(const PlanVariant *allocator) {
    switch ((PlanAllocator)allocator->choice) {
    case PLAN_ALLOCATOR_CACHING:
        return "";
    case PLAN_ALLOCATOR_EXPANDABLE:
        return "expandable_segments:True";
    case PLAN_ALLOCATOR_CONF:
        return allocator->text;
    case PLAN_ALLOCATOR_ARENA:
        return NULL;
    }
    g_assert_not_reached();
}

bool plan_allocator_conf(const char *strategy_text, const char **ret_conf, GError **error) {
    PlanStrategy strategy;
    if (!plan_strategy_of_text(&strategy, strategy_text, error)) {
        g_prefix_error_literal(error, "the plan says its strategy in other words than this version "
                                      "has, so make it again: ");
        return false;
    }
    *ret_conf = conf_of(&strategy.allocator);
    return true;
}
