/* plan/autograd/differentiate/linear.c - backward of linear layers, those of a tuned stack too. */
#include "plan/autograd/backward.h"
#include "plan/autograd/node.h"
#include "plan/autograd/shared/async.h"

/* What a linear layer with GELU at its end is given: the gradient of its result; or, through GELU
 * already, that of what went into it, and its bias's. */
enum {
    GIVEN_RESULT,
    GIVEN_BEFORE,
    GIVEN_BIAS
};

/* GELU's backward ends the product that makes its gradient, as its forward ended one (cuBLASLt's
 * DGELU, which knows tanh alone): its array of dy is never there. What else would read GELU's
 * result, or an identity at a unit's entrance between the two, keeps them apart. False: they are,
 * and nothing was done. */
static bool linear_dx_through_gelu(const PlanBackward *b) {
    PlanRun *run = b->run;
    PlanEdge *edge = plan_edge_to_kind(run, b->node, 0, PLAN_OP_LINEAR_GELU);
    PlanNode *node = edge ? &run->tape.nodes.items[edge->node] : NULL;
    if (!node || edge->slot != GIVEN_RESULT || node->n_dependencies > 1 ||
        run->tape.slots.items[node->slots + GIVEN_RESULT].storage != PLAN_NONE) {
        return false;
    }
    PlanBackward gelu = {
        .run = run, .node = edge->node, .op = plan_graph_op_at(run->graph, node->op)};
    if (attrs(&gelu)[LINEAR_GELU_ERF] > 0) {
        return false;
    }
    PlanTensor db = PLAN_NO_TENSOR;
    b->dx[LINEAR_X] = like_input(b, LINEAR_X, "dx_gelu");
    if (wanted(&gelu, LINEAR_GELU_B)) {
        db = like_input(&gelu, LINEAR_GELU_B, "db");
    }
    KERNEL(b, PLAN_OP_LINEAR_DX_GELU, dims(b), NULL, dy(b, 0), value(b, LINEAR_W),
           value(&gelu, LINEAR_GELU_BEFORE), dx(b, LINEAR_X), tensor(b, db));
    run->tape.slots.items[node->slots + GIVEN_BIAS] = db;
    edge->slot = GIVEN_BEFORE;
    return true;
}

static void linear_dx(const PlanBackward *b) {
    if (!wanted(b, LINEAR_X) || linear_dx_through_gelu(b)) {
        return;
    }
    b->dx[LINEAR_X] = plan_async_take_dx(b);
    if (b->dx[LINEAR_X].storage != PLAN_NONE) {
        return;
    }
    b->dx[LINEAR_X] = like_input(b, LINEAR_X, "dx");
    KERNEL(b, PLAN_OP_LINEAR_DX, dims(b), NULL, dy(b, 0), value(b, LINEAR_W), dx(b, LINEAR_X));
}

static void linear_dw(const PlanBackward *b) {
    if (!wanted(b, LINEAR_W)) {
        return;
    }
    b->dx[LINEAR_W] = like_input(b, LINEAR_W, "dw");
    KERNEL(b, PLAN_OP_LINEAR_DW, dims(b), NULL, dy(b, 0), value(b, LINEAR_X), dx(b, LINEAR_W));
}

static void linear_db(const PlanBackward *b) {
    if (!wanted(b, LINEAR_B)) {
        return;
    }
    b->dx[LINEAR_B] = like_input(b, LINEAR_B, "db");
    KERNEL(b, PLAN_OP_SUM_ROWS,
           DIMS([SUM_ROWS_ROWS] = dim(b, LINEAR_M), [SUM_ROWS_COLS] = dim(b, LINEAR_N)), NULL,
           dy(b, 0), dx(b, LINEAR_B));
}

static void linear_dw_db(const PlanBackward *b) {
    b->dx[LINEAR_W] = like_input(b, LINEAR_W, "dw");
    b->dx[LINEAR_B] = like_input(b, LINEAR_B, "db");
    KERNEL(b, PLAN_OP_LINEAR_DW_DB, dims(b), NULL, dy(b, 0), value(b, LINEAR_X), dx(b, LINEAR_W),
           dx(b, LINEAR_B));
}

/* With a bias it is addmm, without mm: PyTorch makes their gradients in different orders. A tuned
 * stack makes those of weight and bias in one kernel. */
void plan_linear_backward(const PlanBackward *b, PlanTensor db) {
    bool has_bias = value_at(b, LINEAR_B) != PLAN_NONE, is_made = db.storage != PLAN_NONE;
    bool is_one = has_bias && !is_made && b->run->graph->kernels.style == PLAN_KERNELS_FUSED;
    bool is_through = plan_reads_hidden_made_again(b);
    if (!has_bias && !is_through) {
        linear_dw(b);
        linear_dx(b);
        return;
    }
    linear_dx(b);
    if (is_through) {
        plan_go_through_hidden(b);
    }
    if (is_one) {
        linear_dw_db(b);
    } else {
        linear_dw(b);
    }
    if (plan_run_unpacks(b->run, b->node)) {
        plan_run_drop_saved(b->run, b->node); /* unpacked for dw alone, it goes with it */
    }
    if (is_made) {
        b->dx[LINEAR_B] = plan_run_ref(b->run, db);
    } else if (!is_one) {
        linear_db(b);
    }
}

/* First through GELU, from what went into it, then through the product. */
void plan_linear_gelu_backward(const PlanBackward *b) {
    int64_t n = dim(b, LINEAR_GELU_M) * dim(b, LINEAR_GELU_N);
    PlanBackward product = *b;
    if (b->dy[GIVEN_BEFORE].storage != PLAN_NONE) {
        product.dy = &b->dy[GIVEN_BEFORE];
        plan_linear_backward(&product, b->dy[GIVEN_BIAS]);
        return;
    }
    PlanTensor before = plan_run_new_tensor(b->run, (uint64_t)n,
                                            (PlanDtype)input(b, LINEAR_GELU_X)->dtype, "dx_gelu");
    KERNEL(b,
           attrs(b)[LINEAR_GELU_ERF] > 0 ? PLAN_OP_GELU_ERF_BACKWARD : PLAN_OP_GELU_TANH_BACKWARD,
           &n, NULL, dy(b, 0), value(b, LINEAR_GELU_BEFORE), tensor(b, before));
    product.dy = &before;
    plan_linear_backward(&product, PLAN_NO_TENSOR);
    plan_run_unref(b->run, before);
}
