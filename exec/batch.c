#include "exec/batch.h"

#include <string.h>

bool exec_batch_fits(const ExecContext *c, const PlanOp *op, GError **error) {
    if (op->kind != PLAN_OP_BATCH || !c->data) {
        return true;
    }
    const int64_t *d = plan_op_dims(c->role, op);
    uint64_t longest = (uint64_t)MAX(d[BATCH_SAMPLE_ELEMENTS], d[BATCH_TARGET_ELEMENTS]);
    return exec_data_fits(c->data, longest * c->plan->axes[PLAN_AXIS_CONTEXT], d[BATCH_BOUND],
                          error);
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

/* The rank's two parts of a sequence of tokens that it shares with others. */
static bool parts_of_sample(const ExecTask *t, uint64_t number, int64_t *x, int64_t *y,
                            GError **error) {
    const Plan *plan = t->context->plan;
    uint64_t half = dim(t, BATCH_SAMPLE_ELEMENTS) / 2,
             n = dim(t, BATCH_SAMPLE_ELEMENTS) * plan->axes[PLAN_AXIS_CONTEXT];
    g_autofree int64_t *whole_x = g_new(int64_t, n), *whole_y = g_new(int64_t, n);
    if (!sample(t, number, n, NULL, whole_x, whole_y, error)) {
        return false;
    }
    for (unsigned i = 0; i < 2; i++) {
        uint64_t first = half * plan_part_of_sequence(plan, t->context->comm->rank, i);
        memcpy(x + i * half, whole_x + first, half * sizeof *x);
        memcpy(y + i * half, whole_y + first, half * sizeof *y);
    }
    return true;
}

/* Targets that are fewer or more than the tokens: each is the first so many of its kind. */
static bool two_lengths_of_sample(const ExecTask *t, uint64_t number, int64_t *x, int64_t *y,
                                  GError **error) {
    uint64_t tokens = dim(t, BATCH_SAMPLE_ELEMENTS), targets = dim(t, BATCH_TARGET_ELEMENTS);
    uint64_t n = MAX(tokens, targets);
    g_autofree int64_t *whole_x = g_new(int64_t, n), *whole_y = g_new(int64_t, n);
    if (!sample(t, number, n, NULL, whole_x, whole_y, error)) {
        return false;
    }
    memcpy(x, whole_x, tokens * sizeof *x);
    memcpy(y, whole_y, targets * sizeof *y);
    return true;
}

bool exec_batch_fill(const ExecTask *t, gpointer x, gpointer y, GError **error) {
    const Plan *plan = t->context->plan;
    bool shares = plan->axes[PLAN_AXIS_CONTEXT] > 1;
    uint64_t samples = dim(t, BATCH_SAMPLES), n = dim(t, BATCH_SAMPLE_ELEMENTS);
    uint64_t first =
        (t->pass * plan_n_batches(plan) + plan_batch_of_rank(plan, t->context->comm->rank)) *
        samples;
    uint64_t targets = dim(t, BATCH_TARGET_ELEMENTS);
    for (uint64_t i = 0; i < samples; i++) {
        int64_t *x_tokens = (int64_t *)x + i * n, *y_tokens = (int64_t *)y + i * targets;
        if (shares ? !parts_of_sample(t, first + i, x_tokens, y_tokens, error)
            : targets != n
                ? !two_lengths_of_sample(t, first + i, x_tokens, y_tokens, error)
                : !sample(t, first + i, n, (float *)x + i * n, x_tokens, y_tokens, error)) {
            return false;
        }
    }
    return true;
}
