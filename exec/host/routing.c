/* exec/host/routing.c - which rows of a mixture go to which expert, and in what order. */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/host/experts.h"
#include "kernels/host/reduce.h"

static void remainder_of(const ExecTask *t) {
    const int64_t *x = t->pointers[REMAINDER_POSITION];
    int64_t *y = t->pointers[REMAINDER_INDEX];
    for (size_t i = 0; i < dim(t, REMAINDER_N); i++) {
        y[i] = x[i] % dims(t)[REMAINDER_BY];
    }
}

static bool run(const ExecTask *t) {
    const gpointer *p = t->pointers;
    switch ((ExecRoutingOp)t->op->kind) {
    case PLAN_OP_TOP_K:
        kernel_top_k_f32(p[TOP_K_Y], p[TOP_K_INDEX], p[TOP_K_X], dim(t, TOP_K_ROWS),
                         dim(t, TOP_K_COLS), dim(t, TOP_K_K));
        return true;
    case PLAN_OP_PICK_COLUMNS:
        return kernel_pick_columns_f32(p[PICK_COLUMNS_Y], p[PICK_COLUMNS_X], p[PICK_COLUMNS_INDEX],
                                       dim(t, PICK_COLUMNS_ROWS), dim(t, PICK_COLUMNS_COLS),
                                       dim(t, PICK_COLUMNS_K));
    case PLAN_OP_PICK_COLUMNS_BACKWARD:
        return kernel_pick_columns_backward_f32(
            p[PICK_COLUMNS_BACKWARD_DX], p[PICK_COLUMNS_BACKWARD_DY],
            p[PICK_COLUMNS_BACKWARD_INDEX], dim(t, PICK_COLUMNS_BACKWARD_ROWS),
            dim(t, PICK_COLUMNS_BACKWARD_COLS), dim(t, PICK_COLUMNS_BACKWARD_K));
    case PLAN_OP_TOTAL_COLUMNS:
        kernel_row_sum_f32(p[TOTAL_COLUMNS_Y], p[TOTAL_COLUMNS_X], 1, dim(t, TOTAL_COLUMNS_ROWS),
                           dim(t, TOTAL_COLUMNS_COLS));
        return true;
    case PLAN_OP_ADD_COLUMN:
        kernel_add_column_f32(p[ADD_COLUMN_Y], p[ADD_COLUMN_X], p[ADD_COLUMN_COLUMN],
                              dim(t, ADD_COLUMN_ROWS), dim(t, ADD_COLUMN_COLS));
        return true;
    case PLAN_OP_DIVIDE_COLUMN:
        kernel_divide_column_f32(p[DIVIDE_COLUMN_Y], p[DIVIDE_COLUMN_X], p[DIVIDE_COLUMN_COLUMN],
                                 dim(t, DIVIDE_COLUMN_ROWS), dim(t, DIVIDE_COLUMN_COLS));
        return true;
    case PLAN_OP_COUNT:
        return kernel_count_i64(p[COUNT_COUNTS], p[COUNT_INDEX], dim(t, COUNT_N),
                                dim(t, COUNT_GROUPS));
    case PLAN_OP_SORT:
        return kernel_sort_i64(p[SORT_SORTED], p[SORT_ORDER], p[SORT_INDEX], dim(t, SORT_N),
                               dim(t, SORT_GROUPS));
    case PLAN_OP_DIVIDE_DOWN:
        kernel_divide_down_i64(p[DIVIDE_DOWN_INDEX], p[DIVIDE_DOWN_ORDER], dims(t)[DIVIDE_DOWN_BY],
                               dim(t, DIVIDE_DOWN_N));
        return true;
    case PLAN_OP_REMAINDER:
        remainder_of(t);
        return true;
    case PLAN_OP_ENDS:
        return kernel_ends_i32(p[ENDS_ENDS], p[ENDS_COUNTS], dim(t, ENDS_GROUPS));
    case PLAN_OP_NARROW:
        return kernel_narrow_i64(p[NARROW_NARROW], p[NARROW_INDEX], dim(t, NARROW_N));
    case PLAN_OP_TALLY:
        return kernel_tally_i32(p[TALLY_TALLY], p[TALLY_NARROW], dim(t, TALLY_N),
                                dim(t, TALLY_GROUPS));
    case PLAN_OP_TALLY_ENDS:
        return kernel_tally_ends_i32(p[TALLY_ENDS_ENDS], p[TALLY_ENDS_TALLY],
                                     dim(t, TALLY_ENDS_GROUPS));
    case PLAN_OP_INVERT:
        return kernel_invert_i64(p[INVERT_INDEX], p[INVERT_POSITION], p[INVERT_ORDER],
                                 dim(t, INVERT_N));
    }
    g_assert_not_reached();
}

bool exec_host_routing(const ExecTask *t, GError **error) {
    return exec_host_in_table(run(t), plan_op_info((PlanOpKind)t->op->kind)->name, error);
}
