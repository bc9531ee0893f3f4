/* plan/autograd/shared/loss.c - the loss of logits of which each rank has some columns, by
 * PyTorch's ops: loss_parallel of torch.distributed.tensor.parallel, as recorded (*-tensor-*).
 *
 * Three all-reduces of a number a row: the largest, the sum of exponentials, what is picked.
 */
#include "plan/autograd/shared/words.h"

/* One kernel of one tensor into another. */
static PlanTensor applied(PlanRun *run, PlanOpKind kind, PlanTensor x, uint64_t elements,
                          const int64_t *op_dims, double attr, const char *name) {
    PlanTensor y = new_like(run, x, elements, name);
    LAUNCH(run, kind, op_dims, &attr, x, y);
    return y;
}

/* A copy, or the tensor itself where it has that dtype. */
static PlanTensor in_dtype(PlanRun *run, PlanTensor x, PlanDtype dtype, const char *name) {
    if (plan_run_dtype_of(run, x) == dtype) {
        return plan_run_ref(run, x);
    }
    PlanTensor y = plan_run_new_tensor(run, x.elements, dtype, name);
    LAUNCH(run, PLAN_OP_CAST, DIMS((int64_t)x.elements), NULL, x, y);
    return y;
}

static PlanTensor less_column(PlanRun *run, PlanTensor x, PlanTensor column, int64_t rows,
                              int64_t cols, const char *name) {
    PlanTensor y = new_like(run, x, x.elements, name);
    LAUNCH(run, PLAN_OP_SUB_COLUMN, DIMS([SUB_COLUMN_ROWS] = rows, [SUB_COLUMN_COLS] = cols), NULL,
           x, column, y);
    return y;
}

static PlanTensor divided(PlanRun *run, PlanTensor a, PlanTensor by, const char *name) {
    PlanTensor y = new_like(run, a, 1, name);
    LAUNCH(run, PLAN_OP_DIVIDE, DIMS(1), NULL, a, by, y);
    return y;
}

/* Logarithms of the softmax over all ranks' columns, in fp32 and rounded to the logits' dtype. */
static PlanTensor log_softmax(PlanRun *run, PlanTensor logits, int64_t rows, int64_t cols) {
    int64_t shape[] = {rows, cols}, row[] = {rows}, all[] = {rows * cols};
    uint64_t n = (uint64_t)rows;
    PlanTensor x = in_dtype(run, logits, PLAN_FP32, "logits_wide");
    PlanTensor own = applied(run, PLAN_OP_MAX_COLUMNS, x, n, shape, 0, "max");
    PlanTensor most = plan_shared_reduced(run, own, PLAN_REDUCTION_MAX);
    drop(run, own);
    PlanTensor shifted = less_column(run, x, most, rows, cols, "shifted");
    PlanTensor exps = applied(run, PLAN_OP_EXP, shifted, x.elements, all, 0, "exps");
    own = applied(run, PLAN_OP_SUM_COLUMNS, exps, n, shape, 1, "sum");
    drop(run, exps);
    PlanTensor sum = plan_shared_reduced(run, own, PLAN_REDUCTION_SUM);
    drop(run, own);
    PlanTensor logs = applied(run, PLAN_OP_LOG, sum, n, row, 0, "logs");
    PlanTensor wide = less_column(run, shifted, logs, rows, cols, "logp");
    PlanTensor y = in_dtype(run, wide, plan_run_dtype_of(run, logits), "logp");
    drop(run, wide);
    drop(run, x);
    drop(run, shifted);
    drop(run, most);
    drop(run, sum);
    drop(run, logs);
    return y;
}

/* A target that does not count looks up something, too. */
static PlanTensor safe_target(PlanRun *run, PlanTensor target, int64_t rows) {
    PlanTensor mask = plan_run_new_tensor(run, (uint64_t)rows, PLAN_UINT8, "counts_mask");
    PlanTensor safe = new_like(run, target, (uint64_t)rows, "safe_target");
    LAUNCH(run, PLAN_OP_SAFE_TARGET, DIMS(rows), NULL, target, mask, safe);
    drop(run, mask);
    return safe;
}

static PlanTensor number_of_targets(PlanRun *run, PlanTensor target, int64_t rows,
                                    PlanDtype dtype) {
    PlanTensor mask = plan_run_new_tensor(run, (uint64_t)rows, PLAN_UINT8, "counts_mask");
    PlanTensor count = new_like(run, target, 1, "count");
    LAUNCH(run, PLAN_OP_COUNT_TARGETS, DIMS(rows), NULL, target, mask, count);
    drop(run, mask);
    PlanTensor total = plan_run_new_tensor(run, 1, dtype, "total");
    LAUNCH(run, PLAN_OP_AS_NUMBER, DIMS(1), NULL, count, total);
    drop(run, count);
    return total;
}

void plan_shared_loss_forward(PlanRun *run, const PlanGraphOp *op) {
    const int64_t *d = plan_graph_dims_of(run->graph, op);
    int64_t rows = d[CROSS_ENTROPY_ROWS], cols = d[CROSS_ENTROPY_COLS], row[] = {rows};
    uint64_t n = (uint64_t)rows;
    PlanTensor target = plan_run_given(run, op, 1);
    PlanTensor logp = log_softmax(run, plan_run_given(run, op, 0), rows, cols);
    PlanTensor safe = safe_target(run, target, rows);
    PlanSharedLocal local = plan_shared_local_of(run, safe, rows, cols);
    PlanTensor picked = new_like(run, logp, n, "picked");
    LAUNCH(run, PLAN_OP_PICK_COLUMN, DIMS([PICK_COLUMN_ROWS] = rows, [PICK_COLUMN_COLS] = cols),
           NULL, logp, local.index, picked);
    LAUNCH(run, PLAN_OP_ZERO_MASKED, DIMS([ZERO_MASKED_ROWS] = rows, [ZERO_MASKED_WIDTH] = 1), NULL,
           local.mask, picked);
    drop(run, local.mask);
    PlanTensor whole = plan_shared_reduced(run, picked, PLAN_REDUCTION_SUM);
    PlanTensor negated = applied(run, PLAN_OP_TIMES_NUMBER, whole, n, row, -1, "negated");
    PlanTensor mask = plan_run_new_tensor(run, n, PLAN_UINT8, "counts_mask");
    PlanTensor counted = new_like(run, negated, n, "losses");
    LAUNCH(run, PLAN_OP_KEEP_COUNTED, row, NULL, negated, target, mask, counted);
    drop(run, mask);
    drop(run, negated);
    PlanTensor total = number_of_targets(run, target, rows, plan_run_dtype_of(run, logp));
    PlanTensor sum = applied(run, PLAN_OP_SUM_COLUMNS, counted, 1, DIMS(1, rows), 1, "sum");
    PlanTensor loss = divided(run, sum, total, "loss");
    uint32_t id = run->builder.ops.len - 1;
    if (!run->graph->evaluates) {
        plan_vector_push(&run->builder.loss_ops, id);
    }
    PlanTensor temporary[] = {sum, counted, safe, local.index, picked, whole};
    for (unsigned i = 0; i < G_N_ELEMENTS(temporary); i++) {
        drop(run, temporary[i]);
    }
    plan_run_give(run, op, 0, loss);
    plan_run_give(run, op, 1, logp);
    plan_run_give(run, op, 2, total);
}

/* -1 at this rank's targets, in zeros; what it is made of lives on beside it. */
typedef struct {
    PlanTensor dx;
    PlanSharedLocal local;
    PlanTensor update, positions;
} Picked;

static Picked picked_gradient(PlanRun *run, PlanTensor safe, PlanTensor logp, int64_t rows,
                              int64_t cols) {
    Picked p = {.dx = new_like(run, logp, logp.elements, "dx")};
    uint64_t n = (uint64_t)rows;
    LAUNCH(run, PLAN_OP_FILL, DIMS(rows * cols), &(double){0}, p.dx);
    p.local = plan_shared_local_of(run, safe, rows, cols);
    PlanTensor wide = new_like(run, logp, n, "wide_mask");
    p.update = new_like(run, logp, n, "update");
    LAUNCH(run, PLAN_OP_PICKED_GRADIENT, DIMS(rows), NULL, p.local.mask, wide, p.update);
    drop(run, wide);
    p.positions = new_like(run, safe, n, "positions");
    LAUNCH(run, PLAN_OP_ARANGE, DIMS(rows), NULL, p.positions);
    LAUNCH(run, PLAN_OP_PUT_COLUMN, DIMS([PUT_COLUMN_ROWS] = rows, [PUT_COLUMN_COLS] = cols), NULL,
           p.update, p.local.index, p.positions, p.dx);
    return p;
}

static void drop_picked(PlanRun *run, const Picked *p) {
    PlanTensor parts[] = {p->dx, p->local.mask, p->local.index, p->update, p->positions};
    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        drop(run, parts[i]);
    }
}

void plan_shared_loss_backward(const PlanBackward *b) {
    PlanRun *run = b->run;
    int64_t rows = dim(b, CROSS_ENTROPY_ROWS), cols = dim(b, CROSS_ENTROPY_COLS);
    int64_t all[] = {[ADD_N] = rows * cols, [ADD_NB] = rows * cols};
    PlanTensor target = plan_run_value(run, value_at(b, 1));
    PlanTensor logp = plan_run_value(run, value_at(b, 3));
    PlanTensor dy = divided(run, b->dy[0], plan_run_value(run, value_at(b, 4)), "dloss");
    PlanTensor safe = safe_target(run, target, rows);
    Picked picked = picked_gradient(run, safe, logp, rows, cols);
    PlanTensor mask = plan_run_new_tensor(run, (uint64_t)rows, PLAN_UINT8, "counts_mask");
    PlanTensor column = new_like(run, logp, (uint64_t)rows, "dlosses");
    LAUNCH(run, PLAN_OP_SPREAD_COUNTED, DIMS(rows), NULL, dy, target, mask, column);
    drop(run, mask);
    drop(run, dy);
    PlanTensor exps = applied(run, PLAN_OP_EXP, logp, logp.elements, all, 0, "exps");
    PlanTensor sum = new_like(run, logp, logp.elements, "sum");
    LAUNCH(run, PLAN_OP_ADD, all, NULL, exps, picked.dx, sum);
    drop(run, exps);
    b->dx[0] = new_like(run, logp, logp.elements, "dlogits");
    LAUNCH(run, PLAN_OP_MUL_COLUMN, DIMS([MUL_COLUMN_ROWS] = rows, [MUL_COLUMN_COLS] = cols), NULL,
           sum, column, b->dx[0]);
    drop(run, sum);
    drop(run, column);
    drop(run, safe);
    drop_picked(run, &picked);
}
