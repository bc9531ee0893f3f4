/* plan/strategy/strategy.c - a strategy as a whole: set key by key, read from files, written. */
#include "plan/strategy/strategy.h"

#include <string.h>

#include "plan/files/file.h"
#include "plan/files/ini.h"
#include "plan/files/nearest.h"
#include "plan/plan.h"
#include "plan/strategy/private.h"

void plan_strategy_init(PlanStrategy *strategy) {
    memset(strategy->given, 0, sizeof strategy->given);
    for (unsigned row = 0; row < PLAN_N_KEYS; row++) {
        plan_key_init(strategy, row);
    }
}

/* A version's defaults are for what was not given. */
static bool set_pytorch(PlanStrategy *strategy, const char *value, GError **error) {
    unsigned version, row;
    if (!plan_pytorch_read(value, &version, error)) {
        return false;
    }
    strategy->pytorch = plan_pytorch_like(version);
    for (const PlanPytorchDefault *d = plan_pytorch_defaults; d->key; d++) {
        bool is_known = plan_strategy_find_key(d->key, &row);
        g_assert(is_known);
        if (d->since <= version && !strategy->given[row]) {
            is_known = plan_key_set(strategy, row, d->value, NULL);
            g_assert(is_known);
        }
    }
    return true;
}

static bool refuse_key(const char *key, GError **error) {
    unsigned n;
    const PlanStrategyKey *keys = plan_strategy_keys(&n);
    const char *names[PLAN_N_KEYS + 1] = {NULL};
    for (unsigned i = 0; i < n; i++) {
        names[i] = keys[i].key;
    }
    g_autofree char *near = plan_did_you_mean(key, names);
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "'%s' is no key of a strategy%s", key,
                *near ? near : "; `man foreshard-strategy` and --help-strategy list them");
    return false;
}

/* The value is one line. */
static bool set_line(PlanStrategy *strategy, const char *key, const char *value, GError **error) {
    unsigned row;
    if (!plan_strategy_find_key(key, &row)) {
        return refuse_key(key, error);
    }
    bool good = g_str_equal(key, "pytorch") ? set_pytorch(strategy, value, error)
                                            : plan_key_set(strategy, row, value, error);
    strategy->given[row] |= good;
    return good;
}

bool plan_strategy_set(PlanStrategy *strategy, const char *key, const char *value, GError **error) {
    if (!plan_ini_can_hold(value)) { /* a plan has its strategy as such lines */
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s must be one line without a comment (from '#' or ';' after a blank on), or "
                    "blanks around it, not '%s'",
                    key, value);
        return false;
    }
    return set_line(strategy, key, value, error);
}

bool plan_strategy_is_default(const PlanStrategy *strategy, const char *key) {
    PlanStrategy untouched;
    plan_strategy_init(&untouched);
    g_autofree char *version = plan_strategy_value(strategy, "pytorch");
    bool is_known = g_str_equal(key, "pytorch") || set_pytorch(&untouched, version, NULL);
    g_assert(is_known);
    g_autofree char *usual = plan_strategy_value(&untouched, key);
    g_autofree char *value = plan_strategy_value(strategy, key);
    return g_str_equal(value, usual);
}

bool plan_strategy_read(PlanStrategy *strategy, const char *text, gsize length,
                        const char *file_name, GError **error) {
    g_autoptr(PlanIni) ini = plan_ini_read(text, length, file_name, error);
    if (!ini) {
        return false;
    }
    for (unsigned i = 0; i < ini->n_entries; i++) {
        const PlanIniEntry *entry = &ini->entries[i];
        if (!g_str_equal(entry->section, "strategy")) {
            return plan_ini_refuse(ini, entry, error,
                                   "'%s' stands outside [strategy]; move it there", entry->key);
        }
        g_autoptr(GError) cause = NULL;
        if (!set_line(strategy, entry->key, entry->value, &cause)) {
            return plan_ini_refuse(ini, entry, error, "%s", cause->message);
        }
    }
    return true;
}

bool plan_strategy_of_text(PlanStrategy *ret, const char *text, GError **error) {
    plan_strategy_init(ret);
    return plan_strategy_read(ret, text, strlen(text), "strategy", error);
}

bool plan_strategy_of_words(PlanStrategy *ret, const char *words, GError **error) {
    g_auto(GStrv) settings = g_strsplit(words, " ", -1);
    plan_strategy_init(ret);
    for (char **setting = settings; *setting; setting++) {
        g_auto(GStrv) pair = g_strsplit(*setting, "=", 2);
        if (pair[0] && pair[1] && !plan_strategy_set(ret, pair[0], pair[1], error)) {
            return false;
        }
    }
    return plan_strategy_settle(ret, error);
}

/* Where others write their settings. Whoever names such a file here hopes that it is read. */
static bool is_other_programs(const char *path) {
    static const char *const endings[] = {".yaml", ".yml", ".toml", ".json", ".py"};
    bool is = false;
    for (unsigned i = 0; i < G_N_ELEMENTS(endings); i++) {
        is = is || g_str_has_suffix(path, endings[i]);
    }
    return is;
}

bool plan_strategy_read_file(PlanStrategy *strategy, const char *path, GError **error) {
    gsize length;
    g_autofree char *text = plan_file_text(path, &length, error);
    if (!text) {
        return false;
    }
    if (is_other_programs(path)) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_FILE,
                    "%s: a strategy is an ini file, as foreshard choose -o writes one; "
                    "docs/hugging-face.md translates Trainer's and accelerate's settings, "
                    "docs/own-run.md torchtitan's and a script's",
                    path);
        return false;
    }
    if (!plan_strategy_read(strategy, text, length, path, error)) {
        return false;
    }
    bool has_section = strstr(text, "[strategy]"); /* none: it was emptied, or is another file */
    if (!has_section) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_FILE,
                    "%s: this holds no strategy: it has no section [strategy], with lines "
                    "'key = value'",
                    path);
    }
    return has_section;
}

char *plan_strategy_value(const PlanStrategy *strategy, const char *key) {
    unsigned row;
    if (!plan_strategy_find_key(key, &row)) {
        return NULL;
    }
    GString *text = g_string_new(NULL);
    plan_key_append_value(strategy, row, text);
    return g_string_free(text, FALSE);
}

/* which: by key; NULL: all. */
static char *text_of(const PlanStrategy *strategy, const bool *which) {
    unsigned n;
    const PlanStrategyKey *keys = plan_strategy_keys(&n);
    GString *text = g_string_new("[strategy]\n");
    for (unsigned i = 0; i < n; i++) {
        if (!which || which[i]) {
            g_string_append_printf(text, "%s = ", keys[i].key);
            plan_key_append_value(strategy, i, text);
            g_string_append_c(text, '\n');
        }
    }
    return g_string_free(text, FALSE);
}

char *plan_strategy_text(const PlanStrategy *strategy) {
    return text_of(strategy, NULL);
}

char *plan_strategy_given_text(const PlanStrategy *strategy) {
    return text_of(strategy, strategy->given);
}
