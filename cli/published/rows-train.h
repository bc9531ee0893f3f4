/* cli/published/rows-train.h - published training runs, and what we predict of them. */
#pragma once

#include "cli/published/published.h"
#include "cli/published/run-kind.h"

extern const CliRuleWords cli_train_words;

#define CLI_BYTES_PER_GIB 1073741824.0

typedef struct {
    unsigned line;
    char *label;    /* network, GPUs, sequence and batch */
    char *skipped;  /* why it is not predicted; then the rest is not set */
    char *settings; /* as the rules gave them, and the names of those rules */
    char *rules;
    GPtrArray *given;                         /* the same as the rules' entries: PlanIniEntry */
    char *gpu;                                /* how the cluster names it; NULL when skipped */
    char *cluster, *time_from, *network_link; /* NULL: said by nobody */
    unsigned gpus, nodes;
    bool fits;
    uint64_t retries;
    double measured_ms, predicted_ms; /* a step; NAN: not measured */
    char *contradicted;               /* train-time.h; NULL: the row's figures agree */
    double measured_gib, predicted_gib;
    double at_peak_ms; /* a step's products and attention, recomputed ones too, at the GPU's peak */
    const char *bound_by;
    CliRunKind kind;
    const char *gpu_kind; /* interned: "A100"; NULL when skipped */
} CliTrainRow;

/* Every number of every row reads as one. */
bool cli_train_check(const CliCsv *csv, GError **error);

/* False is an error in the table or the rules; what cannot be planned or has no time is a skipped
 * row. */
bool cli_train_predict(const CliCsv *csv, const CliCsvRow *row, CliPublished *published,
                       CliTrainRow *ret_row, GError **error);
/* And the time by the rules for when nothing was fitted to this table; NAN of a skipped row. */
bool cli_train_predict_twice(const CliCsv *csv, const CliCsvRow *row, CliPublished *published,
                             CliTrainRow *ret_row, double *ret_without_ms, GError **error);
/* Without a play: settings, and why a run is skipped; of what is predicted nothing is set.
 * A run that its play alone refuses is not skipped: one whose passes turn out not to repeat, and
 * whose plan of all of them is too large. */
bool cli_train_settle(const CliCsv *csv, const CliCsvRow *row, CliPublished *published,
                      CliTrainRow *ret_row, GError **error);
void cli_train_row_clear(CliTrainRow *row);
