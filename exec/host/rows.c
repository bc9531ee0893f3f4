/* exec/host/rows.c - arithmetic by rows and columns, and over all. */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/reduce.h"

void exec_host_rows(const ExecTask *t) {
    switch ((ExecRowsOp)t->op->kind) {
    case PLAN_OP_MUL_ROW:
        kernel_mul_rows_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1));
        return;
    case PLAN_OP_MUL_COLUMN:
        kernel_mul_columns_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1));
        return;
    case PLAN_OP_SUM_COLUMNS:
        kernel_row_sum_f32(f32(t, 1), f32(t, 0), (float)attr(t, 0), dim(t, 0), dim(t, 1));
        return;
    case PLAN_OP_SPREAD:
        kernel_spread_f32(f32(t, 1), f32(t, 0), (float)attr(t, 0), dim(t, 0), dim(t, 1));
        return;
    case PLAN_OP_SUM_ROWS:
        kernel_column_sum_f32(f32(t, 1), f32(t, 0), dim(t, 0), dim(t, 1));
        return;
    case PLAN_OP_MEAN:
        kernel_mean_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return;
    case PLAN_OP_MEAN_BACKWARD:
        kernel_mean_backward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return;
    case PLAN_OP_NORM:
        kernel_norm_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return;
    }
    g_assert_not_reached();
}
