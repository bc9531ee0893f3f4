#include "cli/choose/ahead.h"

#include "cli/choose/private.h"
#include "cli/host/workers.h"

#include <pthread.h>

typedef enum {
    ROW_WAITS,
    ROW_BEGUN,
    ROW_DONE /* or passed, or the searcher's own */
} RowState;

typedef struct {
    CliJob job;
    guint number;
    RowState state;
    GArray *found; /* CliAheadFound; NULL: none yet */
} Row;

struct _CliAhead {
    CliAheadWork *work;
    gpointer self;
    CliWorkers *workers; /* NULL: not begun */
    guint n_threads;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    Row *rows;
    guint n_rows;
};

CliAhead *cli_ahead_new(guint n_rows, guint threads, CliAheadWork *work, gpointer self) {
    CliAhead *ahead = g_new0(CliAhead, 1);
    pthread_mutex_init(&ahead->mutex, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    ahead->work = work;
    ahead->self = self;
    ahead->n_threads = threads;
    ahead->n_rows = n_rows;
    ahead->rows = g_new0(Row, n_rows);
    return ahead;
}

static void clear_found(gpointer data) {
    CliAheadFound *found = data;
    cli_choice_clear(&found->choice);
    g_clear_error(&found->refusal);
}

/* False: it was in another state. */
static bool change_state(CliAhead *ahead, Row *row, RowState from, RowState to) {
    pthread_mutex_lock(&ahead->mutex);
    bool is_from = row->state == from;
    row->state = is_from ? to : row->state;
    pthread_cond_signal(&ahead->changed);
    pthread_mutex_unlock(&ahead->mutex);
    return is_from;
}

static void work_on(CliJob *job, gpointer self) {
    CliAhead *ahead = self;
    Row *row = (Row *)job;
    if (change_state(ahead, row, ROW_WAITS, ROW_BEGUN)) {
        ahead->work(ahead->self, row->number);
        change_state(ahead, row, ROW_BEGUN, ROW_DONE);
    }
}

void cli_ahead_begin(CliAhead *ahead) {
    if (ahead->workers == NULL) {
        ahead->workers = cli_workers_new(ahead->n_threads, work_on, ahead);
        for (guint i = 0; i < ahead->n_rows; i++) {
            ahead->rows[i].number = i;
            cli_workers_give(ahead->workers, &ahead->rows[i].job);
        }
    }
}

void cli_ahead_free(CliAhead *ahead) {
    if (ahead == NULL) {
        return;
    }
    for (guint row = 0; row < ahead->n_rows; row++) {
        cli_ahead_pass(ahead, row);
    }
    cli_workers_free(ahead->workers);
    for (guint row = 0; row < ahead->n_rows; row++) {
        g_clear_pointer(&ahead->rows[row].found, g_array_unref);
    }
    g_free(ahead->rows);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->mutex);
    g_free(ahead);
}

bool cli_ahead_put(CliAhead *ahead, guint row, CliAheadFound found) {
    pthread_mutex_lock(&ahead->mutex);
    Row *at = &ahead->rows[row];
    bool wanted = at->state == ROW_BEGUN;
    if (wanted) {
        if (at->found == NULL) {
            at->found = g_array_new(FALSE, FALSE, sizeof(CliAheadFound));
            g_array_set_clear_func(at->found, clear_found);
        }
        g_array_append_val(at->found, found);
        pthread_cond_signal(&ahead->changed);
    }
    pthread_mutex_unlock(&ahead->mutex);
    if (!wanted) {
        clear_found(&found);
    }
    return wanted;
}

/* What was put leaves the row. */
static bool find(Row *row, uint64_t micro_batch, CliAheadFound *ret) {
    for (guint i = 0; row->found != NULL && i < row->found->len; i++) {
        CliAheadFound *found = &g_array_index(row->found, CliAheadFound, i);
        if (found->micro_batch == micro_batch) {
            *ret = *found;
            *found = (CliAheadFound){0};
            g_array_remove_index(row->found, i);
            return true;
        }
    }
    return false;
}

bool cli_ahead_take(CliAhead *ahead, guint row, uint64_t micro_batch, CliAheadFound *ret) {
    pthread_mutex_lock(&ahead->mutex);
    Row *at = &ahead->rows[row];
    bool is_there;
    while (!(is_there = find(at, micro_batch, ret)) && at->state == ROW_BEGUN) {
        pthread_cond_wait(&ahead->changed, &ahead->mutex);
    }
    at->state = is_there ? at->state : ROW_DONE; /* no thread is to begin it any more */
    pthread_mutex_unlock(&ahead->mutex);
    return is_there;
}

void cli_ahead_pass(CliAhead *ahead, guint row) {
    pthread_mutex_lock(&ahead->mutex);
    ahead->rows[row].state = ROW_DONE;
    pthread_mutex_unlock(&ahead->mutex);
}
