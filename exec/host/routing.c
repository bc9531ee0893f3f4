/* exec/host/routing.c - which rows of a mixture go to which expert, and in what order. */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/host/experts.h"
#include "kernels/host/reduce.h"

static void remainder_of(const ExecTask *t) {
    const int64_t *x = t->pointers[0];
    int64_t *y = t->pointers[1];
    for (size_t i = 0; i < dim(t, 0); i++) {
        y[i] = x[i] % dims(t)[1];
    }
}

static bool run(const ExecTask *t) {
    const gpointer *p = t->pointers;
    switch ((ExecRoutingOp)t->op->kind) {
    case PLAN_OP_TOP_K:
        kernel_top_k_f32(p[1], p[2], p[0], dim(t, 0), dim(t, 1), dim(t, 2));
        return true;
    case PLAN_OP_PICK_COLUMNS:
        return kernel_pick_columns_f32(p[2], p[0], p[1], dim(t, 0), dim(t, 1), dim(t, 2));
    case PLAN_OP_PICK_COLUMNS_BACKWARD:
        return kernel_pick_columns_backward_f32(p[2], p[0], p[1], dim(t, 0), dim(t, 1), dim(t, 2));
    case PLAN_OP_TOTAL_COLUMNS:
        kernel_row_sum_f32(p[1], p[0], 1, dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_ADD_COLUMN:
        kernel_add_column_f32(p[2], p[0], p[1], dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_DIVIDE_COLUMN:
        kernel_divide_column_f32(p[2], p[0], p[1], dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_COUNT:
        return kernel_count_i64(p[1], p[0], dim(t, 0), dim(t, 1));
    case PLAN_OP_SORT:
        return kernel_sort_i64(p[1], p[2], p[0], dim(t, 0), dim(t, 1));
    case PLAN_OP_DIVIDE_DOWN:
        kernel_divide_down_i64(p[1], p[0], dims(t)[1], dim(t, 0));
        return true;
    case PLAN_OP_REMAINDER:
        remainder_of(t);
        return true;
    case PLAN_OP_ENDS:
        return kernel_ends_i32(p[1], p[0], dim(t, 0));
    case PLAN_OP_NARROW:
        return kernel_narrow_i64(p[1], p[0], dim(t, 0));
    case PLAN_OP_TALLY:
        return kernel_tally_i32(p[1], p[0], dim(t, 0), dim(t, 1));
    case PLAN_OP_TALLY_ENDS:
        return kernel_tally_ends_i32(p[1], p[0], dim(t, 0));
    case PLAN_OP_INVERT:
        return kernel_invert_i64(p[1], p[2], p[0], dim(t, 0));
    }
    g_assert_not_reached();
}

bool exec_host_routing(const ExecTask *t, GError **error) {
    return exec_host_in_table(run(t), plan_op_info((PlanOpKind)t->op->kind)->name, error);
}
