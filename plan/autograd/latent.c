#include "plan/autograd/latent.h"

#include "plan/autograd/launch.h"

/* ---- columns that are rotated --------------------------------------------------------------- */

static const PlanGraphLatentTurn *turn_of(const PlanRun *run, const PlanGraphOp *op) {
    return (const PlanGraphLatentTurn *)&g_array_index(run->graph->dims, int64_t, op->dims);
}

static uint64_t turned_elements(const PlanGraphLatentTurn *d) {
    return (uint64_t)(d->tokens * d->heads * d->dim);
}

static PlanTensor copy_columns(PlanRun *run, PlanTensor x, const PlanGraphLatentTurn *d,
                               int64_t row, int64_t from, const char *name) {
    PlanTensor y = plan_run_new_tensor(run, turned_elements(d), PLAN_FP32, name);
    LAUNCH(run, PLAN_OP_COPY_COLUMNS, DIMS(d->tokens * d->heads, d->dim, row, from), NULL, x, y);
    return y;
}

/* x lies by itself. */
static PlanTensor turned(PlanRun *run, PlanTensor x, PlanTensor turns,
                         const PlanGraphLatentTurn *d) {
    PlanTensor y = plan_run_new_tensor(run, turned_elements(d), PLAN_FP32, "turned");
    LAUNCH(run, PLAN_OP_TURN, DIMS(d->tokens, d->heads, d->dim, d->seq, d->heads * d->dim), NULL, x,
           turns, y);
    return y;
}

static PlanTensor rounded(PlanRun *run, PlanTensor x, PlanDtype dtype) {
    PlanTensor y = plan_run_new_tensor(run, x.elements, dtype, "rounded");
    LAUNCH(run, PLAN_OP_CAST, DIMS((int64_t)x.elements), NULL, x, y);
    return y;
}

/* In fp32 the numbers are seen where they lie. */
static PlanTensor turned_in_place(PlanRun *run, PlanTensor x, PlanTensor turns,
                                  const PlanGraphLatentTurn *d) {
    PlanTensor y = plan_run_new_tensor(run, turned_elements(d), PLAN_FP32, "turned");
    LAUNCH(run, PLAN_OP_TURN_COLUMNS, DIMS(d->tokens, d->heads, d->dim, d->seq, d->row, d->from),
           NULL, x, turns, y);
    return y;
}

static void turn_forward(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphLatentTurn *d = turn_of(run, op);
    PlanTensor x = plan_run_given(run, op, 0), turns = plan_run_given(run, op, 1);
    PlanDtype dtype = plan_run_dtype_of(run, x);
    if (dtype == PLAN_FP32) {
        plan_run_give(run, op, 0, turned_in_place(run, x, turns, d));
        return;
    }
    PlanTensor wide = copy_columns(run, x, d, d->row, d->from, "wide");
    PlanTensor y = turned(run, wide, turns, d);
    plan_run_give(run, op, 0, rounded(run, y, dtype));
    plan_run_unref(run, wide);
    plan_run_unref(run, y);
}

static void turn_backward(const PlanBackward *b) {
    PlanRun *run = b->run;
    const PlanGraphLatentTurn *d = turn_of(run, b->op);
    PlanDtype dtype = (PlanDtype)input(b, 0)->dtype;
    PlanTensor turns = plan_run_given(run, b->op, 1);
    bool lies = dtype == PLAN_FP32 && d->dy_row == d->dim;
    PlanTensor dy = lies ? plan_run_ref(run, b->dy[0])
                         : copy_columns(run, b->dy[0], d, d->dy_row, d->dy_from, "dy_wide");
    if (!lies) {
        let_go_of_gradient(b, 0);
    }
    PlanTensor back = like_input(b, 1, "turns_back");
    LAUNCH(run, PLAN_OP_CONJUGATE, DIMS((int64_t)back.elements), NULL, turns, back);
    PlanTensor dx = turned(run, dy, back, d);
    plan_run_unref(run, back);
    plan_run_unref(run, dy);
    if (dtype == PLAN_FP32) {
        b->dx[0] = dx;
        return;
    }
    b->dx[0] = rounded(run, dx, dtype);
    plan_run_unref(run, dx);
}

/* ---- columns that are parted and joined ----------------------------------------------------- */

static void split_backward(const PlanBackward *b) {
    const PlanGraphLatentSplit *d =
        (const PlanGraphLatentSplit *)&g_array_index(b->run->graph->dims, int64_t, b->op->dims);
    b->dx[0] = like_input(b, 0, "dx");
    LAUNCH(b->run, PLAN_OP_JOIN_HEADS, DIMS(d->rows, d->a, d->b, d->dy_row, 1), NULL, b->dy[0],
           b->dy[1], b->dx[0]);
}

/* Views of dy; of what several rows were joined with, the sum of theirs. */
static void join_backward(const PlanBackward *b) {
    int64_t rows = dim(b, 0), a = dim(b, 1), cols = dim(b, 2), each = dim(b, 4);
    b->dx[0] = plan_run_ref(b->run, b->dy[0]);
    if (each == 1) {
        b->dx[1] = plan_run_ref(b->run, b->dy[0]);
        return;
    }
    b->dx[1] = like_input(b, 1, "dx_sum");
    LAUNCH(b->run, PLAN_OP_SUM_HEAD_COLUMNS, DIMS(rows / each, each, cols, a + cols, a), NULL,
           b->dy[0], b->dx[1]);
}

/* ---- norm, attention, scores ---------------------------------------------------------------- */

static void norm_backward(const PlanBackward *b) {
    int64_t rows = dim(b, 0), width = dim(b, 1);
    b->dx[0] =
        plan_run_new_tensor(b->run, (uint64_t)(rows * width), (PlanDtype)input(b, 0)->dtype, "dx");
    b->dx[1] = like_input(b, 1, "dw");
    begin(b, PLAN_OP_NORM_COLUMNS_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 0);
    value_operand(b, 3);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    operand(b, b->dx[1]);
    launch(b);
}

static void attention_backward(const PlanBackward *b) {
    static const char *const names[] = {"dq", "dk", "dv"};
    uint64_t rows = (uint64_t)(dim(b, 0) * dim(b, 1) * dim(b, 3));
    for (unsigned i = 0; i < 3; i++) {
        b->dx[i] = plan_run_new_tensor(b->run, rows * (uint64_t)dim(b, i == 2 ? 5 : 4),
                                       (PlanDtype)input(b, i)->dtype, names[i]);
    }
    begin(b, PLAN_OP_LATENT_ATTENTION_BACKWARD, dims(b), attrs(b));
    operand(b, b->dy[0]);
    for (unsigned i = 0; i < 5; i++) {
        value_operand(b, i);
    }
    for (unsigned i = 0; i < 3; i++) {
        operand(b, b->dx[i]);
    }
    launch(b);
}

static void sigmoid_backward(const PlanBackward *b) {
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_SIGMOID_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    launch(b);
}

/* ---- both ways ------------------------------------------------------------------------------ */

/* Of a block that is computed again autograd keeps nothing yet. */
static void kept_forward(PlanRun *run, const PlanGraphOp *op) {
    bool keeps = run->checkpoint == PLAN_NONE;
    PlanTensor none = PLAN_NO_TENSOR;
    plan_run_give(run, op, 0, keeps ? plan_run_ref(run, plan_run_given(run, op, 0)) : none);
}

void plan_latent_forward(PlanRun *run, const PlanGraphOp *op) {
    if ((PlanGraphKind)op->kind == PLAN_GRAPH_LATENT_TURN) {
        turn_forward(run, op);
    } else {
        kept_forward(run, op);
    }
}

void plan_latent_view_backward(const PlanBackward *b) {
    if ((PlanGraphKind)b->op->kind == PLAN_GRAPH_LATENT_TURN) {
        turn_backward(b);
    } else {
        split_backward(b);
    }
}

void plan_latent_backward(const PlanBackward *b) {
    switch ((PlanOpKind)b->op->kind) {
    case PLAN_OP_LATENT_ATTENTION:
        attention_backward(b);
        return;
    case PLAN_OP_NORM_COLUMNS:
        norm_backward(b);
        return;
    case PLAN_OP_JOIN_HEADS:
        join_backward(b);
        return;
    case PLAN_OP_SIGMOID:
        sigmoid_backward(b);
        return;
    default:
        g_error("no network differentiates op kind %s",
                plan_op_info((PlanOpKind)b->op->kind)->name);
    }
}
