#include "plan/autograd/shared.h"
#include "plan/autograd/float8.h"
#include "plan/autograd/shared-async.h"

/* ---- the words ------------------------------------------------------------------------------ */

static void begin_op(PlanRun *run, PlanOpKind kind, const int64_t *op_dims, double attr) {
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_NONE, op_dims, &attr);
}

/* An op that asks for the rank's place among those that share. */
static void begin_of_rank(PlanRun *run, PlanOpKind kind, const int64_t *op_dims) {
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_TENSOR, op_dims, NULL);
}

static void launch_with(PlanRun *run, const PlanTensor *tensors, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        plan_run_operand(run, tensors[i]);
    }
    plan_run_launch(run);
}

/* The op begun last, of these tensors. */
#define LAUNCH(run, ...)                                                                           \
    launch_with(run, (PlanTensor[]){__VA_ARGS__}, G_N_ELEMENTS(((PlanTensor[]){__VA_ARGS__})))

static PlanTensor new_like(PlanRun *run, PlanTensor x, uint64_t elements, const char *name) {
    return plan_run_new_tensor(run, elements, plan_run_dtype_of(run, x), name);
}

static void drop(PlanRun *run, PlanTensor x) {
    plan_run_unref(run, x);
}

/* ---- collectives ---------------------------------------------------------------------------- */

static void begin_collective(PlanRun *run, PlanOpKind kind, uint64_t elements, double attr) {
    int64_t op_dims[] = {(int64_t)elements, (int64_t)run->graph->tensor};
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_TENSOR, op_dims, &attr);
}

PlanTensor plan_shared_reduced(PlanRun *run, PlanTensor x, PlanReduction reduction) {
    PlanTensor y = new_like(run, x, x.elements, "reduced");
    begin_op(run, PLAN_OP_COPY, (int64_t[]){(int64_t)x.elements}, 0);
    LAUNCH(run, x, y);
    begin_collective(run, PLAN_OP_ALL_REDUCE, x.elements, reduction);
    LAUNCH(run, y);
    return y;
}

PlanTensor plan_shared_of_all(PlanRun *run, PlanTensor own) {
    uint64_t elements = own.elements * run->graph->tensor;
    PlanTensor all = new_like(run, own, elements, "gathered");
    begin_collective(run, PLAN_OP_ALL_GATHER, elements, 0);
    LAUNCH(run, own, all);
    return all;
}

PlanTensor plan_shared_settled(PlanRun *run, uint32_t parameter, PlanTensor gradient) {
    const PlanGraphParameter *p =
        plan_graph_at(run->graph->parameters, PlanGraphParameter, parameter);
    if (gradient.elements > p->elements) {
        PlanTensor mine = new_like(run, gradient, p->elements, "rows");
        begin_of_rank(run, PLAN_OP_PART,
                      (int64_t[]){(int64_t)p->elements, (int64_t)run->graph->tensor});
        LAUNCH(run, gradient, mine);
        return mine;
    }
    return p->share == PLAN_SHARE_ALL && !p->sees_all
               ? plan_shared_reduced(run, gradient, PLAN_REDUCTION_SUM)
               : PLAN_NO_TENSOR;
}

typedef struct {
    int64_t batch, rows, width, ranks;
} Tokens;

static Tokens tokens_of(const PlanGraph *graph, const PlanGraphOp *op) {
    const int64_t *d = plan_graph_at(graph->dims, int64_t, op->dims);
    return (Tokens){d[0], d[1], d[2], (int64_t)graph->tensor};
}

/* Between [batch, ranks, rows, width] and the same with the ranks outermost, as collectives have
 * it. */
static PlanTensor with_parts(PlanRun *run, const Tokens *t, PlanTensor x, bool back) {
    PlanTensor y = new_like(run, x, x.elements, "parts");
    begin_op(run, PLAN_OP_PARTS_COPY, (int64_t[]){t->batch, t->ranks, t->rows, t->width, back}, 0);
    LAUNCH(run, x, y);
    return y;
}

/* Of one sequence what arrives lies as it should. */
static PlanTensor gathered(PlanRun *run, const Tokens *t, PlanTensor x) {
    PlanTensor parts = plan_shared_of_all(run, x);
    if (t->batch == 1) {
        return parts;
    }
    PlanTensor y = with_parts(run, t, parts, true);
    drop(run, parts);
    return y;
}

/* PyTorch copies the parts of one sequence, too. */
static PlanTensor scattered(PlanRun *run, const Tokens *t, PlanTensor x) {
    PlanTensor parts = with_parts(run, t, x, false);
    PlanTensor y = new_like(run, x, x.elements / (uint64_t)t->ranks, "scattered");
    begin_collective(run, PLAN_OP_REDUCE_SCATTER, x.elements, 0);
    LAUNCH(run, parts, y);
    drop(run, parts);
    return y;
}

void plan_shared_scatter_again(PlanRun *run, const PlanGraphOp *op) {
    Tokens tokens = tokens_of(run->graph, op);
    plan_run_at(run, PLAN_PHASE_RECOMPUTE, op->module);
    drop(run, with_parts(run, &tokens, plan_run_given(run, op, 0), false));
}

/* This rank's part of what all have. */
static PlanTensor own_of(PlanRun *run, const Tokens *t, PlanTensor x) {
    PlanTensor y = new_like(run, x, x.elements / (uint64_t)t->ranks, "own");
    begin_of_rank(run, PLAN_OP_OWN_PARTS, (int64_t[]){t->batch, t->rows * t->width, t->ranks});
    LAUNCH(run, x, y);
    return y;
}

/* ---- a table's rows ------------------------------------------------------------------------- */

typedef struct {
    PlanTensor mask;  /* of indices that are another rank's */
    PlanTensor index; /* of the others, in this rank's part */
} Local;

static Local local_of(PlanRun *run, PlanTensor index, int64_t n, int64_t part) {
    Local local;
    PlanTensor below = plan_run_new_tensor(run, (uint64_t)n, PLAN_UINT8, "below_mask");
    PlanTensor above = plan_run_new_tensor(run, (uint64_t)n, PLAN_UINT8, "above_mask");
    local.mask = plan_run_new_tensor(run, (uint64_t)n, PLAN_UINT8, "outside_mask");
    begin_of_rank(run, PLAN_OP_OUTSIDE_MASK, (int64_t[]){n, part});
    LAUNCH(run, index, below, above, local.mask);
    drop(run, below);
    drop(run, above);
    PlanTensor copy = new_like(run, index, (uint64_t)n, "index_copy");
    local.index = new_like(run, index, (uint64_t)n, "local_index");
    begin_of_rank(run, PLAN_OP_LOCAL_INDEX, (int64_t[]){n, part});
    LAUNCH(run, index, local.mask, copy, local.index);
    drop(run, copy);
    return local;
}

static void parameter_operand(PlanRun *run, const PlanGraphOp *op, unsigned i) {
    uint32_t value = plan_graph_ref(run->graph, op->values + i);
    PlanOperand p = run->flavour->parameter(
        run, plan_graph_at(run->graph->values, PlanGraphValue, value)->parameter);
    plan_builder_operand(&run->builder, p.buffer, p.offset_bytes, p.elements);
}

static void rows_forward(PlanRun *run, const PlanGraphOp *op) {
    const int64_t *d = plan_graph_at(run->graph->dims, int64_t, op->dims);
    int64_t n = d[0], width = d[1], part = d[2];
    Local local = local_of(run, plan_run_given(run, op, 1), n, part);
    PlanTensor y = plan_run_new_tensor(run, (uint64_t)(n * width), run->graph->dtype, "y");
    begin_op(run, PLAN_OP_EMBEDDING, (int64_t[]){n, width, part}, 0);
    parameter_operand(run, op, 0);
    plan_run_operand(run, local.index);
    plan_run_operand(run, y);
    plan_run_launch(run);
    drop(run, local.index);
    plan_run_give(run, op, 0, y);
    plan_run_give(run, op, 1, local.mask);
}

/* Every rank has all tokens' gradients, and makes that of the whole table: where it is reduced,
 * this rank's rows are copied out of it. */
static void rows_backward(const PlanBackward *b) {
    PlanRun *run = b->run;
    int64_t n = dim(b, 0), width = dim(b, 1), rows = dim(b, 2) * (int64_t)run->graph->tensor;
    b->dx[0] = new_like(run, b->dy[0], (uint64_t)(rows * width), "dw");
    begin(b, PLAN_OP_EMBEDDING_BACKWARD, (int64_t[]){n, width, rows}, NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    launch(b);
}

/* ---- the loss ------------------------------------------------------------------------------- */

/* One kernel of one tensor into another. */
static PlanTensor applied(PlanRun *run, PlanOpKind kind, PlanTensor x, uint64_t elements,
                          const int64_t *op_dims, double attr, const char *name) {
    PlanTensor y = new_like(run, x, elements, name);
    begin_op(run, kind, op_dims, attr);
    LAUNCH(run, x, y);
    return y;
}

/* A copy, or the tensor itself where it has that dtype. */
static PlanTensor in_dtype(PlanRun *run, PlanTensor x, PlanDtype dtype, const char *name) {
    if (plan_run_dtype_of(run, x) == dtype) {
        return plan_run_ref(run, x);
    }
    PlanTensor y = plan_run_new_tensor(run, x.elements, dtype, name);
    begin_op(run, PLAN_OP_CAST, (int64_t[]){(int64_t)x.elements}, 0);
    LAUNCH(run, x, y);
    return y;
}

static PlanTensor less_column(PlanRun *run, PlanTensor x, PlanTensor column, int64_t rows,
                              int64_t cols, const char *name) {
    PlanTensor y = new_like(run, x, x.elements, name);
    begin_op(run, PLAN_OP_SUB_COLUMN, (int64_t[]){rows, cols}, 0);
    LAUNCH(run, x, column, y);
    return y;
}

static PlanTensor divided(PlanRun *run, PlanTensor a, PlanTensor by, const char *name) {
    PlanTensor y = new_like(run, a, 1, name);
    begin_op(run, PLAN_OP_DIVIDE, (int64_t[]){1}, 0);
    LAUNCH(run, a, by, y);
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
    begin_op(run, PLAN_OP_SAFE_TARGET, (int64_t[]){rows}, 0);
    LAUNCH(run, target, mask, safe);
    drop(run, mask);
    return safe;
}

static PlanTensor number_of_targets(PlanRun *run, PlanTensor target, int64_t rows,
                                    PlanDtype dtype) {
    PlanTensor mask = plan_run_new_tensor(run, (uint64_t)rows, PLAN_UINT8, "counts_mask");
    PlanTensor count = new_like(run, target, 1, "count");
    begin_op(run, PLAN_OP_COUNT_TARGETS, (int64_t[]){rows}, 0);
    LAUNCH(run, target, mask, count);
    drop(run, mask);
    PlanTensor total = plan_run_new_tensor(run, 1, dtype, "total");
    begin_op(run, PLAN_OP_AS_NUMBER, (int64_t[]){1}, 0);
    LAUNCH(run, count, total);
    drop(run, count);
    return total;
}

static void loss_forward(PlanRun *run, const PlanGraphOp *op) {
    const int64_t *d = plan_graph_at(run->graph->dims, int64_t, op->dims);
    int64_t rows = d[0], cols = d[1], row[] = {rows};
    uint64_t n = (uint64_t)rows;
    PlanTensor target = plan_run_given(run, op, 1);
    PlanTensor logp = log_softmax(run, plan_run_given(run, op, 0), rows, cols);
    PlanTensor safe = safe_target(run, target, rows);
    Local local = local_of(run, safe, rows, cols);
    PlanTensor picked = new_like(run, logp, n, "picked");
    begin_op(run, PLAN_OP_PICK_COLUMN, (int64_t[]){rows, cols}, 0);
    LAUNCH(run, logp, local.index, picked);
    begin_op(run, PLAN_OP_ZERO_MASKED, (int64_t[]){rows, 1}, 0);
    LAUNCH(run, local.mask, picked);
    drop(run, local.mask);
    PlanTensor whole = plan_shared_reduced(run, picked, PLAN_REDUCTION_SUM);
    PlanTensor negated = applied(run, PLAN_OP_TIMES_NUMBER, whole, n, row, -1, "negated");
    PlanTensor mask = plan_run_new_tensor(run, n, PLAN_UINT8, "counts_mask");
    PlanTensor counted = new_like(run, negated, n, "losses");
    begin_op(run, PLAN_OP_KEEP_COUNTED, row, 0);
    LAUNCH(run, negated, target, mask, counted);
    drop(run, mask);
    drop(run, negated);
    PlanTensor total = number_of_targets(run, target, rows, plan_run_dtype_of(run, logp));
    PlanTensor sum = applied(run, PLAN_OP_SUM_COLUMNS, counted, 1, (int64_t[]){1, rows}, 1, "sum");
    PlanTensor loss = divided(run, sum, total, "loss");
    uint32_t id = run->builder.ops.len - 1;
    plan_vector_push(&run->builder.loss_ops, id);
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
    Local local;
    PlanTensor update, positions;
} Picked;

static Picked picked_gradient(PlanRun *run, PlanTensor safe, PlanTensor logp, int64_t rows,
                              int64_t cols) {
    Picked p = {.dx = new_like(run, logp, logp.elements, "dx")};
    uint64_t n = (uint64_t)rows;
    begin_op(run, PLAN_OP_FILL, (int64_t[]){rows * cols}, 0);
    LAUNCH(run, p.dx);
    p.local = local_of(run, safe, rows, cols);
    PlanTensor wide = new_like(run, logp, n, "wide_mask");
    p.update = new_like(run, logp, n, "update");
    begin_op(run, PLAN_OP_PICKED_GRADIENT, (int64_t[]){rows}, 0);
    LAUNCH(run, p.local.mask, wide, p.update);
    drop(run, wide);
    p.positions = new_like(run, safe, n, "positions");
    begin_op(run, PLAN_OP_ARANGE, (int64_t[]){rows}, 0);
    LAUNCH(run, p.positions);
    begin_op(run, PLAN_OP_PUT_COLUMN, (int64_t[]){rows, cols}, 0);
    LAUNCH(run, p.update, p.local.index, p.positions, p.dx);
    return p;
}

static void drop_picked(PlanRun *run, const Picked *p) {
    PlanTensor parts[] = {p->dx, p->local.mask, p->local.index, p->update, p->positions};
    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        drop(run, parts[i]);
    }
}

static void loss_backward(const PlanBackward *b) {
    PlanRun *run = b->run;
    int64_t rows = dim(b, 0), cols = dim(b, 1), all[] = {rows * cols, rows * cols};
    PlanTensor target = plan_run_value(run, value_at(b, 1));
    PlanTensor logp = plan_run_value(run, value_at(b, 3));
    PlanTensor dy = divided(run, b->dy[0], plan_run_value(run, value_at(b, 4)), "dloss");
    PlanTensor safe = safe_target(run, target, rows);
    Picked picked = picked_gradient(run, safe, logp, rows, cols);
    PlanTensor mask = plan_run_new_tensor(run, (uint64_t)rows, PLAN_UINT8, "counts_mask");
    PlanTensor column = new_like(run, logp, (uint64_t)rows, "dlosses");
    begin_op(run, PLAN_OP_SPREAD_COUNTED, (int64_t[]){rows}, 0);
    LAUNCH(run, dy, target, mask, column);
    drop(run, mask);
    drop(run, dy);
    PlanTensor exps = applied(run, PLAN_OP_EXP, logp, logp.elements, all, 0, "exps");
    PlanTensor sum = new_like(run, logp, logp.elements, "sum");
    begin_op(run, PLAN_OP_ADD, all, 0);
    LAUNCH(run, exps, picked.dx, sum);
    drop(run, exps);
    b->dx[0] = new_like(run, logp, logp.elements, "dlogits");
    begin_op(run, PLAN_OP_MUL_COLUMN, (int64_t[]){rows, cols}, 0);
    LAUNCH(run, sum, column, b->dx[0]);
    drop(run, sum);
    drop(run, column);
    drop(run, safe);
    drop_picked(run, &picked);
}

/* ---- asynchronous tensor parallel ----------------------------------------------------------- */

/* A block that is computed again keeps nothing of what it gathers. */
static PlanTensor gathered_by_parts(PlanRun *run, const PlanGraphOp *op) {
    plan_async_begin_gather(run, op, plan_run_given(run, op, 0));
    return run->checkpoint == PLAN_NONE ? plan_async_turned(run) : plan_async_gathered(run);
}

/* ---- forward and backward ------------------------------------------------------------------- */

void plan_shared_forward(PlanRun *run, const PlanGraphOp *op) {
    Tokens tokens = tokens_of(run->graph, op);
    PlanGraphView kind = (PlanGraphView)op->kind;
    if (kind == PLAN_GRAPH_SHARED_GATHER && plan_async_gathers(run, op)) {
        plan_run_give(run, op, 0, gathered_by_parts(run, op));
    } else if (plan_async_scatters(run, op)) {
        plan_run_give(run, op, 0, plan_async_scatter(run));
    } else if (kind == PLAN_GRAPH_SHARED_GATHER || kind == PLAN_GRAPH_SHARED_WHOLE) {
        plan_run_give(run, op, 0, gathered(run, &tokens, plan_run_given(run, op, 0)));
    } else if (kind == PLAN_GRAPH_SHARED_GATHER_FLOAT8) {
        plan_float8_gather_tokens(run, op);
    } else if (kind == PLAN_GRAPH_SHARED_SCATTER || kind == PLAN_GRAPH_SHARED_SCATTER_FLOAT8) {
        plan_run_give(run, op, 0, scattered(run, &tokens, plan_run_given(run, op, 0)));
    } else if (kind == PLAN_GRAPH_SHARED_OWN) {
        plan_run_give(run, op, 0, own_of(run, &tokens, plan_run_given(run, op, 0)));
    } else if (kind == PLAN_GRAPH_SHARED_ROWS) {
        rows_forward(run, op);
    } else {
        loss_forward(run, op);
    }
}

/* A gradient of its own tokens, which DTensors take for one of all and cut again. */
static PlanTensor gathered_and_cut(PlanRun *run, const Tokens *t, PlanTensor dy) {
    PlanTensor all = gathered(run, t, dy), own = own_of(run, t, all);
    drop(run, all);
    return own;
}

void plan_shared_backward(const PlanBackward *b) {
    Tokens tokens = tokens_of(b->run->graph, b->op);
    PlanGraphView kind = (PlanGraphView)b->op->kind;
    if (kind == PLAN_GRAPH_SHARED_GATHER || kind == PLAN_GRAPH_SHARED_AGAIN ||
        kind == PLAN_GRAPH_SHARED_GATHER_FLOAT8) {
        b->dx[0] = scattered(b->run, &tokens, b->dy[0]);
    } else if (kind == PLAN_GRAPH_SHARED_SCATTER && plan_async_gathers(b->run, b->op)) {
        b->dx[0] = plan_async_gather_gradient(b);
    } else if (kind == PLAN_GRAPH_SHARED_SCATTER || kind == PLAN_GRAPH_SHARED_TAKEN) {
        b->dx[0] = gathered(b->run, &tokens, b->dy[0]);
    } else if (kind == PLAN_GRAPH_SHARED_SCATTER_FLOAT8) {
        plan_float8_gather_gradient(b);
    } else if (kind == PLAN_GRAPH_SHARED_OWN) {
        b->dx[0] = gathered_and_cut(b->run, &tokens, b->dy[0]);
    } else if (kind == PLAN_GRAPH_SHARED_WHOLE) {
        b->dx[0] = own_of(b->run, &tokens, b->dy[0]);
    } else if (kind == PLAN_GRAPH_SHARED_ROWS) {
        rows_backward(b);
    } else {
        loss_backward(b);
    }
}
