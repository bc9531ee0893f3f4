/* plan/autograd/differentiate/linear.c - backward of linear layers. */
#include "plan/autograd/backward.h"
#include "plan/autograd/shared/async.h"

static void linear_dx(const PlanBackward *b) {
    if (!wanted(b, 0) || plan_linear_dx_through_gelu(b)) {
        return;
    }
    b->dx[0] = plan_async_take_dx(b);
    if (b->dx[0].storage != PLAN_NONE) {
        return;
    }
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_LINEAR_DX, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    launch(b);
}

static void linear_dw(const PlanBackward *b) {
    if (!wanted(b, 1)) {
        return;
    }
    b->dx[1] = like_input(b, 1, "dw");
    begin(b, PLAN_OP_LINEAR_DW, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 0);
    operand(b, b->dx[1]);
    launch(b);
}

static void linear_db(const PlanBackward *b) {
    if (!wanted(b, 2)) {
        return;
    }
    b->dx[2] = like_input(b, 2, "db");
    begin(b, PLAN_OP_SUM_ROWS, (int64_t[]){dim(b, 0), dim(b, 1)}, NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[2]);
    launch(b);
}

/* With a bias it is addmm, without mm: PyTorch makes their gradients in different orders. A tuned
 * stack makes those of weight and bias in one kernel. */
void plan_linear_backward(const PlanBackward *b, PlanTensor db) {
    bool has_bias = value_at(b, 2) != PLAN_NONE, is_made = db.storage != PLAN_NONE;
    bool is_one = has_bias && !is_made && b->run->graph->kernels.style == PLAN_KERNELS_FUSED;
    if (!has_bias) {
        linear_dw(b);
        linear_dx(b);
        return;
    }
    linear_dx(b);
    if (is_one) {
        plan_linear_dw_db_backward(b);
    } else {
        linear_dw(b);
    }
    if (b->run->tape.nodes.items[b->node].checkpoint != PLAN_NONE) {
        plan_run_drop_saved(b->run, b->node); /* unpacked for dw alone, it goes with it */
    }
    if (is_made) {
        b->dx[2] = plan_run_ref(b->run, db);
    } else if (!is_one) {
        linear_db(b);
    }
}
