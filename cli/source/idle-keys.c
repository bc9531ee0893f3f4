#include "cli/source/idle-keys.h"

#include "cli/options/command.h"

static bool has_any(const char *words, const char *const *list) {
    g_auto(GStrv) all = g_strsplit(words, " ", -1);
    bool any = false;
    for (char **word = all; *word != NULL; word++) {
        any |= g_strv_contains(list, *word);
    }
    return any;
}

void cli_idle_keys_note(const PlanStrategy *settled, const char *const *tried) {
    unsigned n;
    const PlanStrategyKey *keys = plan_strategy_keys(&n);
    for (unsigned i = 0; i < n; i++) {
        const char *key = keys[i].key, *decided_by = NULL;
        bool asks = settled->given[i] &&
                    (g_strv_contains(tried, key) || !plan_strategy_is_default(settled, key));
        const char *why = asks ? plan_strategy_why_idle(settled, key, &decided_by) : NULL;
        if (why != NULL && !has_any(decided_by, tried)) {
            cli_complain(CLI_OK, "note: %s changes nothing here: it %s", key, why);
        }
    }
}
