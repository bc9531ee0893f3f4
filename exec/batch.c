#include "exec/batch.h"

static bool sample(const ExecTask *t, uint64_t number, float *vector, int64_t *x, int64_t *y,
                   GError **error) {
    const ExecContext *c = t->context;
    uint64_t n = dim(t, 1);
    int64_t vocab = dims(t)[2];
    if (!vocab) {
        exec_data_vector(vector, n, c->seed, number);
        return true;
    }
    if (c->data) {
        return exec_data_file_tokens(c->data, x, y, n, vocab, number, error);
    }
    exec_data_tokens(x, y, n, vocab, c->seed, number);
    return true;
}

bool exec_batch_fill(const ExecTask *t, gpointer x, gpointer y, GError **error) {
    const Plan *plan = t->context->plan;
    uint64_t samples = dim(t, 0), n = dim(t, 1);
    uint64_t first =
        (t->turn * plan_n_batches(plan) + plan_batch_of_rank(plan, t->context->comm->rank)) *
        samples;
    for (uint64_t i = 0; i < samples; i++) {
        if (!sample(t, first + i, (float *)x + i * n, (int64_t *)x + i * n, (int64_t *)y + i * n,
                    error)) {
            return false;
        }
    }
    return true;
}
