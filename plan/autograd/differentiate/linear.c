/* plan/autograd/differentiate/linear.c - backward of linear layers. */
#include "plan/autograd/backward.h"
#include "plan/autograd/node.h"
#include "plan/autograd/shared/async.h"

static void linear_dx(const PlanBackward *b) {
    if (!wanted(b, LINEAR_X) || plan_linear_dx_through_gelu(b)) {
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
        plan_linear_dw_db_backward(b);
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
