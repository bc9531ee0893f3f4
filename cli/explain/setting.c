/* cli/explain/setting.c - what a setting of the strategy does, what it is here, and how to see what
 * another value would change.
 */
#include "cli/options/setting.h"
#include "cli/explain/private.h"
#include "plan/strategy/strategy.h"

bool explain_setting(GString *text, const CliSubject *subject, const char *name) {
    unsigned n, row;
    const PlanStrategyKey *keys = plan_strategy_keys(&n);
    g_autofree char *key = g_strdelimit(g_strdup(name), "-", '_');
    if (!plan_strategy_find_key(key, &row)) {
        return false;
    }
    g_auto(GStrv) settings = cli_settings_split(trace_get(subject->trace, "strategy"));
    const char *here = cli_settings_value(settings, key);
    g_autofree char *option = g_strdelimit(g_strdup(key), "_", '-');
    g_string_append_printf(text, "%s is a setting (--%s), here %s: %s\n", key, option,
                           here != NULL ? here : "not told", keys[row].help);
    if (keys[row].choices != NULL) {
        g_auto(GStrv) choices = g_strsplit(keys[row].choices, " ", -1);
        g_autofree char *list = g_strjoinv(", ", choices);
        g_string_append_printf(text, "it is one of %s\n", list);
    }
    g_string_append_printf(text,
                           "what another value changes: foreshard plot NETWORK --knob %s=A,B; "
                           "foreshard diagnose tries one setting at a time\n",
                           key);
    return true;
}
