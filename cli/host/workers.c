/* cli/host/workers.c - a line of jobs, and threads that take the next one.
 *
 * The locks are POSIX's, not GLib's: ThreadSanitizer knows those, so it can tell whether two jobs
 * share what they should not (./setup test runs cli/cores under it).
 */
#include "cli/host/workers.h"

#include <pthread.h>

struct _CliWorkers {
    CliJobRun *run;
    gpointer self;
    pthread_mutex_t mutex;      /* of what follows */
    pthread_cond_t given, done; /* a job, or the end; a job */
    GPtrArray *line;            /* CliJob, in the order given */
    guint n_begun;              /* of the line */
    bool is_over;
    guint n_threads;
    GThread *threads[];
};

/* Waits for one. NULL: there will be none. */
static CliJob *begin_next(CliWorkers *workers) {
    pthread_mutex_lock(&workers->mutex);
    while (!workers->is_over && workers->n_begun == workers->line->len) {
        pthread_cond_wait(&workers->given, &workers->mutex);
    }
    CliJob *job = workers->is_over ? NULL : workers->line->pdata[workers->n_begun++];
    pthread_mutex_unlock(&workers->mutex);
    return job;
}

static gpointer work(gpointer data) {
    CliWorkers *workers = data;
    for (CliJob *job; (job = begin_next(workers)) != NULL;) {
        workers->run(job, workers->self);
        pthread_mutex_lock(&workers->mutex);
        job->is_done = true;
        pthread_cond_signal(&workers->done);
        pthread_mutex_unlock(&workers->mutex);
    }
    return NULL;
}

CliWorkers *cli_workers_new(guint threads, CliJobRun *run, gpointer self) {
    CliWorkers *workers = g_malloc0(sizeof(CliWorkers) + threads * sizeof(GThread *));
    pthread_mutex_init(&workers->mutex, NULL);
    pthread_cond_init(&workers->given, NULL);
    pthread_cond_init(&workers->done, NULL);
    workers->run = run;
    workers->self = self;
    workers->line = g_ptr_array_new();
    for (; workers->n_threads < threads; workers->n_threads++) {
        workers->threads[workers->n_threads] = g_thread_new("jobs", work, workers);
    }
    return workers;
}

void cli_workers_free(CliWorkers *workers) {
    if (workers == NULL) {
        return;
    }
    pthread_mutex_lock(&workers->mutex);
    workers->is_over = true;
    pthread_cond_broadcast(&workers->given);
    pthread_mutex_unlock(&workers->mutex);
    for (guint i = 0; i < workers->n_threads; i++) {
        g_thread_join(workers->threads[i]);
    }
    g_ptr_array_unref(workers->line);
    pthread_cond_destroy(&workers->done);
    pthread_cond_destroy(&workers->given);
    pthread_mutex_destroy(&workers->mutex);
    g_free(workers);
}

void cli_workers_give(CliWorkers *workers, CliJob *job) {
    pthread_mutex_lock(&workers->mutex);
    g_ptr_array_add(workers->line, job);
    pthread_cond_signal(&workers->given);
    pthread_mutex_unlock(&workers->mutex);
}

void cli_workers_wait(CliWorkers *workers, CliJob *job) {
    pthread_mutex_lock(&workers->mutex);
    while (!job->is_done) {
        pthread_cond_wait(&workers->done, &workers->mutex);
    }
    pthread_mutex_unlock(&workers->mutex);
}
