/* cli/published/train/case.h - a published training run on its way to a prediction: settings by the
 * rules, then a plan, then a play.
 *
 * What stands in the way of one run alone skips it; an error is one of the table or of the rules.
 *
 * Owns: all of a case but csv, source and published. Threads: one a case.
 */
#pragma once

#include "cli/published/rows-train.h"
#include "memory/options.h"
#include "models/network.h"
#include "plan/strategy/strategy.h"

typedef struct {
    const CliCsv *csv;
    const CliCsvRow *source; /* as the table has it */
    bool without_fits;       /* as though nothing had been fitted to the table */
    CliCsvRow row;           /* its open fields filled */
    CliPublished *published;
    GPtrArray *settings; /* PlanIniEntry */
    PlanStrategy strategy;
    ModelCluster *cluster;
    ModelNetwork *network;
    MemoryOptions allocator;
    Plan *plan;
    GString *said; /* the settings as text */
    char *skipped; /* why */
    bool unplayed; /* as SimOptions.unplayed */
} CliTrainCase;

void cli_train_case_clear(CliTrainCase *c);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CliTrainCase, cli_train_case_clear)

/* The row is skipped for it, unless it is already. Returns true: no error of the table's. */
bool cli_train_skip(CliTrainCase *c, const char *why);

/* Strategy, cluster and network as its settings have them; the cluster is the rules' until then. */
bool cli_train_case_settle(CliTrainCase *c, GError **error);
/* like: a case before this one, which is done with its plan; NULL: none. */
void cli_train_case_plan(CliTrainCase *c, CliTrainCase *like);
/* What was measured, and what is predicted of it. */
bool cli_train_case_play(CliTrainCase *c, CliTrainRow *row);
/* Whether the source counts recomputed operations, too. */
bool cli_train_tflops_are_all(const CliTrainCase *c);
