/* bench/fit-runs.h - the published runs on one GPU, for programs that fit its cluster's numbers. */
#pragma once

#include "cli/published/rows-train.h"

typedef struct {
    CliPublished *published;
    const char *gpu;   /* how the model in its cluster file begins */
    GPtrArray *tables; /* CliCsv */
} FitRuns;

/* Reads the tables and their rules. Clear it either way. */
bool fit_runs_open(FitRuns *runs, const char *gpu, char *const *paths, int n_paths, GError **error);
void fit_runs_clear(FitRuns *runs);

/* Predicts every run on that GPU whose time is published, and hands it over. A file may hold out a
 * row before that: asks NULL, all. */
bool fit_runs_predict(const FitRuns *runs, bool (*asks)(gpointer self, const CliCsvRow *row),
                      void (*take)(gpointer self, guint table, const CliTrainRow *run),
                      gpointer self, GError **error);
