/* exec/host/rows.c - arithmetic by rows and columns, and over all. */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/reduce.h"

void exec_host_rows(const ExecTask *t) {
    switch ((ExecRowsOp)t->op->kind) {
    case PLAN_OP_MUL_ROW:
        kernel_mul_rows_f32(f32(t, MUL_ROW_Y), f32(t, MUL_ROW_X), f32(t, MUL_ROW_ROW),
                            dim(t, MUL_ROW_ROWS), dim(t, MUL_ROW_COLS));
        return;
    case PLAN_OP_MUL_COLUMN:
        kernel_mul_columns_f32(f32(t, MUL_COLUMN_Y), f32(t, MUL_COLUMN_X),
                               f32(t, MUL_COLUMN_COLUMN), dim(t, MUL_COLUMN_ROWS),
                               dim(t, MUL_COLUMN_COLS));
        return;
    case PLAN_OP_SUM_COLUMNS:
        kernel_row_sum_f32(f32(t, SUM_COLUMNS_Y), f32(t, SUM_COLUMNS_X),
                           (float)attr(t, SUM_COLUMNS_FACTOR), dim(t, SUM_COLUMNS_ROWS),
                           dim(t, SUM_COLUMNS_COLS));
        return;
    case PLAN_OP_SPREAD:
        kernel_spread_f32(f32(t, SPREAD_Y), f32(t, SPREAD_X), (float)attr(t, SPREAD_FACTOR),
                          dim(t, SPREAD_ROWS), dim(t, SPREAD_COLS));
        return;
    case PLAN_OP_SUM_ROWS:
        kernel_column_sum_f32(f32(t, SUM_ROWS_Y), f32(t, SUM_ROWS_X), dim(t, SUM_ROWS_ROWS),
                              dim(t, SUM_ROWS_COLS));
        return;
    case PLAN_OP_MEAN:
        kernel_mean_forward_f32(f32(t, MEAN_Y), f32(t, MEAN_X), dim(t, MEAN_N));
        return;
    case PLAN_OP_MEAN_BACKWARD:
        kernel_mean_backward_f32(f32(t, MEAN_BACKWARD_DX), f32(t, MEAN_BACKWARD_DY),
                                 dim(t, MEAN_BACKWARD_N));
        return;
    case PLAN_OP_NORM:
        kernel_norm_f32(f32(t, NORM_Y), f32(t, NORM_X), dim(t, NORM_N));
        return;
    }
    g_assert_not_reached();
}
