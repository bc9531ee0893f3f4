/* plan/autograd/differentiate/heads.c - the backward of ops that know heads: rotary embedding, and
 * attention with its scores in memory.
 */
#include "plan/autograd/shared/ring.h"

/* ---- rotary embedding ----------------------------------------------------------------------- */

void plan_negate_half_backward(const PlanBackward *b) {
    const PlanGraphValue *x = input(b, NEGATE_HALF_X);
    b->dx[NEGATE_HALF_X] =
        plan_run_new_tensor(b->run, (uint64_t)(dim(b, NEGATE_HALF_ROWS) * dim(b, NEGATE_HALF_HALF)),
                            (PlanDtype)x->dtype, "dx_half");
    KERNEL(b, PLAN_OP_NEGATE_HALF,
           DIMS([NEGATE_HALF_ROWS] = dim(b, NEGATE_HALF_ROWS),
                [NEGATE_HALF_HALF] = dim(b, NEGATE_HALF_HALF), [NEGATE_HALF_FROM] = 0,
                [NEGATE_HALF_HEADS] = 1, [NEGATE_HALF_STRIDE] = 2 * dim(b, NEGATE_HALF_HALF)),
           NULL, dy(b, 0), dx(b, NEGATE_HALF_X));
}

/* Each part's gradient is a view of dy: the lower half the first's, the upper half the second's. */
void plan_join_halves_backward(const PlanBackward *b) {
    b->dx[JOIN_HALVES_LOWER] = plan_run_ref(b->run, b->dy[0]);
    b->dx[JOIN_HALVES_X] = plan_run_ref(b->run, b->dy[0]);
}

static PlanTensor new_rows(const PlanBackward *b, int64_t rows, int64_t cols) {
    PlanDtype dtype = (PlanDtype)input(b, b->op->n_inputs)->dtype;
    return plan_run_new_tensor(b->run, (uint64_t)(rows * cols), dtype, "dx");
}

/* The gradient of the upper half is a tensor of its own (negate_half's), that of the lower half is
 * the upper half of what join_halves was given. */
void plan_half_backward(const PlanBackward *b) {
    int64_t rows = dim(b, PLAN_GRAPH_HALF_ROWS), n = dim(b, PLAN_GRAPH_HALF_HALF),
            start = dim(b, PLAN_GRAPH_HALF_FROM);
    bool upper = start > 0;
    b->dx[0] = new_rows(b, rows, 2 * n); /* x may be a part of longer rows */
    KERNEL(b, PLAN_OP_PUT_COLUMNS,
           DIMS([PUT_COLUMNS_ROWS] = rows, [PUT_COLUMNS_COLS] = n,
                [PUT_COLUMNS_WIDTH] = upper ? n : 2 * n, [PUT_COLUMNS_FROM] = upper ? 0 : n,
                [PUT_COLUMNS_TO] = upper ? n : 0, [PUT_COLUMNS_TOTAL] = 2 * n),
           NULL, dy(b, 0), dx(b, 0));
}

void plan_columns_backward(const PlanBackward *b) {
    const int64_t *d = dims(b);
    int64_t rows = d[PLAN_GRAPH_COLUMNS_ROWS], total = d[PLAN_GRAPH_COLUMNS_TOTAL];
    b->dx[0] = new_rows(b, rows, total);
    KERNEL(b, PLAN_OP_PUT_COLUMNS,
           DIMS([PUT_COLUMNS_ROWS] = rows, [PUT_COLUMNS_COLS] = d[PLAN_GRAPH_COLUMNS_COLS],
                [PUT_COLUMNS_WIDTH] = d[PLAN_GRAPH_COLUMNS_DY_WIDTH],
                [PUT_COLUMNS_FROM] = d[PLAN_GRAPH_COLUMNS_DY_FROM],
                [PUT_COLUMNS_TO] = d[PLAN_GRAPH_COLUMNS_FROM], [PUT_COLUMNS_TOTAL] = total),
           NULL, dy(b, 0), dx(b, 0));
}

/* Views of dy; where autocast widened one of the two, the other's is narrowed by itself. */
void plan_join_columns_backward(const PlanBackward *b) {
    PlanDtype joined = (PlanDtype)input(b, JOIN_COLUMNS_Y)->dtype,
              second = (PlanDtype)input(b, JOIN_COLUMNS_B)->dtype;
    int64_t rows = dim(b, JOIN_COLUMNS_ROWS), a_cols = dim(b, JOIN_COLUMNS_A_COLS),
            cols = dim(b, JOIN_COLUMNS_B_COLS);
    b->dx[JOIN_COLUMNS_A] = plan_run_ref(b->run, b->dy[0]);
    if (second == joined) {
        b->dx[JOIN_COLUMNS_B] = plan_run_ref(b->run, b->dy[0]);
        return;
    }
    b->dx[JOIN_COLUMNS_B] = plan_run_new_tensor(b->run, (uint64_t)(rows * cols), second, "dx");
    KERNEL(b, PLAN_OP_COPY_COLUMNS,
           DIMS([COPY_COLUMNS_ROWS] = rows, [COPY_COLUMNS_COLS] = cols,
                [COPY_COLUMNS_WIDTH] = a_cols + cols, [COPY_COLUMNS_FROM] = a_cols),
           NULL, dy(b, 0), dx(b, JOIN_COLUMNS_B));
}

/* dy is the first columns of what was joined with as many others. */
void plan_negate_columns_backward(const PlanBackward *b) {
    b->dx[NEGATE_COLUMNS_X] = new_rows(b, dim(b, NEGATE_COLUMNS_ROWS), dim(b, NEGATE_COLUMNS_COLS));
    KERNEL(
        b, PLAN_OP_NEGATE_COLUMNS,
        DIMS([NEGATE_COLUMNS_ROWS] = dim(b, NEGATE_COLUMNS_ROWS),
             [NEGATE_COLUMNS_COLS] = dim(b, NEGATE_COLUMNS_COLS),
             [NEGATE_COLUMNS_WIDTH] = 2 * dim(b, NEGATE_COLUMNS_COLS), [NEGATE_COLUMNS_FROM] = 0),
        NULL, dy(b, 0), dx(b, NEGATE_COLUMNS_X));
}

void plan_table_mul_columns_backward(const PlanBackward *b) {
    const int64_t *d = dims(b);
    b->dx[TABLE_MUL_COLUMNS_X] = new_rows(
        b, d[TABLE_MUL_COLUMNS_TOKENS] * d[TABLE_MUL_COLUMNS_HEADS], d[TABLE_MUL_COLUMNS_DIM]);
    KERNEL(b, PLAN_OP_TABLE_MUL_COLUMNS,
           DIMS([TABLE_MUL_COLUMNS_TOKENS] = d[TABLE_MUL_COLUMNS_TOKENS],
                [TABLE_MUL_COLUMNS_HEADS] = d[TABLE_MUL_COLUMNS_HEADS],
                [TABLE_MUL_COLUMNS_DIM] = d[TABLE_MUL_COLUMNS_DIM],
                [TABLE_MUL_COLUMNS_SEQ] = d[TABLE_MUL_COLUMNS_SEQ],
                [TABLE_MUL_COLUMNS_WIDTH] = d[TABLE_MUL_COLUMNS_BACK],
                [TABLE_MUL_COLUMNS_BACK] = d[TABLE_MUL_COLUMNS_BACK]),
           NULL, dy(b, 0), value(b, TABLE_MUL_COLUMNS_TABLE), dx(b, TABLE_MUL_COLUMNS_X));
}

/* Some of the numbers that dy's storage has, from that one on. */
static PlanOperand from(const PlanBackward *b, PlanTensor whole, int64_t first) {
    whole.offset += (uint64_t)first;
    whole.elements -= (uint64_t)first;
    return tensor(b, whole);
}

/* Where dy lies head by head its rows follow each other as positions do. */
void plan_table_mul_part_backward(const PlanBackward *b) {
    const int64_t *d = dims(b);
    int64_t rows = d[TABLE_MUL_PART_TOKENS] * d[TABLE_MUL_PART_HEADS];
    bool apart = d[TABLE_MUL_PART_APART];
    b->dx[TABLE_MUL_PART_X] = new_rows(b, rows, d[TABLE_MUL_PART_DIM]);
    KERNEL(b, PLAN_OP_TABLE_MUL_PART,
           DIMS([TABLE_MUL_PART_TOKENS] = apart ? rows : d[TABLE_MUL_PART_TOKENS],
                [TABLE_MUL_PART_HEADS] = apart ? 1 : d[TABLE_MUL_PART_HEADS],
                [TABLE_MUL_PART_DIM] = d[TABLE_MUL_PART_DIM],
                [TABLE_MUL_PART_SEQ] = d[TABLE_MUL_PART_SEQ],
                [TABLE_MUL_PART_WIDTH] = d[TABLE_MUL_PART_BACK],
                [TABLE_MUL_PART_BACK] = d[TABLE_MUL_PART_BACK], [TABLE_MUL_PART_BACK_FROM] = 0,
                [TABLE_MUL_PART_APART] = 0),
           NULL, from(b, b->dy[0], d[TABLE_MUL_PART_BACK_FROM]), value(b, TABLE_MUL_PART_TABLE),
           dx(b, TABLE_MUL_PART_X));
}

/* What was subtracted gets dy with its sign changed, in a tensor of its own. */
void plan_sub_backward(const PlanBackward *b) {
    int64_t rows = dim(b, SUB_ROWS), cols = dim(b, SUB_COLS);
    b->dx[SUB_A] = plan_run_ref(b->run, b->dy[0]);
    b->dx[SUB_B] = new_rows(b, rows, cols);
    KERNEL(b, PLAN_OP_NEGATE_COLUMNS,
           DIMS([NEGATE_COLUMNS_ROWS] = rows, [NEGATE_COLUMNS_COLS] = cols,
                [NEGATE_COLUMNS_WIDTH] = dim(b, SUB_BACK), [NEGATE_COLUMNS_FROM] = 0),
           NULL, dy(b, 0), dx(b, SUB_B));
}

/* A product of complex numbers is turned back by the conjugate, which PyTorch writes to a table of
 * its own each time. */
void plan_turn_backward(const PlanBackward *b) {
    PlanTensor back = like_input(b, TURN_TURNS, "turns_back");
    KERNEL(b, PLAN_OP_CONJUGATE, DIMS((int64_t)back.elements), NULL, value(b, TURN_TURNS),
           tensor(b, back));
    b->dx[TURN_X] = like_input(b, TURN_X, "dx");
    KERNEL(b, PLAN_OP_TURN,
           DIMS([TURN_TOKENS] = dim(b, TURN_TOKENS), [TURN_HEADS] = dim(b, TURN_HEADS),
                [TURN_DIM] = dim(b, TURN_DIM), [TURN_SEQ] = dim(b, TURN_SEQ),
                [TURN_STRIDE] = dim(b, TURN_HEADS) * dim(b, TURN_DIM)),
           NULL, dy(b, 0), tensor(b, back), dx(b, TURN_X));
    plan_run_unref(b->run, back);
}

/* ---- attention with its scores in memory ---------------------------------------------------- */

/* The gradient comes dense, with its heads apart or not. */
void plan_table_mul_backward(const PlanBackward *b) {
    b->dx[TABLE_MUL_X] = in_dtype_of_result(b, TABLE_MUL_X, "dx");
    KERNEL(b, PLAN_OP_TABLE_MUL_BACKWARD, dims(b), NULL, dy(b, 0), value(b, TABLE_MUL_TABLE),
           dx(b, TABLE_MUL_X));
}

void plan_sum_heads_backward(const PlanBackward *b) {
    b->dx[REPEAT_HEADS_X] = like_input(b, REPEAT_HEADS_X, "dx");
    KERNEL(b, PLAN_OP_SUM_HEADS, dims(b), NULL, dy(b, 0), dx(b, REPEAT_HEADS_X));
}

static void copy_heads(const PlanBackward *b, PlanTensor from, PlanTensor to, bool back) {
    int64_t batch = dim(b, HEADS_COPY_BATCH), seq = dim(b, HEADS_COPY_SEQ),
            heads = dim(b, HEADS_COPY_HEADS), head_dim = dim(b, HEADS_COPY_DIM);
    KERNEL(b, PLAN_OP_HEADS_COPY,
           DIMS([HEADS_COPY_BATCH] = batch, [HEADS_COPY_SEQ] = seq, [HEADS_COPY_HEADS] = heads,
                [HEADS_COPY_DIM] = head_dim, [HEADS_COPY_STRIDE] = heads * head_dim,
                [HEADS_COPY_BACK] = back),
           NULL, tensor(b, from), tensor(b, to));
}

/* What copies heads apart gets its gradient back as it is; what merges them needs dy with its heads
 * apart, for which the heads of one sequence need no copy. */
void plan_heads_copy_backward(const PlanBackward *b) {
    bool merges = dim(b, HEADS_COPY_BACK);
    if (!merges || dim(b, HEADS_COPY_BATCH) == 1) {
        b->dx[HEADS_COPY_X] = plan_run_ref(b->run, b->dy[0]);
        return;
    }
    b->dx[HEADS_COPY_X] = like_input(b, HEADS_COPY_X, "dx");
    copy_heads(b, b->dy[0], b->dx[HEADS_COPY_X], false);
}

void plan_heads_view_backward(const PlanBackward *b) {
    PlanGraphHeads mode = (PlanGraphHeads)dim(b, PLAN_GRAPH_HEADS_MODE);
    bool joined = mode != PLAN_HEADS_OF_RING || plan_ring_joins(b->run);
    if (mode == PLAN_HEADS_AS_THEY_ARE || !joined) {
        b->dx[0] = plan_run_ref(b->run, b->dy[0]);
        return;
    }
    b->dx[0] = like_input(b, 0, "dx");
    if (mode == PLAN_HEADS_APART) {
        copy_heads(b, b->dy[0], b->dx[0], true);
        return;
    }
    KERNEL(b, PLAN_OP_COPY, DIMS((int64_t)b->dx[0].elements), NULL, dy(b, 0), dx(b, 0));
}

/* y = a b. A transposed b is k: its gradient lies as k does. Otherwise b is v, and dy comes from
 * merged heads: of one sequence as it is, of several with heads apart. */
enum {
    TRANSPOSED = 1,
    INSIDE = 2
};

static int64_t layout_of_dy(const int64_t *d) {
    return d[HEADS_MATMUL_B_LAYOUT] & TRANSPOSED || d[HEADS_MATMUL_BATCH] > 1 ? 0 : INSIDE;
}

static void heads_matmul_db(const PlanBackward *b) {
    const int64_t *d = dims(b);
    bool is_turned = d[HEADS_MATMUL_B_LAYOUT] & TRANSPOSED;
    int64_t m = d[HEADS_MATMUL_M], n = d[HEADS_MATMUL_N], k = d[HEADS_MATMUL_K],
            inside = d[HEADS_MATMUL_HEADS] * (is_turned ? k : n);
    int64_t dy_layout = layout_of_dy(d);
    int64_t db_layout =
        attrs(b)[HEADS_MATMUL_INSIDE] > 0 ? INSIDE : d[HEADS_MATMUL_B_LAYOUT] & ~TRANSPOSED;
    double no = 0;
    b->dx[HEADS_MATMUL_B] = like_input(b, HEADS_MATMUL_B, "db");
    KERNEL(b, PLAN_OP_HEADS_MATMUL, /* of its transpose where b is transposed */
           is_turned ? DIMS([HEADS_MATMUL_BATCH] = d[HEADS_MATMUL_BATCH],
                            [HEADS_MATMUL_HEADS] = d[HEADS_MATMUL_HEADS], [HEADS_MATMUL_M] = n,
                            [HEADS_MATMUL_N] = k, [HEADS_MATMUL_K] = m,
                            [HEADS_MATMUL_A_LAYOUT] = dy_layout | TRANSPOSED,
                            [HEADS_MATMUL_B_LAYOUT] = d[HEADS_MATMUL_A_LAYOUT],
                            [HEADS_MATMUL_Y_LAYOUT] = db_layout, [HEADS_MATMUL_A_STRIDE] = inside,
                            [HEADS_MATMUL_B_STRIDE] = d[HEADS_MATMUL_A_STRIDE])
                     : DIMS([HEADS_MATMUL_BATCH] = d[HEADS_MATMUL_BATCH],
                            [HEADS_MATMUL_HEADS] = d[HEADS_MATMUL_HEADS], [HEADS_MATMUL_M] = k,
                            [HEADS_MATMUL_N] = n, [HEADS_MATMUL_K] = m,
                            [HEADS_MATMUL_A_LAYOUT] = d[HEADS_MATMUL_A_LAYOUT] | TRANSPOSED,
                            [HEADS_MATMUL_B_LAYOUT] = dy_layout, [HEADS_MATMUL_Y_LAYOUT] = 0,
                            [HEADS_MATMUL_A_STRIDE] = d[HEADS_MATMUL_A_STRIDE],
                            [HEADS_MATMUL_B_STRIDE] = inside),
           &no, is_turned ? dy(b, 0) : value(b, HEADS_MATMUL_A),
           is_turned ? value(b, HEADS_MATMUL_A) : dy(b, 0), dx(b, HEADS_MATMUL_B));
}

static void heads_matmul_da(const PlanBackward *b) {
    const int64_t *d = dims(b);
    int64_t m = d[HEADS_MATMUL_M], n = d[HEADS_MATMUL_N], k = d[HEADS_MATMUL_K],
            inside = d[HEADS_MATMUL_HEADS] * (d[HEADS_MATMUL_B_LAYOUT] & TRANSPOSED ? k : n);
    double no = 0;
    b->dx[HEADS_MATMUL_A] = /* dense, whatever rows a was a part of */
        plan_run_new_tensor(b->run,
                            (uint64_t)(d[HEADS_MATMUL_BATCH] * d[HEADS_MATMUL_HEADS] * m * k),
                            (PlanDtype)input(b, HEADS_MATMUL_A)->dtype, "da");
    KERNEL(
        b, PLAN_OP_HEADS_MATMUL,
        DIMS([HEADS_MATMUL_BATCH] = d[HEADS_MATMUL_BATCH],
             [HEADS_MATMUL_HEADS] = d[HEADS_MATMUL_HEADS], [HEADS_MATMUL_M] = m,
             [HEADS_MATMUL_N] = k, [HEADS_MATMUL_K] = n, [HEADS_MATMUL_A_LAYOUT] = layout_of_dy(d),
             [HEADS_MATMUL_B_LAYOUT] = d[HEADS_MATMUL_B_LAYOUT] ^ TRANSPOSED,
             [HEADS_MATMUL_Y_LAYOUT] = 0, [HEADS_MATMUL_A_STRIDE] = inside,
             [HEADS_MATMUL_B_STRIDE] = d[HEADS_MATMUL_B_STRIDE]),
        &no, dy(b, 0), value(b, HEADS_MATMUL_B), dx(b, HEADS_MATMUL_A));
}

void plan_heads_matmul_backward(const PlanBackward *b) {
    if (wanted(b, HEADS_MATMUL_B)) {
        heads_matmul_db(b);
    }
    if (wanted(b, HEADS_MATMUL_A)) {
        heads_matmul_da(b);
    }
}

/* What was filled in gets none. */
void plan_masked_fill_backward(const PlanBackward *b) {
    b->dx[MASKED_FILL_X] = like_input(b, MASKED_FILL_X, "dx");
    KERNEL(b, PLAN_OP_MASKED_FILL,
           DIMS([MASKED_FILL_OUTER] = dim(b, MASKED_FILL_OUTER) * dim(b, MASKED_FILL_INNER),
                [MASKED_FILL_N] = dim(b, MASKED_FILL_N), [MASKED_FILL_INNER] = 1),
           (double[]){0}, dy(b, 0), value(b, MASKED_FILL_MASK), dx(b, MASKED_FILL_X));
}

/* Scores get a view of dy, each head's sink the sum of the last numbers of its rows. */
void plan_join_sinks_backward(const PlanBackward *b) {
    b->dx[JOIN_SINKS_X] = plan_run_ref(b->run, b->dy[0]);
    b->dx[JOIN_SINKS_SINK] = like_wanted(b, JOIN_SINKS_SINK, "dsink");
    if (wanted(b, JOIN_SINKS_SINK)) {
        KERNEL(b, PLAN_OP_SUM_SINKS, dims(b), NULL, dy(b, 0), dx(b, JOIN_SINKS_SINK));
    }
}

/* What each row was lessened by gets the row's sum, of a tensor with all signs changed. */
void plan_sub_column_backward(const PlanBackward *b) {
    double one = 1;
    int64_t rows = dim(b, SUB_COLUMN_ROWS), cols = dim(b, SUB_COLUMN_COLS);
    b->dx[SUB_COLUMN_X] = plan_run_ref(b->run, b->dy[0]);
    PlanTensor negative = like_input(b, SUB_COLUMN_X, "negative");
    KERNEL(b, PLAN_OP_NEGATE_COLUMNS,
           DIMS([NEGATE_COLUMNS_ROWS] = rows, [NEGATE_COLUMNS_COLS] = cols,
                [NEGATE_COLUMNS_WIDTH] = cols, [NEGATE_COLUMNS_FROM] = 0),
           NULL, dy(b, 0), tensor(b, negative));
    b->dx[SUB_COLUMN_COLUMN] = like_input(b, SUB_COLUMN_COLUMN, "dcolumn");
    KERNEL(b, PLAN_OP_SUM_COLUMNS, dims(b), &one, tensor(b, negative), dx(b, SUB_COLUMN_COLUMN));
    plan_run_unref(b->run, negative);
}

void plan_sum_sequences_backward(const PlanBackward *b, unsigned i, int64_t times, int64_t n) {
    if (times == 1) {
        b->dx[i] = plan_run_ref(b->run, b->dy[0]);
        return;
    }
    b->dx[i] = like_input(b, i, "dbias");
    KERNEL(b, PLAN_OP_SUM_ROWS, DIMS([SUM_ROWS_ROWS] = times, [SUM_ROWS_COLS] = n), NULL, dy(b, 0),
           dx(b, i));
}

/* The bias lies with its heads innermost, its gradient with them outermost. */
void plan_bias_add_backward(const PlanBackward *b) {
    if (wanted(b, BIAS_ADD_X)) {
        b->dx[BIAS_ADD_X] = plan_run_ref(b->run, b->dy[0]);
        plan_give_own_dtype(b, 0); /* the engine takes one input after the other */
    }
    if (wanted(b, BIAS_ADD_BIAS)) {
        plan_sum_sequences_backward(b, BIAS_ADD_BIAS, dim(b, BIAS_ADD_BATCH),
                                    dim(b, BIAS_ADD_HEADS) * dim(b, BIAS_ADD_ROWS) *
                                        dim(b, BIAS_ADD_COLS));
    }
}
