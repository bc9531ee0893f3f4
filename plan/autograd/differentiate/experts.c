/* plan/autograd/differentiate/experts.c - the backward of routing and of products by expert.
 *
 * Sorting is of whole numbers and has none; nor has top-k where its result goes nowhere.
 */
#include <math.h>

#include "plan/autograd/backward.h"
#include "plan/autograd/differentiate/saved.h"
#include "plan/autograd/node.h"

/* Zeros, to which dy is added in the columns that value `index` names. */
static void put_back_columns(const PlanBackward *b, unsigned index) {
    b->dx[TOP_K_X] = like_input(b, TOP_K_X, "dx");
    KERNEL(b, PLAN_OP_PICK_COLUMNS_BACKWARD, dims(b), NULL, dy(b, 0), value(b, index),
           dx(b, TOP_K_X));
}

void plan_pick_columns_backward(const PlanBackward *b) {
    put_back_columns(b, 1);
}

void plan_top_k_backward(const PlanBackward *b) {
    put_back_columns(b, 2);
}

/* Each of a row's terms gets the row's gradient, in a copy of its own. */
void plan_sum_each_backward(const PlanBackward *b) {
    b->dx[SUM_EACH_X] = like_input(b, SUM_EACH_X, "dx");
    KERNEL(b, PLAN_OP_REPEAT_EACH, dims(b), NULL, dy(b, 0), dx(b, SUM_EACH_X));
}

/* One number a row, which all of the row's elements see: a view, not a tensor. */
void plan_total_columns_backward(const PlanBackward *b) {
    b->dx[TOTAL_COLUMNS_X] = plan_run_ref(b->run, b->dy[0]);
}

static PlanTensor divided(const PlanBackward *b, PlanOperand x, PlanTensor column,
                          const char *name) {
    PlanTensor y = like_input(b, DIVIDE_COLUMN_X, name);
    KERNEL(b, PLAN_OP_DIVIDE_COLUMN, dims(b), NULL, x, tensor(b, column), tensor(b, y));
    return y;
}

/* What x is divided by: a compiler keeps x alone, whose columns' sum it was, plus a number. */
static PlanTensor column_of(const PlanBackward *b) {
    PlanRun *run = b->run;
    if (!plan_makes_column_again(run->graph, b->op)) {
        return plan_run_ref(run, plan_run_value(run, value_at(b, DIVIDE_COLUMN_COLUMN)));
    }
    PlanTensor sum = like_input(b, DIVIDE_COLUMN_COLUMN, "sum"),
               column = like_input(b, DIVIDE_COLUMN_COLUMN, "column");
    const PlanEdge *from = &run->tape.edges.items[run->tape.nodes.items[b->node].edges + 1];
    const PlanGraphOp *plus = plan_graph_op_at(run->graph, run->tape.nodes.items[from->node].op);
    KERNEL(b, PLAN_OP_TOTAL_COLUMNS, dims(b), NULL, value(b, DIVIDE_COLUMN_X), tensor(b, sum));
    KERNEL(b, PLAN_OP_ADD_NUMBER, DIMS((int64_t)sum.elements),
           plan_graph_attrs_of(run->graph, plus), tensor(b, sum), tensor(b, column));
    plan_run_unref(run, sum);
    return column;
}

/* -dy ((x / column) / column), of every element. */
static PlanTensor whole_column_gradient(const PlanBackward *b, PlanTensor column) {
    double minus_one = -1;
    int64_t n = (int64_t)input(b, DIVIDE_COLUMN_X)->elements;
    PlanTensor once = divided(b, value(b, DIVIDE_COLUMN_X), column, "quotient");
    PlanTensor twice = divided(b, tensor(b, once), column, "quotient");
    PlanTensor negative = like_input(b, DIVIDE_COLUMN_X, "negative");
    KERNEL(b, PLAN_OP_TIMES_NUMBER, &n, &minus_one, dy(b, 0), tensor(b, negative));
    PlanTensor whole = like_input(b, DIVIDE_COLUMN_X, "dcolumn_whole");
    KERNEL(b, PLAN_OP_MUL, &n, NULL, tensor(b, negative), tensor(b, twice), tensor(b, whole));
    plan_run_unref(b->run, negative);
    plan_run_unref(b->run, twice);
    plan_run_unref(b->run, once);
    return whole;
}

void plan_divide_column_backward(const PlanBackward *b) {
    double one = 1;
    PlanTensor column = column_of(b), whole = whole_column_gradient(b, column);
    b->dx[DIVIDE_COLUMN_X] = divided(b, dy(b, 0), column, "dx");
    plan_run_unref(b->run, column);
    if (plan_run_unpacks(b->run, b->node)) {
        plan_run_drop_saved(b->run, b->node); /* unpacked for the quotients alone */
    }
    if (dim(b, DIVIDE_COLUMN_COLS) == 1) {
        b->dx[DIVIDE_COLUMN_COLUMN] = whole; /* one column: nothing was broadcast */
        return;
    }
    b->dx[DIVIDE_COLUMN_COLUMN] = like_input(b, DIVIDE_COLUMN_COLUMN, "dcolumn");
    KERNEL(b, PLAN_OP_SUM_COLUMNS, dims(b), &one, tensor(b, whole), dx(b, DIVIDE_COLUMN_COLUMN));
    plan_run_unref(b->run, whole);
}

/* As of an ungrouped product without a bias, the weight's gradient is made first. */
void plan_grouped_linear_backward(const PlanBackward *b) {
    if (wanted(b, GROUPED_LINEAR_W)) {
        b->dx[GROUPED_LINEAR_W] = like_input(b, GROUPED_LINEAR_W, "dw");
        KERNEL(b, PLAN_OP_GROUPED_LINEAR_DW, dims(b), NULL, dy(b, 0), value(b, GROUPED_LINEAR_X),
               value(b, GROUPED_LINEAR_ENDS), dx(b, GROUPED_LINEAR_W));
    }
    if (wanted(b, GROUPED_LINEAR_X)) {
        b->dx[GROUPED_LINEAR_X] = like_input(b, GROUPED_LINEAR_X, "dx");
        KERNEL(b, PLAN_OP_GROUPED_LINEAR_DX, dims(b), NULL, dy(b, 0), value(b, GROUPED_LINEAR_W),
               value(b, GROUPED_LINEAR_ENDS), dx(b, GROUPED_LINEAR_X));
    }
}

/* The same of a matrix that lies as it is multiplied: what makes its gradient is given x and dy the
 * other way about. */
void plan_grouped_product_backward(const PlanBackward *b) {
    int64_t m = dim(b, GROUPED_PRODUCT_M), n = dim(b, GROUPED_PRODUCT_N),
            k = dim(b, GROUPED_PRODUCT_K), groups = dim(b, GROUPED_PRODUCT_GROUPS);
    int64_t turned[] = {[GROUPED_LINEAR_M] = m,
                        [GROUPED_LINEAR_N] = k,
                        [GROUPED_LINEAR_K] = n,
                        [GROUPED_LINEAR_GROUPS] = groups};
    if (wanted(b, GROUPED_PRODUCT_W)) {
        b->dx[GROUPED_PRODUCT_W] = like_input(b, GROUPED_PRODUCT_W, "dw");
        KERNEL(b, PLAN_OP_GROUPED_LINEAR_DW, turned, NULL, value(b, GROUPED_PRODUCT_X), dy(b, 0),
               value(b, GROUPED_PRODUCT_ENDS), dx(b, GROUPED_PRODUCT_W));
    }
    if (wanted(b, GROUPED_PRODUCT_X)) {
        b->dx[GROUPED_PRODUCT_X] = like_input(b, GROUPED_PRODUCT_X, "dx");
        KERNEL(b, PLAN_OP_GROUPED_LINEAR, turned, NULL, dy(b, 0), value(b, GROUPED_PRODUCT_W),
               value(b, GROUPED_PRODUCT_ENDS), dx(b, GROUPED_PRODUCT_X));
    }
}

static PlanTensor limit_mask(const PlanBackward *b, double sign, double limit) {
    uint64_t n = input(b, CLAMP_COLUMNS_Y)->elements;
    PlanTensor mask = plan_run_new_tensor(b->run, n, PLAN_UINT8, "mask");
    KERNEL(b, PLAN_OP_LIMIT_MASK, dims(b), ((double[]){sign, limit}), value(b, CLAMP_COLUMNS_X),
           tensor(b, mask));
    return mask;
}

/* dy where x was within its limits, and else a zero that is made on the device first. */
void plan_clamp_columns_backward(const PlanBackward *b) {
    PlanRun *run = b->run;
    const PlanGraphValue *y = input(b, CLAMP_COLUMNS_Y);
    double least = attrs(b)[CLAMP_COLUMNS_LEAST], most = attrs(b)[CLAMP_COLUMNS_MOST], none = 0;
    int64_t n = (int64_t)y->elements, one = 1;
    bool has_least = isfinite(least);
    PlanTensor zero = plan_run_new_tensor(run, 1, (PlanDtype)y->dtype, "zero"), mask, other;
    KERNEL(b, PLAN_OP_FILL, &one, &none, tensor(b, zero));
    if (has_least) {
        mask = limit_mask(b, -1, -least);
        other = limit_mask(b, 1, most);
        KERNEL(b, PLAN_OP_BOTH_MASK, DIMS([BOTH_MASK_N] = n, [BOTH_MASK_N_ONE] = n), NULL,
               tensor(b, mask), tensor(b, other), tensor(b, mask));
    } else {
        mask = limit_mask(b, 1, most);
    }
    b->dx[CLAMP_COLUMNS_X] = plan_run_new_tensor(run, y->elements, (PlanDtype)y->dtype, "dx");
    KERNEL(b, PLAN_OP_WHERE_MASK, &n, NULL, tensor(b, mask), dy(b, 0), tensor(b, zero),
           dx(b, CLAMP_COLUMNS_X));
    if (has_least) {
        plan_run_unref(run, other);
    }
    plan_run_unref(run, mask);
    plan_run_unref(run, zero);
}

/* Zeros, to whose rows dy's are added. */
void plan_rows_of_backward(const PlanBackward *b) {
    b->dx[ROWS_OF_X] = like_input(b, ROWS_OF_X, "dx");
    KERNEL(b, PLAN_OP_EMBEDDING_BACKWARD, dims(b), NULL, dy(b, 0), value(b, ROWS_OF_INDEX),
           dx(b, ROWS_OF_X));
}

/* What was added to gets dy itself, each row that was added the row it went to. */
void plan_add_to_rows_backward(const PlanBackward *b) {
    if (wanted(b, ADD_TO_ROWS_A)) {
        b->dx[ADD_TO_ROWS_A] = plan_run_ref(b->run, b->dy[0]);
    }
    if (wanted(b, ADD_TO_ROWS_X)) {
        b->dx[ADD_TO_ROWS_X] = like_input(b, ADD_TO_ROWS_X, "dx");
        KERNEL(b, PLAN_OP_ROWS_OF, dims(b), NULL, dy(b, 0), value(b, ADD_TO_ROWS_INDEX),
               dx(b, ADD_TO_ROWS_X));
    }
}

/* Of what was put where index says, those rows. */
void plan_place_rows_backward(const PlanBackward *b) {
    int64_t of_all[] = {dim(b, PLACE_ROWS_N), dim(b, PLACE_ROWS_WIDTH), dim(b, PLACE_ROWS_N)};
    b->dx[PLACE_ROWS_X] = like_input(b, PLACE_ROWS_X, "dx");
    KERNEL(b, PLAN_OP_ROWS_OF, of_all, NULL, dy(b, 0), value(b, PLACE_ROWS_INDEX),
           dx(b, PLACE_ROWS_X));
}
