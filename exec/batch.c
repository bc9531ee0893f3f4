#include "exec/batch.h"

#include "plan/mesh.h"

#include <string.h>

/* Tokens that a sample is made of: as many as all ranks that share it have, and its targets. */
static uint64_t whole_sample(const Plan *plan, const int64_t *d) {
    return (uint64_t)MAX(d[BATCH_SAMPLE_ELEMENTS], d[BATCH_TARGET_ELEMENTS]) *
           plan->axes[PLAN_AXIS_CONTEXT];
}

bool exec_batch_fits(const ExecContext *c, const PlanOp *op, GError **error) {
    if (op->kind != PLAN_OP_BATCH || !c->data) {
        return true;
    }
    const int64_t *d = plan_op_dims(c->role, op);
    return exec_data_fits(c->data, whole_sample(c->plan, d), d[BATCH_BOUND], error);
}

static bool sample(const ExecTask *t, uint64_t number, uint64_t n, float *vector, int64_t *x,
                   int64_t *y, GError **error) {
    const ExecContext *c = t->context;
    int64_t vocab = dims(t)[BATCH_BOUND];
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

/* Less than a whole sample: the rank's two parts of a sequence that it shares with others, or the
 * first tokens and targets where these are not as many. */
static bool part_of_sample(const ExecTask *t, uint64_t number, int64_t *x, int64_t *y,
                           GError **error) {
    const Plan *plan = t->context->plan;
    uint64_t n = whole_sample(plan, dims(t)), tokens = dim(t, BATCH_SAMPLE_ELEMENTS),
             half = tokens / 2;
    g_autofree int64_t *whole_x = g_new(int64_t, n), *whole_y = g_new(int64_t, n);
    if (!sample(t, number, n, NULL, whole_x, whole_y, error)) {
        return false;
    }
    if (plan->axes[PLAN_AXIS_CONTEXT] == 1) {
        memcpy(x, whole_x, tokens * sizeof *x);
        memcpy(y, whole_y, dim(t, BATCH_TARGET_ELEMENTS) * sizeof *y);
        return true;
    }
    for (unsigned i = 0; i < 2; i++) {
        uint64_t first = half * plan_part_of_sequence(plan, t->context->comm->rank, i);
        memcpy(x + i * half, whole_x + first, half * sizeof *x);
        memcpy(y + i * half, whole_y + first, half * sizeof *y);
    }
    return true;
}

bool exec_batch_fill(const ExecTask *t, gpointer x, gpointer y, GError **error) {
    const Plan *plan = t->context->plan;
    uint64_t samples = dim(t, BATCH_SAMPLES), n = dim(t, BATCH_SAMPLE_ELEMENTS),
             targets = dim(t, BATCH_TARGET_ELEMENTS);
    bool is_whole = plan->axes[PLAN_AXIS_CONTEXT] == 1 && targets == n;
    uint64_t first = batch_of(t) * samples;
    for (uint64_t i = 0; i < samples; i++) {
        int64_t *x_tokens = (int64_t *)x + i * n, *y_tokens = (int64_t *)y + i * targets;
        if (is_whole ? !sample(t, first + i, n, (float *)x + i * n, x_tokens, y_tokens, error)
                     : !part_of_sample(t, first + i, x_tokens, y_tokens, error)) {
            return false;
        }
    }
    return true;
}
