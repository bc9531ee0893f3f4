#include "cli/what-if-ahead.h"

typedef struct {
    char *changes;
    bool fit_only;
    bool is_done, is_taken; /* is_done: guarded */
    SimPrediction *prediction;
    GError *refusal;
} Job;

struct _CliWhatIfAhead {
    CliWhatIfPredict *predict;
    gconstpointer self;
    GThreadPool *pool;
    GMutex mutex;
    GCond done;
    GPtrArray *jobs; /* Job, in the order given */
};

static void work(gpointer data, gpointer user_data) {
    CliWhatIfAhead *ahead = user_data;
    Job *job = data;
    job->prediction = ahead->predict(ahead->self, job->changes, job->fit_only, &job->refusal);
    g_mutex_lock(&ahead->mutex);
    job->is_done = true;
    g_cond_signal(&ahead->done);
    g_mutex_unlock(&ahead->mutex);
}

static void free_job(gpointer data) {
    Job *job = data;
    g_free(job->changes);
    sim_prediction_free(job->prediction);
    g_clear_error(&job->refusal);
    g_free(job);
}

CliWhatIfAhead *cli_what_if_ahead_new(guint cores, CliWhatIfPredict *predict, gconstpointer self) {
    CliWhatIfAhead *ahead = g_new0(CliWhatIfAhead, 1);
    g_mutex_init(&ahead->mutex);
    g_cond_init(&ahead->done);
    ahead->predict = predict;
    ahead->self = self;
    ahead->jobs = g_ptr_array_new_with_free_func(free_job);
    ahead->pool = g_thread_pool_new(work, ahead, (gint)cores, FALSE, NULL);
    return ahead;
}

void cli_what_if_ahead_free(CliWhatIfAhead *ahead) {
    if (ahead != NULL) {
        g_thread_pool_free(ahead->pool, TRUE, TRUE);
        g_ptr_array_unref(ahead->jobs);
        g_cond_clear(&ahead->done);
        g_mutex_clear(&ahead->mutex);
        g_free(ahead);
    }
}

static Job *find(const CliWhatIfAhead *ahead, const char *changes, bool fit_only) {
    for (guint i = 0; i < ahead->jobs->len; i++) {
        Job *job = ahead->jobs->pdata[i];
        if (!job->is_taken && job->fit_only == fit_only && g_str_equal(job->changes, changes)) {
            return job;
        }
    }
    return NULL;
}

void cli_what_if_ahead_give(CliWhatIfAhead *ahead, const char *changes, bool fit_only) {
    Job *job = g_new(Job, 1);
    *job = (Job){.changes = g_strdup(changes), .fit_only = fit_only};
    g_ptr_array_add(ahead->jobs, job);
    g_thread_pool_push(ahead->pool, job, NULL);
}

bool cli_what_if_ahead_take(CliWhatIfAhead *ahead, const char *changes, bool fit_only,
                            SimPrediction **ret_prediction, GError **ret_refusal) {
    Job *job = find(ahead, changes, fit_only);
    if (job == NULL) {
        return false;
    }
    g_mutex_lock(&ahead->mutex);
    while (!job->is_done) {
        g_cond_wait(&ahead->done, &ahead->mutex);
    }
    g_mutex_unlock(&ahead->mutex);
    job->is_taken = true;
    *ret_prediction = g_steal_pointer(&job->prediction);
    if (job->refusal != NULL) {
        g_propagate_error(ret_refusal, g_steal_pointer(&job->refusal));
    }
    return true;
}
