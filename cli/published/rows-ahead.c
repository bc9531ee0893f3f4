#include "cli/published/rows-ahead.h"

#include "cli/host/cores.h"
#include "cli/host/workers.h"

#include <math.h>

typedef struct {
    CliJob job;
    const CliCsv *csv;
    const CliCsvRow *csv_row;
    CliPublished *published;
    CliRowsAsked asked;
    bool is_good;
    CliTrainRow row;
    double without_ms;
    GError *error;
} RowJob;

struct _CliRowsAhead {
    CliWorkers *workers;
    GPtrArray *jobs; /* RowJob, in the order of their rows */
    guint next;      /* to be taken */
};

static void predict(CliJob *job, gpointer self) {
    (void)self;
    RowJob *of = (RowJob *)job;
    of->without_ms = NAN;
    switch (of->asked) {
    case CLI_ROWS_SETTLED:
        of->is_good = cli_train_settle(of->csv, of->csv_row, of->published, &of->row, &of->error);
        break;
    case CLI_ROWS_PREDICTED:
        of->is_good = cli_train_predict(of->csv, of->csv_row, of->published, &of->row, &of->error);
        break;
    case CLI_ROWS_PREDICTED_TWICE:
        of->is_good = cli_train_predict_twice(of->csv, of->csv_row, of->published, &of->row,
                                              &of->without_ms, &of->error);
        break;
    }
}

/* What was taken is its taker's. */
static void free_job(gpointer data) {
    RowJob *job = data;
    if (job->is_good) {
        cli_train_row_clear(&job->row);
    }
    g_clear_error(&job->error);
    g_free(job);
}

CliRowsAhead *cli_rows_ahead_new(unsigned threads) {
    CliRowsAhead *ahead = g_new0(CliRowsAhead, 1);
    ahead->jobs = g_ptr_array_new_with_free_func(free_job);
    ahead->workers = cli_workers_new(cli_cores(threads, false), predict, NULL);
    return ahead;
}

void cli_rows_ahead_free(CliRowsAhead *ahead) {
    if (ahead) {
        cli_workers_free(ahead->workers);
        g_ptr_array_unref(ahead->jobs);
        g_free(ahead);
    }
}

void cli_rows_ahead_give(CliRowsAhead *ahead, const CliCsv *csv, CliPublished *published,
                         CliRowsAsked asked) {
    for (unsigned i = 0; i < csv->n_rows; i++) {
        RowJob *job = g_new(RowJob, 1);
        *job =
            (RowJob){.csv = csv, .csv_row = &csv->rows[i], .published = published, .asked = asked};
        g_ptr_array_add(ahead->jobs, job);
        cli_workers_give(ahead->workers, &job->job);
    }
}

bool cli_rows_ahead_take(CliRowsAhead *ahead, CliTrainRow *ret_row, double *ret_without_ms,
                         GError **error) {
    g_assert(ahead->next < ahead->jobs->len);
    RowJob *job = ahead->jobs->pdata[ahead->next++];
    cli_workers_wait(ahead->workers, &job->job);
    if (!job->is_good) {
        g_propagate_error(error, g_steal_pointer(&job->error));
        return false;
    }
    *ret_row = job->row;
    *ret_without_ms = job->without_ms;
    job->is_good = false;
    return true;
}
