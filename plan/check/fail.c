/* plan/check/fail.c - a fault, and the place in the plan where the walk found it. */
#include <stdarg.h>

#include "plan/check/private.h"

bool plan_check_fail(PlanCheck *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(c->error, PLAN_ERROR, PLAN_ERROR_CHECK, "role %u, section %s, instruction %u: %s",
                c->role_id, plan_section_name(c->section), c->index, message);
    return false;
}
