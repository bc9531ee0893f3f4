#include "plan/autograd/float8/mxfp8.h"
#include "plan/autograd/float8/float8.h"
#include "plan/autograd/float8/words.h"
#include "plan/autograd/node.h"

/* What a layer leaves for backward, if it was made for it. */
enum {
    LAYER_KEPT = LAYER_WEIGHT_SCALE,
    LAYER_KEPT_EXPONENTS
};

/* ---- casts and products --------------------------------------------------------------------- */

/* One of a matrix, with its exponents in the order of products. */
static PlanScaled cast(PlanRun *run, const PlanFloat8Source *source, PlanFloat8Along along,
                       bool is_copy) {
    bool by_rows = along == PLAN_FLOAT8_EACH_ROW;
    int64_t sums = by_rows ? source->cols : source->rows,
            others = by_rows ? source->rows : source->cols, blocks = sums / PLAN_MXFP8_BLOCK;
    uint64_t n_blocks = (uint64_t)(others * blocks);
    PlanTensor exponents = plan_run_new_tensor(run, n_blocks, PLAN_UINT8, "exponents");
    PlanTensor numbers = plan_run_new_tensor(run, (uint64_t)(source->rows * source->cols),
                                             PLAN_E4M3, by_rows ? "float8" : "float8_turned");
    g_assert(source->made == PLAN_FLOAT8_AS_THEY_ARE);
    LAUNCH_OPERANDS(run, PLAN_OP_MXFP8_CAST,
                    DIMS([MXFP8_CAST_ROWS] = source->rows, [MXFP8_CAST_COLS] = source->cols,
                         [MXFP8_CAST_BLOCKS] = (int64_t)n_blocks, [MXFP8_CAST_ALONG] = along,
                         [MXFP8_CAST_COPIED] = is_copy),
                    NULL, source->x, plan_run_operand_of(run, numbers),
                    plan_run_operand_of(run, exponents));
    PlanTensor ordered = plan_run_new_tensor(run, n_blocks, PLAN_UINT8, "ordered");
    LAUNCH(run, PLAN_OP_MXFP8_ORDER,
           DIMS([MXFP8_ORDER_ROWS] = others, [MXFP8_ORDER_COLS] = blocks,
                [MXFP8_ORDER_FROM_COLUMNS] = !by_rows),
           NULL, exponents, ordered);
    plan_run_unref(run, exponents);
    return (PlanScaled){numbers, ordered};
}

/* made [m, n] = a b, sums of k. */
static void multiply(PlanRun *run, PlanTensor made, const PlanScaled *a, const PlanScaled *b,
                     const int64_t *m_n_k) {
    LAUNCH(run, PLAN_OP_MXFP8_PRODUCT,
           DIMS([MXFP8_PRODUCT_M] = m_n_k[0], [MXFP8_PRODUCT_N] = m_n_k[1],
                [MXFP8_PRODUCT_K] = m_n_k[2], [MXFP8_PRODUCT_X_BLOCKS] = (int64_t)a->scale.elements,
                [MXFP8_PRODUCT_W_BLOCKS] = (int64_t)b->scale.elements),
           NULL, a->numbers, a->scale, b->numbers, b->scale, made);
}

/* ---- forward -------------------------------------------------------------------------------- */

static PlanFloat8Source input_of(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphFloat8Linear *d = shape_of(run, op);
    PlanTensor x = plan_run_value(run, plan_graph_ref(run->graph, op->values + LAYER_INPUT));
    return plan_float8_of_tensor(run, x, d->m, d->k);
}

bool plan_mxfp8_keeps_cast(const PlanRun *run, const PlanGraphOp *op) {
    return (PlanGraphKind)op->kind == PLAN_GRAPH_FLOAT8_LINEAR &&
           run->graph->float8 == PLAN_FLOAT8_MXFP8 && run->builder.phase == PLAN_PHASE_FORWARD &&
           run->checkpoint == PLAN_NONE && shape_of(run, op)->maker >= 0;
}

/* Layers of one input share the cast, which the first of them makes. */
static void keep_cast(PlanRun *run, const PlanGraphOp *op, const PlanFloat8Source *x) {
    if (!plan_mxfp8_keeps_cast(run, op)) {
        give(run, op, LAYER_KEPT, PLAN_NO_TENSOR);
        give(run, op, LAYER_KEPT_EXPONENTS, PLAN_NO_TENSOR);
        return;
    }
    if (!plan_float8_has_cast(run, op, true)) {
        plan_float8_leave_cast(run, plan_graph_ref(run->graph, op->values + LAYER_INPUT), true,
                               cast(run, x, PLAN_FLOAT8_EACH_COLUMN, true));
    }
    const PlanScaled *kept = &run->float8.input.cast;
    give(run, op, LAYER_KEPT, plan_run_ref(run, kept->numbers));
    give(run, op, LAYER_KEPT_EXPONENTS, plan_run_ref(run, kept->scale));
    if (!shape_of(run, op)->again) {
        plan_float8_forget(run);
    }
}

void plan_mxfp8_forward(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphFloat8Linear *d = shape_of(run, op);
    PlanFloat8Source weight = plan_float8_of_weight(run, op), x = input_of(run, op);
    bool is_copy = run->builder.phase == PLAN_PHASE_FORWARD && d->maker >= 0 &&
                   !plan_float8_is_first_of_input(run, op);
    PlanScaled w8 = cast(run, &weight, PLAN_FLOAT8_EACH_ROW, false);
    PlanScaled x8 = cast(run, &x, PLAN_FLOAT8_EACH_ROW, is_copy);
    PlanTensor y =
        plan_run_new_tensor(run, (uint64_t)(d->m * d->n), (PlanDtype)run->graph->dtype, "y");
    multiply(run, y, &x8, &w8, (int64_t[]){d->m, d->n, d->k});
    drop(run, &x8);
    drop(run, &w8);
    give(run, op, LAYER_RESULT, y);
    keep_cast(run, op, &x);
}

/* ---- backward ------------------------------------------------------------------------------- */

/* In a block that is computed again: the kernel of SwiGLU's gradients makes what it made, too. */
static bool go_through_swiglu(const PlanBackward *b) {
    PlanRun *run = b->run;
    PlanEdge *edge;
    const PlanNode *node = plan_float8_node_of_swiglu(b, &edge);
    if (!node || node->checkpoint == PLAN_NONE) {
        return false;
    }
    const PlanGraphOp *swiglu = plan_graph_op_at(run->graph, node->op);
    PlanTensor gate = plan_run_value(run, plan_graph_ref(run->graph, swiglu->values)),
               up = plan_run_value(run, plan_graph_ref(run->graph, swiglu->values + 1));
    PlanTensor hidden =
        plan_run_new_tensor(run, gate.elements, (PlanDtype)run->graph->dtype, "hidden");
    LAUNCH(run, PLAN_OP_SWIGLU, DIMS((int64_t)hidden.elements), NULL, gate, up, hidden);
    plan_go_through_swiglu(b, edge);
    plan_run_drop_saved(run, edge->node);
    const PlanGraphFloat8Linear *d = shape_of(run, b->op);
    PlanFloat8Source x = plan_float8_of_tensor(run, hidden, d->m, d->k);
    plan_float8_leave_cast(run, plan_graph_ref(run->graph, b->op->values + LAYER_INPUT), true,
                           cast(run, &x, PLAN_FLOAT8_EACH_COLUMN, false));
    plan_run_unref(run, hidden);
    return true;
}

/* The input, cast along columns: kept, left by another layer, or cast now. */
static PlanScaled input_for_dw(const PlanBackward *b) {
    PlanTensor kept = saved(b, LAYER_KEPT);
    if (is_there(kept)) {
        return (PlanScaled){plan_run_ref(b->run, kept),
                            plan_run_ref(b->run, saved(b, LAYER_KEPT_EXPONENTS))};
    }
    if (!go_through_swiglu(b) && !plan_float8_has_cast(b->run, b->op, true)) {
        PlanFloat8Source x = input_of(b->run, b->op);
        plan_float8_leave_cast(b->run, plan_graph_ref(b->run->graph, b->op->values + LAYER_INPUT),
                               true, cast(b->run, &x, PLAN_FLOAT8_EACH_COLUMN, false));
    }
    const PlanScaled *left = &b->run->float8.input.cast;
    return (PlanScaled){plan_run_ref(b->run, left->numbers), plan_run_ref(b->run, left->scale)};
}

static void make_dx(const PlanBackward *b, const PlanFloat8Source *dy) {
    const PlanGraphFloat8Linear *d = shape_of(b->run, b->op);
    PlanFloat8Source weight = plan_float8_of_weight(b->run, b->op);
    PlanScaled g = cast(b->run, dy, PLAN_FLOAT8_EACH_ROW, false),
               w = cast(b->run, &weight, PLAN_FLOAT8_EACH_COLUMN, false);
    b->dx[LAYER_INPUT] = like_input(b, LAYER_INPUT, "dx");
    multiply(b->run, b->dx[LAYER_INPUT], &g, &w, (int64_t[]){d->m, d->k, d->n});
    drop(b->run, &g);
    drop(b->run, &w);
}

void plan_mxfp8_backward(const PlanBackward *b) {
    PlanRun *run = b->run;
    const PlanGraphFloat8Linear *d = shape_of(run, b->op);
    PlanFloat8Source dy = plan_float8_of_tensor(run, b->dy[0], d->m, d->n);
    make_dx(b, &dy);
    PlanScaled g = cast(run, &dy, PLAN_FLOAT8_EACH_COLUMN, false), x = input_for_dw(b);
    b->dx[LAYER_WEIGHT] = like_input(b, LAYER_WEIGHT, "dw");
    multiply(run, b->dx[LAYER_WEIGHT], &g, &x, (int64_t[]){d->n, d->k, d->m});
    drop(run, &g);
    drop(run, &x);
    if (plan_float8_is_first_of_input(run, b->op)) {
        plan_float8_forget(run);
    }
}
