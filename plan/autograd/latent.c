#include "plan/autograd/latent.h"

#include "plan/autograd/launch.h"

/* ---- columns that are rotated --------------------------------------------------------------- */

static const PlanGraphLatentRotation *turn_of(const PlanRun *run, const PlanGraphOp *op) {
    return (const PlanGraphLatentRotation *)&run->graph->dims.items[op->dims];
}

static uint64_t turned_elements(const PlanGraphLatentRotation *d) {
    return (uint64_t)(d->tokens * d->heads * d->dim);
}

static PlanTensor copy_columns(PlanRun *run, PlanTensor x, const PlanGraphLatentRotation *d,
                               int64_t row, int64_t from, const char *name) {
    PlanTensor y = plan_run_new_tensor(run, turned_elements(d), PLAN_FP32, name);
    LAUNCH(run, PLAN_OP_COPY_COLUMNS,
           DIMS([COPY_COLUMNS_ROWS] = d->tokens * d->heads, [COPY_COLUMNS_COLS] = d->dim,
                [COPY_COLUMNS_WIDTH] = row, [COPY_COLUMNS_FROM] = from),
           NULL, x, y);
    return y;
}

/* x lies by itself. */
static PlanTensor turned(PlanRun *run, PlanTensor x, PlanTensor turns,
                         const PlanGraphLatentRotation *d) {
    PlanTensor y = plan_run_new_tensor(run, turned_elements(d), PLAN_FP32, "turned");
    LAUNCH(run, PLAN_OP_TURN,
           DIMS([TURN_TOKENS] = d->tokens, [TURN_HEADS] = d->heads, [TURN_DIM] = d->dim,
                [TURN_SEQ] = d->seq, [TURN_STRIDE] = d->heads * d->dim),
           NULL, x, turns, y);
    return y;
}

static PlanTensor rounded(PlanRun *run, PlanTensor x, PlanDtype dtype) {
    PlanTensor y = plan_run_new_tensor(run, x.elements, dtype, "rounded");
    LAUNCH(run, PLAN_OP_CAST, DIMS((int64_t)x.elements), NULL, x, y);
    return y;
}

/* In fp32 the numbers are seen where they lie. */
static PlanTensor turned_in_place(PlanRun *run, PlanTensor x, PlanTensor turns,
                                  const PlanGraphLatentRotation *d) {
    PlanTensor y = plan_run_new_tensor(run, turned_elements(d), PLAN_FP32, "turned");
    LAUNCH(run, PLAN_OP_TURN_COLUMNS,
           DIMS([TURN_COLUMNS_TOKENS] = d->tokens, [TURN_COLUMNS_HEADS] = d->heads,
                [TURN_COLUMNS_DIM] = d->dim, [TURN_COLUMNS_SEQ] = d->seq,
                [TURN_COLUMNS_ROW] = d->row, [TURN_COLUMNS_FROM] = d->from),
           NULL, x, turns, y);
    return y;
}

static void turn_forward(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphLatentRotation *d = turn_of(run, op);
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
    const PlanGraphLatentRotation *d = turn_of(run, b->op);
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
        (const PlanGraphLatentSplit *)&b->run->graph->dims.items[b->op->dims];
    b->dx[0] = like_input(b, 0, "dx");
    LAUNCH(b->run, PLAN_OP_JOIN_HEADS,
           DIMS([JOIN_HEADS_ROWS] = d->rows, [JOIN_HEADS_A_COLS] = d->a, [JOIN_HEADS_B_COLS] = d->b,
                [JOIN_HEADS_ROW] = d->dy_row, [JOIN_HEADS_EACH] = 1),
           NULL, b->dy[0], b->dy[1], b->dx[0]);
}

/* Views of dy; of what several rows were joined with, the sum of theirs. */
static void join_backward(const PlanBackward *b) {
    int64_t rows = dim(b, JOIN_HEADS_ROWS), a = dim(b, JOIN_HEADS_A_COLS),
            cols = dim(b, JOIN_HEADS_B_COLS), each = dim(b, JOIN_HEADS_EACH);
    b->dx[JOIN_HEADS_A] = plan_run_ref(b->run, b->dy[0]);
    if (each == 1) {
        b->dx[JOIN_HEADS_B] = plan_run_ref(b->run, b->dy[0]);
        return;
    }
    b->dx[JOIN_HEADS_B] = like_input(b, JOIN_HEADS_B, "dx_sum");
    LAUNCH(b->run, PLAN_OP_SUM_HEAD_COLUMNS,
           DIMS([SUM_HEAD_COLUMNS_ROWS] = rows / each, [SUM_HEAD_COLUMNS_EACH] = each,
                [SUM_HEAD_COLUMNS_COLS] = cols, [SUM_HEAD_COLUMNS_ROW] = a + cols,
                [SUM_HEAD_COLUMNS_FROM] = a),
           NULL, b->dy[0], b->dx[JOIN_HEADS_B]);
}

/* ---- norm, attention, scores ---------------------------------------------------------------- */

static void norm_backward(const PlanBackward *b) {
    int64_t rows = dim(b, NORM_COLUMNS_ROWS), width = dim(b, NORM_COLUMNS_WIDTH);
    b->dx[NORM_COLUMNS_X] = plan_run_new_tensor(b->run, (uint64_t)(rows * width),
                                                (PlanDtype)input(b, NORM_COLUMNS_X)->dtype, "dx");
    b->dx[NORM_COLUMNS_W] = like_input(b, NORM_COLUMNS_W, "dw");
    KERNEL(b, PLAN_OP_NORM_COLUMNS_BACKWARD, dims(b), NULL, dy(b, 0), value(b, NORM_COLUMNS_X),
           value(b, NORM_COLUMNS_RSTD), value(b, NORM_COLUMNS_W), dx(b, NORM_COLUMNS_X),
           dx(b, NORM_COLUMNS_W));
}

static void attention_backward(const PlanBackward *b) {
    static const char *const names[] = {"dq", "dk", "dv"};
    uint64_t rows = (uint64_t)(dim(b, LATENT_ATTENTION_BATCH) * dim(b, LATENT_ATTENTION_HEADS) *
                               dim(b, LATENT_ATTENTION_SEQ));
    for (unsigned i = 0; i < 3; i++) {
        b->dx[i] = plan_run_new_tensor(b->run,
                                       rows * (uint64_t)dim(b, i == LATENT_ATTENTION_V
                                                                   ? LATENT_ATTENTION_V_DIM
                                                                   : LATENT_ATTENTION_HEAD_DIM),
                                       (PlanDtype)input(b, i)->dtype, names[i]);
    }
    begin(b, PLAN_OP_LATENT_ATTENTION_BACKWARD, dims(b), attrs(b));
    operand(b, dy(b, 0));
    for (unsigned i = 0; i < 5; i++) {
        operand(b, value(b, i));
    }
    for (unsigned i = 0; i < 3; i++) {
        operand(b, dx(b, i));
    }
    launch(b);
}

static void sigmoid_backward(const PlanBackward *b) {
    b->dx[SIGMOID_X] = like_input(b, SIGMOID_X, "dx");
    KERNEL(b, PLAN_OP_SIGMOID_BACKWARD, dims(b), NULL, dy(b, 0), value(b, SIGMOID_Y),
           dx(b, SIGMOID_X));
}

/* ---- both ways ------------------------------------------------------------------------------ */

/* In forward of a checkpointed block autograd keeps nothing yet. */
static void kept_forward(PlanRun *run, const PlanGraphOp *op) {
    bool keeps = run->checkpoint == PLAN_NONE;
    PlanTensor none = PLAN_NO_TENSOR;
    plan_run_give(run, op, 0, keeps ? plan_run_ref(run, plan_run_given(run, op, 0)) : none);
}

void plan_latent_forward(PlanRun *run, const PlanGraphOp *op) {
    if ((PlanGraphKind)op->kind == PLAN_GRAPH_LATENT_ROTATE) {
        turn_forward(run, op);
    } else {
        kept_forward(run, op);
    }
}

void plan_latent_view_backward(const PlanBackward *b) {
    if ((PlanGraphKind)b->op->kind == PLAN_GRAPH_LATENT_ROTATE) {
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
