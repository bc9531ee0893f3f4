/* cli/published/rules.h - from the words of a published table to our settings, as data.
 *
 * A rules file is an ini file. Each section is a rule: its keys `if.COLUMN = PATTERN` say which
 * rows it is for (all of them must fit), its other keys are what such a row is given. Rules apply
 * from top to bottom, and a later one overrides what an earlier one gave: the general first, then
 * its exceptions. A pattern is text of any case with * and ?, or several of them with | between;
 * a ! before all of it turns it round; "-" is the empty field. "@RULE" is the pattern that a rule
 * above has for the same column. `skip = no` takes back, of the reasons to skip a row, those whose
 * rules ask for a column that its rule asks for (rules.c). `assumed` and `fitted` name those of a
 * rule's settings, with commas between, that its source does not say. A rule with `unless_fits = N`
 * holds only where what was given without it, and without those of N and more, does not fit.
 *
 * Owns: its strings. Threads: const after reading, so any number.
 */
#pragma once

#include "cli/published/csv.h"
#include "plan/files/ini.h"

typedef struct {
    PlanIni *ini;
} CliRules;

/* What a kind of table knows, each list with NULL at its end. */
typedef struct {
    const char *const *columns; /* an if. may name these */
    const char *const
        *settings; /* and rules may set these; "strategy." stands for all that begin so */
} CliRuleWords;

CliRules *cli_rules_read(const char *path, const CliRuleWords *words, GError **error);
void cli_rules_free(CliRules *rules); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliRules, cli_rules_free)

/* The settings of a row, in the order in which they were first given: PlanIniEntry const *, each
 * with its line. without: NULL, or the name of a table as though it had never been fitted to: then
 * rules with `left_out` for that table hold too. n_unfit: up to which `unless_fits` rules hold.
 * Transfer container: g_ptr_array_unref(). */
GPtrArray *cli_rules_apply(const CliRules *rules, const CliCsv *csv, const CliCsvRow *row,
                           const char *without, unsigned n_unfit);
/* What `skip` is once a rule has given this entry of that name: the last of the reasons that stand,
 * or the entry where none does. reasons: of the same row, PlanIniEntry const *; changed. */
const PlanIniEntry *cli_rules_skip(const CliRules *rules, GPtrArray *reasons,
                                   const PlanIniEntry *entry);
/* Why a setting is what it is. */
typedef enum {
    CLI_RULE_OF_ROW, /* the row's own field */
    CLI_RULE_FROM_SOURCE,
    CLI_RULE_ASSUMED,
    CLI_RULE_FITTED,
    CLI_N_RULE_REASONS
} CliRuleReason;

CliRuleReason cli_rules_reason(const CliRules *rules, const PlanIniEntry *setting);
/* The largest `unless_fits`; 0: there is none. */
unsigned cli_rules_most_unfit(const CliRules *rules);
/* Whether there is such a rule. */
bool cli_rules_leave_out(const CliRules *rules, const char *table);
/* The one with this key, or NULL; its value, or NULL. */
const PlanIniEntry *cli_rules_entry(const GPtrArray *settings, const char *key);
const char *cli_rules_value(const GPtrArray *settings, const char *key);
