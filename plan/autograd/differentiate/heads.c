/* plan/autograd/differentiate/heads.c - the backward of ops that know heads: rotary embedding, and
 * attention with its scores in memory.
 */
#include "plan/autograd/shared/ring.h"

/* ---- rotary embedding ----------------------------------------------------------------------- */

void plan_negate_half_backward(const PlanBackward *b) {
    const PlanGraphValue *x = input(b, 0);
    b->dx[0] = plan_run_new_tensor(b->run, (uint64_t)(dim(b, 0) * dim(b, 1)), (PlanDtype)x->dtype,
                                   "dx_half");
    begin(b, PLAN_OP_NEGATE_HALF, (int64_t[]){dim(b, 0), dim(b, 1), 0, 1, 2 * dim(b, 1)}, NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[0]);
    launch(b);
}

/* Each part's gradient is a view of dy: the lower half the first's, the upper half the second's. */
void plan_join_halves_backward(const PlanBackward *b) {
    b->dx[0] = plan_run_ref(b->run, b->dy[0]);
    b->dx[1] = plan_run_ref(b->run, b->dy[0]);
}

/* The gradient of the upper half is a tensor of its own (negate_half's), that of the lower half is
 * the upper half of what join_halves was given. */
void plan_half_backward(const PlanBackward *b) {
    int64_t rows = dim(b, 0), n = dim(b, 1), start = dim(b, 2);
    bool upper = start > 0;
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_PUT_COLUMNS,
          (int64_t[]){rows, n, upper ? n : 2 * n, upper ? 0 : n, upper ? n : 0, 2 * n}, NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[0]);
    launch(b);
}

static PlanTensor new_rows(const PlanBackward *b, int64_t rows, int64_t cols) {
    PlanDtype dtype = (PlanDtype)input(b, b->op->n_inputs)->dtype;
    return plan_run_new_tensor(b->run, (uint64_t)(rows * cols), dtype, "dx");
}

void plan_columns_backward(const PlanBackward *b) {
    const int64_t *d = dims(b);
    b->dx[0] = new_rows(b, d[0], d[3]);
    begin(b, PLAN_OP_PUT_COLUMNS, (int64_t[]){d[0], d[1], d[4], d[5], d[2], d[3]}, NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[0]);
    launch(b);
}

/* Views of dy; where autocast widened one of the two, the other's is narrowed by itself. */
void plan_join_columns_backward(const PlanBackward *b) {
    PlanDtype joined = (PlanDtype)input(b, 2)->dtype, second = (PlanDtype)input(b, 1)->dtype;
    int64_t rows = dim(b, 0), a_cols = dim(b, 1), cols = dim(b, 2);
    b->dx[0] = plan_run_ref(b->run, b->dy[0]);
    if (second == joined) {
        b->dx[1] = plan_run_ref(b->run, b->dy[0]);
        return;
    }
    b->dx[1] = plan_run_new_tensor(b->run, (uint64_t)(rows * cols), second, "dx");
    begin(b, PLAN_OP_COPY_COLUMNS, (int64_t[]){rows, cols, a_cols + cols, a_cols}, NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[1]);
    launch(b);
}

/* dy is the first columns of what was joined with as many others. */
void plan_negate_columns_backward(const PlanBackward *b) {
    b->dx[0] = new_rows(b, dim(b, 0), dim(b, 1));
    begin(b, PLAN_OP_NEGATE_COLUMNS, (int64_t[]){dim(b, 0), dim(b, 1), 2 * dim(b, 1), 0}, NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[0]);
    launch(b);
}

void plan_table_mul_columns_backward(const PlanBackward *b) {
    const int64_t *d = dims(b);
    b->dx[0] = new_rows(b, d[0] * d[1], d[2]);
    begin(b, PLAN_OP_TABLE_MUL_COLUMNS, (int64_t[]){d[0], d[1], d[2], d[3], d[5], d[5]}, NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    launch(b);
}

/* A product of complex numbers is turned back by the conjugate, which PyTorch writes to a table of
 * its own each time. */
void plan_turn_backward(const PlanBackward *b) {
    PlanTensor back = like_input(b, 1, "turns_back");
    begin(b, PLAN_OP_CONJUGATE, (int64_t[]){(int64_t)back.elements}, NULL);
    value_operand(b, 1);
    operand(b, back);
    launch(b);
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_TURN,
          (int64_t[]){dim(b, 0), dim(b, 1), dim(b, 2), dim(b, 3), dim(b, 1) * dim(b, 2)}, NULL);
    operand(b, b->dy[0]);
    operand(b, back);
    operand(b, b->dx[0]);
    launch(b);
    plan_run_unref(b->run, back);
}

/* ---- attention with its scores in memory ---------------------------------------------------- */

/* The gradient comes dense, with its heads apart or not. */
void plan_table_mul_backward(const PlanBackward *b) {
    b->dx[0] = in_dtype_of_result(b, 0, "dx");
    begin(b, PLAN_OP_TABLE_MUL_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    launch(b);
}

void plan_sum_heads_backward(const PlanBackward *b) {
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_SUM_HEADS, dims(b), NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[0]);
    launch(b);
}

static void copy_heads(const PlanBackward *b, PlanTensor from, PlanTensor to, bool back) {
    int64_t batch = dim(b, 0), seq = dim(b, 1), heads = dim(b, 2), head_dim = dim(b, 3);
    begin(b, PLAN_OP_HEADS_COPY, (int64_t[]){batch, seq, heads, head_dim, heads * head_dim, back},
          NULL);
    operand(b, from);
    operand(b, to);
    launch(b);
}

/* What copies heads apart gets its gradient back as it is; what merges them needs dy with its heads
 * apart, for which the heads of one sequence need no copy. */
void plan_heads_copy_backward(const PlanBackward *b) {
    bool merges = dim(b, 5);
    if (!merges || dim(b, 0) == 1) {
        b->dx[0] = plan_run_ref(b->run, b->dy[0]);
        return;
    }
    b->dx[0] = like_input(b, 0, "dx");
    copy_heads(b, b->dy[0], b->dx[0], false);
}

void plan_heads_view_backward(const PlanBackward *b) {
    PlanGraphHeads mode = (PlanGraphHeads)dim(b, 4);
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
    begin(b, PLAN_OP_COPY, (int64_t[]){(int64_t)b->dx[0].elements}, NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[0]);
    launch(b);
}

/* y = a b. A transposed b is k: its gradient lies as k does. Otherwise b is v, and dy comes from
 * merged heads: of one sequence as it is, of several with heads apart. */
enum {
    TRANSPOSED = 1,
    INSIDE = 2
};

static int64_t layout_of_dy(const int64_t *d) {
    return d[6] & TRANSPOSED || d[0] > 1 ? 0 : INSIDE;
}

static void heads_matmul_db(const PlanBackward *b) {
    const int64_t *d = dims(b);
    int64_t m = d[2], n = d[3], k = d[4], inside = d[1] * (d[6] & TRANSPOSED ? k : n);
    int64_t dy_layout = layout_of_dy(d);
    int64_t db_layout = d[6] & TRANSPOSED ? d[6] : 0;
    double no = 0;
    if (d[6] & TRANSPOSED && attrs(b)[0] > 0) {
        db_layout = TRANSPOSED | INSIDE;
    }
    b->dx[1] = like_input(b, 1, "db");
    begin(b, PLAN_OP_HEADS_MATMUL, /* of its transpose where b is transposed */
          d[6] & TRANSPOSED
              ? (int64_t[]){d[0], d[1], n, k, m, dy_layout | TRANSPOSED, d[5],
                            db_layout & ~TRANSPOSED, inside, d[8]}
              : (int64_t[]){d[0], d[1], k, n, m, d[5] | TRANSPOSED, dy_layout, 0, d[8], inside},
          &no);
    if (d[6] & TRANSPOSED) {
        operand(b, b->dy[0]);
        value_operand(b, 0);
    } else {
        value_operand(b, 0);
        operand(b, b->dy[0]);
    }
    operand(b, b->dx[1]);
    launch(b);
}

static void heads_matmul_da(const PlanBackward *b) {
    const int64_t *d = dims(b);
    int64_t m = d[2], n = d[3], k = d[4], inside = d[1] * (d[6] & TRANSPOSED ? k : n);
    double no = 0;
    b->dx[0] = like_input(b, 0, "da");
    begin(b, PLAN_OP_HEADS_MATMUL,
          (int64_t[]){d[0], d[1], m, k, n, layout_of_dy(d), d[6] ^ TRANSPOSED, 0, inside, d[9]},
          &no);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    launch(b);
}

void plan_heads_matmul_backward(const PlanBackward *b) {
    if (wanted(b, 1)) {
        heads_matmul_db(b);
    }
    if (wanted(b, 0)) {
        heads_matmul_da(b);
    }
}

/* What was filled in gets none. */
void plan_masked_fill_backward(const PlanBackward *b) {
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_MASKED_FILL, (int64_t[]){dim(b, 0) * dim(b, 2), dim(b, 1), 1}, (double[]){0});
    operand(b, b->dy[0]);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    launch(b);
}

void plan_sum_sequences_backward(const PlanBackward *b, unsigned i, int64_t times, int64_t n) {
    if (times == 1) {
        b->dx[i] = plan_run_ref(b->run, b->dy[0]);
        return;
    }
    b->dx[i] = like_input(b, i, "dbias");
    begin(b, PLAN_OP_SUM_ROWS, (int64_t[]){times, n}, NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[i]);
    launch(b);
}

/* The bias lies with its heads innermost, its gradient with them outermost. */
void plan_bias_add_backward(const PlanBackward *b) {
    if (wanted(b, 0)) {
        b->dx[0] = plan_run_ref(b->run, b->dy[0]);
        plan_give_own_dtype(b, 0); /* the engine takes one input after the other */
    }
    if (wanted(b, 1)) {
        plan_sum_sequences_backward(b, 1, dim(b, 0), dim(b, 1) * dim(b, 2) * dim(b, 3));
    }
}
