#include "bench/fit-runs.h"

#include <math.h>

static void free_csv(gpointer csv) {
    cli_csv_free(csv);
}

bool fit_runs_open(FitRuns *runs, const char *gpu, char *const *paths, int n_paths,
                   GError **error) {
    *runs = (FitRuns){.gpu = gpu, .tables = g_ptr_array_new_with_free_func(free_csv)};
    runs->published = cli_published_open("train", &cli_train_words, error);
    bool good = runs->published != NULL;
    for (int i = 0; good && i < n_paths; i++) {
        CliCsv *csv = cli_csv_read(paths[i], error);
        good = csv && cli_train_check(csv, error);
        g_ptr_array_add(runs->tables, csv);
    }
    return good;
}

void fit_runs_clear(FitRuns *runs) {
    cli_published_free(runs->published);
    g_ptr_array_unref(runs->tables);
}

static bool is_of(const FitRuns *runs, const CliTrainRow *row) {
    return !row->skipped && row->gpu && g_str_has_prefix(row->gpu, runs->gpu) &&
           !isnan(row->measured_ms);
}

bool fit_runs_predict(const FitRuns *runs, bool (*asks)(gpointer self, const CliCsvRow *row),
                      void (*take)(gpointer self, guint table, const CliTrainRow *run),
                      gpointer self, GError **error) {
    for (guint t = 0; t < runs->tables->len; t++) {
        const CliCsv *csv = runs->tables->pdata[t];
        for (unsigned i = 0; i < csv->n_rows; i++) {
            CliTrainRow row;
            if (asks && !asks(self, &csv->rows[i])) {
                continue;
            }
            if (!cli_train_predict(csv, &csv->rows[i], runs->published, &row, error)) {
                return false;
            }
            if (is_of(runs, &row)) {
                take(self, t, &row);
            }
            cli_train_row_clear(&row);
        }
    }
    return true;
}
