/* plan/autograd/differentiate/norm.c - the backward of a norm that is written out in PyTorch's ops.
 *
 * What was broadcast forward has its gradient made whole first and summed then; powers go through
 * tensors of their own, as PyTorch's derivatives do.
 */
#include "plan/autograd/backward.h"
#include "plan/autograd/node.h"

/* dy times the factor that is not broadcast, before it is summed. */
static PlanTensor whole_product(const PlanBackward *b, const char *name) {
    PlanTensor whole = in_dtype_of_result(b, MUL_ROW_X, name);
    KERNEL(b, PLAN_OP_MUL, DIMS((int64_t)whole.elements), NULL, dy(b, 0), value(b, MUL_ROW_X),
           tensor(b, whole));
    return whole;
}

static void product_with_broadcast(const PlanBackward *b, bool by_column) {
    b->dx[MUL_ROW_X] = in_dtype_of_result(b, MUL_ROW_X, "dx");
    KERNEL(b, by_column ? PLAN_OP_MUL_COLUMN : PLAN_OP_MUL_ROW, dims(b), NULL, dy(b, 0),
           value(b, MUL_ROW_ROW), dx(b, MUL_ROW_X));
}

/* The broadcast factor, a row or a column, goes by the name of MUL_ROW's. Its gradient is made
 * first, and summed when both are made. */
void plan_mul_broadcast_backward(const PlanBackward *b) {
    bool by_column = b->op->kind == PLAN_OP_MUL_COLUMN;
    double one = 1;
    PlanTensor whole = PLAN_NO_TENSOR;
    bool broadcast_first = !by_column && b->run->graph->weight_first;
    if (wanted(b, MUL_ROW_X) && broadcast_first) {
        product_with_broadcast(b, by_column);
    }
    if (wanted(b, MUL_ROW_ROW)) {
        whole = whole_product(b, by_column ? "dcolumn_whole" : "drow_whole");
    }
    if (wanted(b, MUL_ROW_X) && !broadcast_first) {
        product_with_broadcast(b, by_column);
    }
    if (plan_run_unpacks(b->run, b->node) &&
        plan_strategy_is_after(b->run->strategy, PLAN_PYTORCH_2_0)) {
        plan_run_drop_saved(b->run, b->node); /* unpacked for the products alone */
    }
    if (!wanted(b, MUL_ROW_ROW)) {
        return;
    }
    if (by_column && dim(b, MUL_ROW_COLS) == 1) {
        b->dx[MUL_ROW_ROW] = whole; /* one column: nothing was broadcast */
        return;
    }
    if (!broadcast_first) {
        plan_give_own_dtype(b, MUL_ROW_X); /* the engine takes one input after the other */
    }
    b->dx[MUL_ROW_ROW] = in_dtype_of_result(b, MUL_ROW_ROW, by_column ? "dcolumn" : "drow");
    if (by_column) {
        KERNEL(b, PLAN_OP_SUM_COLUMNS, dims(b), &one, tensor(b, whole), dx(b, MUL_ROW_ROW));
    } else {
        KERNEL(b, PLAN_OP_SUM_ROWS, dims(b), NULL, tensor(b, whole), dx(b, MUL_ROW_ROW));
    }
    plan_run_unref(b->run, whole);
}

void plan_sum_columns_backward(const PlanBackward *b) {
    b->dx[SUM_COLUMNS_X] = like_input(b, SUM_COLUMNS_X, "dx");
    KERNEL(b, PLAN_OP_SPREAD, dims(b), attrs(b), dy(b, 0), dx(b, SUM_COLUMNS_X));
}

static PlanTensor joined(const PlanBackward *b, PlanTensor left, PlanTensor right) {
    PlanTensor product = like_input(b, POWER_X, "dx");
    KERNEL(b, PLAN_OP_MUL, dims(b), NULL, tensor(b, left), tensor(b, right), tensor(b, product));
    return product;
}

/* A kept value to a power. */
static PlanTensor power_of(const PlanBackward *b, unsigned kept, double exponent,
                           const char *name) {
    PlanTensor power = like_input(b, POWER_X, name);
    KERNEL(b, PLAN_OP_POWER, dims(b), &exponent, value(b, kept), tensor(b, power));
    return power;
}

/* x^p, p > 0: dy (p x^(p - 1)). */
static void power_of_input(const PlanBackward *b, double exponent) {
    PlanTensor power = power_of(b, 0, exponent - 1, "power");
    PlanTensor slope = like_input(b, POWER_X, "slope");
    KERNEL(b, PLAN_OP_TIMES_NUMBER, dims(b), &exponent, tensor(b, power), tensor(b, slope));
    b->dx[POWER_X] = joined(b, b->dy[0], slope);
    plan_run_unref(b->run, slope);
    plan_run_unref(b->run, power);
}

/* x^(-1/2) = y, which is kept instead of x: (-dy / 2) y^3. */
static void reciprocal_root(const PlanBackward *b) {
    double minus_half = -0.5;
    PlanTensor cube = power_of(b, 1, 3, "cube");
    PlanTensor half = like_input(b, POWER_X, "half");
    KERNEL(b, PLAN_OP_TIMES_NUMBER, dims(b), &minus_half, dy(b, 0), tensor(b, half));
    b->dx[POWER_X] = joined(b, half, cube);
    plan_run_unref(b->run, half);
    plan_run_unref(b->run, cube);
}

void plan_power_backward(const PlanBackward *b) {
    double exponent = attrs(b)[POWER_EXPONENT];
    if (exponent < 0) {
        reciprocal_root(b);
    } else {
        power_of_input(b, exponent);
    }
}
