/* cli/published/published.h - tables of published measurements, and what is known of their words.
 *
 * models/published/TABLE.ini maps a table's words to clusters and settings (rules.h). Clusters are
 * read once, however many rows name them.
 *
 * Owns: rules and clusters. Threads: any, but what is tuned is tuned before.
 */
#pragma once

#include "cli/published/rules.h"
#include "models/cluster.h"

typedef struct _CliPublished CliPublished;

/* table: "gemm", ...; words: what its rules may speak of. */
CliPublished *cli_published_open(const char *table, const CliRuleWords *words, GError **error);
void cli_published_free(CliPublished *published); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliPublished, cli_published_free)

const CliRules *cli_published_rules(const CliPublished *published);
/* By the setting `cluster`; transfer none. */
const ModelCluster *cli_published_cluster(CliPublished *published, const GPtrArray *settings,
                                          GError **error);
/* Why a row is left out: the setting `skip` unless it is "no"; NULL. */
const char *cli_published_skip(const GPtrArray *settings);
/* A number among the settings; the fallback where there is none. */
bool cli_published_number(const CliPublished *published, const GPtrArray *settings, const char *key,
                          double fallback, double *ret_value, GError **error);
/* For programs that fit: from now on this number ("section.key") of every run on GPUs of this name
 * (how [device] model begins) is `value`, whatever file and rules say. */
void cli_published_tune(CliPublished *published, const char *gpu, const char *key, double value);
/* Does so to a run's cluster. */
void cli_published_apply_tuning(const CliPublished *published, ModelCluster *cluster);
/* Every third row is held out of fitting, by a hash of what it says. */
bool cli_published_held_out(const CliCsvRow *row);
