/* plan/strategy/rules.c - a rule's answer as an error. */
#include "plan/plan.h"
#include "plan/strategy/private.h"

bool plan_strategy_holds(const char *wrong, GError **error) {
    if (wrong) {
        g_set_error_literal(error, PLAN_ERROR, PLAN_ERROR_VALUE, wrong);
    }
    return !wrong;
}

bool plan_strategy_allows(const char *asked, const char *why_not, const char *instead,
                          GError **error) {
    g_autofree char *wrong =
        why_not ? g_strdup_printf("%s %s, or %s", asked, why_not, instead) : NULL;
    return plan_strategy_holds(wrong, error);
}
