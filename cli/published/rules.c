#include "cli/published/rules.h"

#include <string.h>

#define CONDITION "if."
#define LEFT_OUT  "left_out"
#define UNFIT     "unless_fits"
#define AS_RULE   '@' /* before the name of the rule whose pattern it is */
#define ASSUMED   "assumed"
#define FITTED    "fitted"
#define SKIP      "skip"

enum {
    UNFIT_MOST = 9
};

static const char *column_of(const PlanIniEntry *entry) {
    return g_str_has_prefix(entry->key, CONDITION) ? entry->key + strlen(CONDITION) : NULL;
}

/* Not what a row is given, but when, or why. */
static bool is_of_rule(const PlanIniEntry *entry) {
    return column_of(entry) || g_str_equal(entry->key, LEFT_OUT) ||
           g_str_equal(entry->key, UNFIT) || g_str_equal(entry->key, ASSUMED) ||
           g_str_equal(entry->key, FITTED);
}

/* 0: no such entry, or no number from 1 to 9. */
static unsigned unfit_of(const PlanIniEntry *entry) {
    guint64 n = 0;
    bool is_number = g_str_equal(entry->key, UNFIT) &&
                     g_ascii_string_to_unsigned(entry->value, 10, 1, UNFIT_MOST, &n, NULL);
    return is_number ? (unsigned)n : 0;
}

static bool is_setting(const char *const *settings, const char *key) {
    for (; *settings; settings++) {
        bool is_prefix = g_str_has_suffix(*settings, ".");
        if (is_prefix ? g_str_has_prefix(key, *settings) : g_str_equal(key, *settings)) {
            return true;
        }
    }
    return false;
}

/* Of `assumed` or `fitted`: the settings that it names are the rule's. */
static bool check_named(const PlanIni *ini, const PlanIniEntry *entry, GError **error) {
    g_auto(GStrv) names = g_strsplit(entry->value, ",", -1);
    for (char **name = names; *name; name++) {
        const PlanIniEntry *named = plan_ini_find(ini, entry->section, g_strstrip(*name));
        if (!named || is_of_rule(named)) {
            return plan_ini_refuse(ini, entry, error,
                                   "%s = %s names no setting of the rule [%s]; name those that it "
                                   "has, with commas between",
                                   entry->key, *name, entry->section);
        }
    }
    return true;
}

static bool check_words(const CliRules *rules, const CliRuleWords *words, GError **error) {
    for (unsigned i = 0; i < rules->ini->n_entries; i++) {
        const PlanIniEntry *entry = &rules->ini->entries[i];
        const char *column = column_of(entry);
        if (column && !g_strv_contains(words->columns, column)) {
            return plan_ini_refuse(rules->ini, entry, error,
                                   "the tables have no column '%s'; name one that they have",
                                   column);
        }
        if (!is_of_rule(entry) && !is_setting(words->settings, entry->key)) {
            g_autofree char *all = g_strjoinv(", ", (char **)words->settings);
            return plan_ini_refuse(rules->ini, entry, error,
                                   "there is no setting '%s'; a rule of such tables has "
                                   "if.COLUMN, left_out, unless_fits, assumed, fitted, %s",
                                   entry->key, all);
        }
        if (g_str_equal(entry->key, UNFIT) && unfit_of(entry) == 0) {
            return plan_ini_refuse(rules->ini, entry, error,
                                   "unless_fits must be a whole number from 1 to %d, not '%s'",
                                   UNFIT_MOST, entry->value);
        }
        bool names = g_str_equal(entry->key, ASSUMED) || g_str_equal(entry->key, FITTED);
        if (names && !check_named(rules->ini, entry, error)) {
            return false;
        }
    }
    return true;
}

/* Conditions that are another rule's get its pattern: of a rule that stands above. */
static bool take_patterns(const CliRules *rules, GError **error) {
    for (unsigned i = 0; i < rules->ini->n_entries; i++) {
        PlanIniEntry *entry = &rules->ini->entries[i];
        if (!column_of(entry) || *entry->value != AS_RULE) {
            continue;
        }
        const PlanIniEntry *of = plan_ini_find(rules->ini, entry->value + 1, entry->key);
        if (!of || of >= entry) {
            return plan_ini_refuse(rules->ini, entry, error,
                                   "no rule [%s] above has %s; name one that has", entry->value + 1,
                                   entry->key);
        }
        entry->value = of->value;
    }
    return true;
}

CliRules *cli_rules_read(const char *path, const CliRuleWords *words, GError **error) {
    g_autoptr(CliRules) rules = g_new0(CliRules, 1);
    rules->ini = plan_ini_read_file(path, error);
    if (!rules->ini) {
        return NULL;
    }
    return check_words(rules, words, error) && take_patterns(rules, error) ? g_steal_pointer(&rules)
                                                                           : NULL;
}

void cli_rules_free(CliRules *rules) {
    if (rules) {
        plan_ini_free(rules->ini);
        g_free(rules);
    }
}

/* Whatever the case: sources write fsdp and FSDP, a100 and A100. */
static bool fits(const char *pattern, const char *given) {
    bool turned = *pattern == '!', found = false;
    g_autofree char *small = g_ascii_strdown(pattern + turned, -1);
    g_autofree char *text = g_ascii_strdown(given, -1);
    g_auto(GStrv) alternatives = g_strsplit(small, "|", -1);
    for (char **one = alternatives; *one; one++) {
        const char *alternative = g_strstrip(*one);
        found =
            found ||
            (g_str_equal(alternative, "-") ? !*text : g_pattern_match_simple(alternative, text));
    }
    return found != turned;
}

static void give(GPtrArray *settings, const PlanIniEntry *entry) {
    for (guint i = 0; i < settings->len; i++) {
        if (g_str_equal(((const PlanIniEntry *)settings->pdata[i])->key, entry->key)) {
            settings->pdata[i] = (gpointer)entry;
            return;
        }
    }
    g_ptr_array_add(settings, (gpointer)entry);
}

static unsigned section_start(const PlanIni *ini, const PlanIniEntry *entry) {
    unsigned i = (unsigned)(entry - ini->entries);
    while (i > 0 && g_str_equal(ini->entries[i - 1].section, entry->section)) {
        i--;
    }
    return i;
}

static bool asks_for(const PlanIni *ini, const PlanIniEntry *of, const char *column) {
    g_autofree char *key = g_strconcat(CONDITION, column, NULL);
    return plan_ini_find(ini, of->section, key) != NULL;
}

/* Whether a rule's `skip = no` is about the reason: the rule asks for a column that the reason's
 * rule asks for, other than whose program it is, since when, and in which words. Where that one
 * asks for these alone, they count; where it asks for nothing, it is of all rows. */
static bool takes_back(const PlanIni *ini, const PlanIniEntry *no, const PlanIniEntry *reason) {
    static const char *const aside[] = {"framework", "measured_date", "notes", NULL};
    bool asks = false, is_about_more = false, shares = false, shares_more = false;
    for (unsigned i = section_start(ini, reason); i < ini->n_entries; i++) {
        const PlanIniEntry *entry = &ini->entries[i];
        if (!g_str_equal(entry->section, reason->section)) {
            break;
        }
        const char *column = column_of(entry);
        bool is_more = column && !g_strv_contains(aside, column);
        bool is_shared = column && asks_for(ini, no, column);
        is_about_more |= is_more;
        asks |= column != NULL;
        shares |= is_shared;
        shares_more |= is_more && is_shared;
    }
    return is_about_more ? shares_more : shares || !asks;
}

const PlanIniEntry *cli_rules_skip(const CliRules *rules, GPtrArray *reasons,
                                   const PlanIniEntry *entry) {
    bool is_reason = !g_str_equal(entry->value, "no");
    if (is_reason) {
        g_ptr_array_add(reasons, (gpointer)entry);
    }
    for (guint i = reasons->len; i-- > 0 && !is_reason;) {
        if (takes_back(rules->ini, entry, reasons->pdata[i])) {
            g_ptr_array_remove_index(reasons, i);
        }
    }
    return reasons->len ? reasons->pdata[reasons->len - 1] : entry;
}

/* One rule: entries [first, end) of one section. */
static bool holds(const PlanIni *ini, unsigned first, unsigned end, const CliCsv *csv,
                  const CliCsvRow *row, const char *without, unsigned n_unfit) {
    for (unsigned i = first; i < end; i++) {
        const PlanIniEntry *entry = &ini->entries[i];
        const char *column = column_of(entry);
        if (column
                ? !fits(entry->value, cli_csv_text(csv, row, column))
                : g_str_equal(entry->key, LEFT_OUT) && !(without && fits(entry->value, without))) {
            return false;
        }
        if (unfit_of(entry) > n_unfit) {
            return false;
        }
    }
    return true;
}

static unsigned section_end(const PlanIni *ini, unsigned first) {
    unsigned end = first;
    while (end < ini->n_entries &&
           g_str_equal(ini->entries[end].section, ini->entries[first].section)) {
        end++;
    }
    return end;
}

GPtrArray *cli_rules_apply(const CliRules *rules, const CliCsv *csv, const CliCsvRow *row,
                           const char *without, unsigned n_unfit) {
    GPtrArray *settings = g_ptr_array_new();
    g_autoptr(GPtrArray) reasons = g_ptr_array_new();
    const PlanIni *ini = rules->ini;
    for (unsigned first = 0; first < ini->n_entries; first = section_end(ini, first)) {
        unsigned end = section_end(ini, first);
        bool given = holds(ini, first, end, csv, row, without, n_unfit);
        for (unsigned i = first; given && i < end; i++) {
            const PlanIniEntry *entry = &ini->entries[i];
            if (g_str_equal(entry->key, SKIP)) {
                give(settings, cli_rules_skip(rules, reasons, entry));
            } else if (!is_of_rule(entry)) {
                give(settings, entry);
            }
        }
    }
    return settings;
}

static bool is_named(const PlanIni *ini, const char *key, const PlanIniEntry *setting) {
    const PlanIniEntry *entry = plan_ini_find(ini, setting->section, key);
    g_auto(GStrv) names = g_strsplit(entry ? entry->value : "", ",", -1);
    for (char **name = names; *name; name++) {
        g_strstrip(*name);
    }
    return g_strv_contains((const char *const *)names, setting->key);
}

CliRuleReason cli_rules_reason(const CliRules *rules, const PlanIniEntry *setting) {
    return *setting->value == '$'                   ? CLI_RULE_OF_ROW
           : is_named(rules->ini, ASSUMED, setting) ? CLI_RULE_ASSUMED
           : is_named(rules->ini, FITTED, setting)  ? CLI_RULE_FITTED
                                                    : CLI_RULE_FROM_SOURCE;
}

unsigned cli_rules_most_unfit(const CliRules *rules) {
    unsigned most = 0;
    for (unsigned i = 0; i < rules->ini->n_entries; i++) {
        most = MAX(most, unfit_of(&rules->ini->entries[i]));
    }
    return most;
}

bool cli_rules_leave_out(const CliRules *rules, const char *table) {
    for (unsigned i = 0; i < rules->ini->n_entries; i++) {
        const PlanIniEntry *entry = &rules->ini->entries[i];
        if (g_str_equal(entry->key, LEFT_OUT) && fits(entry->value, table)) {
            return true;
        }
    }
    return false;
}

const PlanIniEntry *cli_rules_entry(const GPtrArray *settings, const char *key) {
    for (guint i = 0; i < settings->len; i++) {
        const PlanIniEntry *entry = settings->pdata[i];
        if (g_str_equal(entry->key, key)) {
            return entry;
        }
    }
    return NULL;
}

const char *cli_rules_value(const GPtrArray *settings, const char *key) {
    const PlanIniEntry *entry = cli_rules_entry(settings, key);
    return entry ? entry->value : NULL;
}
