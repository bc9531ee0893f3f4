/* plan/autograd/differentiate/experts.c - the backward of routing and of products by expert.
 *
 * Sorting is of whole numbers and has none; nor has top-k where its result goes nowhere.
 */
#include "plan/autograd/backward.h"

/* Zeros, to which dy is added in the columns that value `index` names. */
static void put_back_columns(const PlanBackward *b, unsigned index) {
    b->dx[TOP_K_X] = like_input(b, TOP_K_X, "dx");
    begin(b, PLAN_OP_PICK_COLUMNS_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, index);
    operand(b, b->dx[TOP_K_X]);
    launch(b);
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
    begin(b, PLAN_OP_REPEAT_EACH, dims(b), NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[SUM_EACH_X]);
    launch(b);
}

/* One number a row, which all of the row's elements see: a view, not a tensor. */
void plan_total_columns_backward(const PlanBackward *b) {
    b->dx[TOTAL_COLUMNS_X] = plan_run_ref(b->run, b->dy[0]);
}

static PlanTensor divided(const PlanBackward *b, PlanTensor x, PlanTensor column,
                          const char *name) {
    PlanTensor y = like_input(b, DIVIDE_COLUMN_X, name);
    begin(b, PLAN_OP_DIVIDE_COLUMN, dims(b), NULL);
    if (x.storage == PLAN_NONE) {
        value_operand(b, DIVIDE_COLUMN_X);
    } else {
        operand(b, x);
    }
    operand(b, column);
    operand(b, y);
    launch(b);
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
    begin(b, PLAN_OP_TOTAL_COLUMNS, dims(b), NULL);
    value_operand(b, DIVIDE_COLUMN_X);
    operand(b, sum);
    launch(b);
    begin(b, PLAN_OP_ADD_NUMBER, (int64_t[]){(int64_t)sum.elements},
          plan_graph_attrs_of(run->graph, plus));
    operand(b, sum);
    operand(b, column);
    launch(b);
    plan_run_unref(run, sum);
    return column;
}

/* -dy ((x / column) / column), of every element. */
static PlanTensor whole_column_gradient(const PlanBackward *b, PlanTensor column) {
    double minus_one = -1;
    int64_t n = (int64_t)input(b, DIVIDE_COLUMN_X)->elements;
    PlanTensor once = divided(b, PLAN_NO_TENSOR, column, "quotient");
    PlanTensor twice = divided(b, once, column, "quotient");
    PlanTensor negative = like_input(b, DIVIDE_COLUMN_X, "negative");
    begin(b, PLAN_OP_TIMES_NUMBER, &n, &minus_one);
    operand(b, b->dy[0]);
    operand(b, negative);
    launch(b);
    PlanTensor whole = like_input(b, DIVIDE_COLUMN_X, "dcolumn_whole");
    begin(b, PLAN_OP_MUL, &n, NULL);
    operand(b, negative);
    operand(b, twice);
    operand(b, whole);
    launch(b);
    plan_run_unref(b->run, negative);
    plan_run_unref(b->run, twice);
    plan_run_unref(b->run, once);
    return whole;
}

void plan_divide_column_backward(const PlanBackward *b) {
    double one = 1;
    PlanTensor column = column_of(b), whole = whole_column_gradient(b, column);
    b->dx[DIVIDE_COLUMN_X] = divided(b, b->dy[0], column, "dx");
    plan_run_unref(b->run, column);
    if (b->run->tape.nodes.items[b->node].checkpoint != PLAN_NONE) {
        plan_run_drop_saved(b->run, b->node); /* unpacked for the quotients alone */
    }
    if (dim(b, DIVIDE_COLUMN_COLS) == 1) {
        b->dx[DIVIDE_COLUMN_COLUMN] = whole; /* one column: nothing was broadcast */
        return;
    }
    b->dx[DIVIDE_COLUMN_COLUMN] = like_input(b, DIVIDE_COLUMN_COLUMN, "dcolumn");
    begin(b, PLAN_OP_SUM_COLUMNS, dims(b), &one);
    operand(b, whole);
    operand(b, b->dx[DIVIDE_COLUMN_COLUMN]);
    launch(b);
    plan_run_unref(b->run, whole);
}

/* As of an ungrouped product without a bias, the weight's gradient is made first. */
void plan_grouped_linear_backward(const PlanBackward *b) {
    if (wanted(b, GROUPED_LINEAR_W)) {
        b->dx[GROUPED_LINEAR_W] = like_input(b, GROUPED_LINEAR_W, "dw");
        begin(b, PLAN_OP_GROUPED_LINEAR_DW, dims(b), NULL);
        operand(b, b->dy[0]);
        value_operand(b, GROUPED_LINEAR_X);
        value_operand(b, GROUPED_LINEAR_ENDS);
        operand(b, b->dx[GROUPED_LINEAR_W]);
        launch(b);
    }
    if (wanted(b, GROUPED_LINEAR_X)) {
        b->dx[GROUPED_LINEAR_X] = like_input(b, GROUPED_LINEAR_X, "dx");
        begin(b, PLAN_OP_GROUPED_LINEAR_DX, dims(b), NULL);
        operand(b, b->dy[0]);
        value_operand(b, GROUPED_LINEAR_W);
        value_operand(b, GROUPED_LINEAR_ENDS);
        operand(b, b->dx[GROUPED_LINEAR_X]);
        launch(b);
    }
}

/* Zeros, to whose rows dy's are added. */
void plan_rows_of_backward(const PlanBackward *b) {
    b->dx[ROWS_OF_X] = like_input(b, ROWS_OF_X, "dx");
    begin(b, PLAN_OP_EMBEDDING_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, ROWS_OF_INDEX);
    operand(b, b->dx[ROWS_OF_X]);
    launch(b);
}

/* What was added to gets dy itself, each row that was added the row it went to. */
void plan_add_to_rows_backward(const PlanBackward *b) {
    if (wanted(b, ADD_TO_ROWS_A)) {
        b->dx[ADD_TO_ROWS_A] = plan_run_ref(b->run, b->dy[0]);
    }
    if (wanted(b, ADD_TO_ROWS_X)) {
        b->dx[ADD_TO_ROWS_X] = like_input(b, ADD_TO_ROWS_X, "dx");
        begin(b, PLAN_OP_ROWS_OF, dims(b), NULL);
        operand(b, b->dy[0]);
        value_operand(b, ADD_TO_ROWS_INDEX);
        operand(b, b->dx[ADD_TO_ROWS_X]);
        launch(b);
    }
}

/* Of what was put where index says, those rows. */
void plan_place_rows_backward(const PlanBackward *b) {
    int64_t of_all[] = {dim(b, PLACE_ROWS_N), dim(b, PLACE_ROWS_WIDTH), dim(b, PLACE_ROWS_N)};
    b->dx[PLACE_ROWS_X] = like_input(b, PLACE_ROWS_X, "dx");
    begin(b, PLAN_OP_ROWS_OF, of_all, NULL);
    operand(b, b->dy[0]);
    value_operand(b, PLACE_ROWS_INDEX);
    operand(b, b->dx[PLACE_ROWS_X]);
    launch(b);
}
