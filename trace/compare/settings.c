/* trace/compare/settings.c - in which settings two strategies differ, though their instructions do
 * not: those that choose a kernel, or numbers of an optimizer. */
#include "trace/compare/private.h"

char *trace_compare_settings(const TraceComparison *comparison, guint side) {
    const char *own = trace_get(comparison->traces[side], "strategy");
    const char *others = trace_get(comparison->traces[1 - side], "strategy");
    if (own == NULL || others == NULL) {
        return NULL;
    }
    g_auto(GStrv) words = g_strsplit(own, " ", -1);
    g_auto(GStrv) known = g_strsplit(others, " ", -1);
    g_autoptr(GString) differing = g_string_new(NULL);
    for (char **word = words; *word != NULL; word++) {
        if (!g_strv_contains((const char *const *)known, *word)) {
            g_string_append_printf(differing, "%s%s", differing->len > 0 ? " " : "", *word);
        }
    }
    return differing->len > 0 ? g_strdup(differing->str) : NULL;
}
