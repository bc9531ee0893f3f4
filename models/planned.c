/* models/planned.c - what is not known of a network as an error. */
#include <string.h>

#include "models/known-private.h"
#include "plan/plan.h"

const char *model_or_set(const char *why) {
    return why && strstr(why, "; ") ? ", or" : "; set";
}

bool model_is_planned(const ModelNetwork *network, const char *why, GError **error,
                      const char *format, ...) {
    if (why) {
        va_list arguments;
        va_start(arguments, format);
        g_autofree char *text = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s: %s", network->name, text);
    }
    return !why;
}

bool model_is_planned_with(const ModelNetwork *network, const char *key, uint64_t number,
                           uint64_t instead, const char *why, GError **error) {
    return model_is_planned(network, why, error,
                            "%s=%" G_GUINT64_FORMAT
                            " is not planned for %s%s %s=%" G_GUINT64_FORMAT,
                            key, number, why, model_or_set(why), key, instead);
}
