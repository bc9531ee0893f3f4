#include "cli/validate/rows-ahead.h"

#include <math.h>

#include "cli/cores.h"

typedef struct {
    const CliCsv *csv;
    const CliCsvRow *csv_row;
    CliPublished *published;
    bool twice;
    bool is_done, is_good; /* is_done: guarded */
    CliTrainRow row;
    double without_ms;
    GError *error;
} Job;

struct _CliRowsAhead {
    GThreadPool *pool;
    GMutex mutex;
    GCond done;
    GPtrArray *jobs; /* Job, in the order of their rows */
    guint next;      /* to be taken */
};

static void predict(Job *job) {
    job->without_ms = NAN;
    job->is_good = job->twice ? cli_train_predict_twice(job->csv, job->csv_row, job->published,
                                                        &job->row, &job->without_ms, &job->error)
                              : cli_train_predict(job->csv, job->csv_row, job->published, &job->row,
                                                  &job->error);
}

static void work(gpointer data, gpointer user_data) {
    CliRowsAhead *ahead = user_data;
    Job *job = data;
    predict(job);
    g_mutex_lock(&ahead->mutex);
    job->is_done = true;
    g_cond_signal(&ahead->done);
    g_mutex_unlock(&ahead->mutex);
}

/* What was taken is its taker's. */
static void free_job(gpointer data) {
    Job *job = data;
    if (job->is_done && job->is_good) {
        cli_train_row_clear(&job->row);
    }
    g_clear_error(&job->error);
    g_free(job);
}

CliRowsAhead *cli_rows_ahead_new(unsigned threads) {
    CliRowsAhead *ahead = g_new0(CliRowsAhead, 1);
    g_mutex_init(&ahead->mutex);
    g_cond_init(&ahead->done);
    ahead->jobs = g_ptr_array_new_with_free_func(free_job);
    ahead->pool = g_thread_pool_new(work, ahead, (int)cli_cores(threads, false), FALSE, NULL);
    return ahead;
}

void cli_rows_ahead_free(CliRowsAhead *ahead) {
    if (ahead) {
        g_thread_pool_free(ahead->pool, TRUE, TRUE);
        g_ptr_array_unref(ahead->jobs);
        g_cond_clear(&ahead->done);
        g_mutex_clear(&ahead->mutex);
        g_free(ahead);
    }
}

void cli_rows_ahead_give(CliRowsAhead *ahead, const CliCsv *csv, CliPublished *published,
                         bool twice) {
    for (unsigned i = 0; i < csv->n_rows; i++) {
        Job *job = g_new(Job, 1);
        *job = (Job){.csv = csv, .csv_row = &csv->rows[i], .published = published, .twice = twice};
        g_ptr_array_add(ahead->jobs, job);
        g_thread_pool_push(ahead->pool, job, NULL);
    }
}

bool cli_rows_ahead_take(CliRowsAhead *ahead, CliTrainRow *ret_row, double *ret_without_ms,
                         GError **error) {
    g_assert(ahead->next < ahead->jobs->len);
    Job *job = ahead->jobs->pdata[ahead->next++];
    g_mutex_lock(&ahead->mutex);
    while (!job->is_done) {
        g_cond_wait(&ahead->done, &ahead->mutex);
    }
    g_mutex_unlock(&ahead->mutex);
    if (!job->is_good) {
        g_propagate_error(error, g_steal_pointer(&job->error));
        return false;
    }
    *ret_row = job->row;
    *ret_without_ms = job->without_ms;
    job->is_good = false;
    return true;
}
