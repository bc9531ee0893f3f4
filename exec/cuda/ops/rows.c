/* exec/cuda/ops/rows.c - arithmetic by rows and columns, and over all. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/reduce.h"

/* Only the matrix, not the column, may be in the narrower of two types (knows.c). */
static KernelCudaFault mul_column(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    size_t rows = dim(t, MUL_COLUMN_ROWS), cols = dim(t, MUL_COLUMN_COLS);
    if (type_at(t, MUL_COLUMN_X) == type_at(t, MUL_COLUMN_COLUMN)) {
        return kernel_cuda_mul_column(k, p[MUL_COLUMN_Y], p[MUL_COLUMN_X], p[MUL_COLUMN_COLUMN],
                                      rows, cols, type_at(t, MUL_COLUMN_X));
    }
    KernelCudaFault fault =
        kernel_cuda_cast(k, p[MUL_COLUMN_Y], type_at(t, MUL_COLUMN_Y), p[MUL_COLUMN_X],
                         type_at(t, MUL_COLUMN_X), rows * cols);
    return fault ? fault
                 : kernel_cuda_mul_column(k, p[MUL_COLUMN_Y], p[MUL_COLUMN_Y], p[MUL_COLUMN_COLUMN],
                                          rows, cols, type_at(t, MUL_COLUMN_Y));
}

KernelCudaFault exec_cuda_rows(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_of_first(t);
    switch ((ExecRowsOp)t->op->kind) {
    case PLAN_OP_MUL_ROW:
        return kernel_cuda_mul_row(k, p[MUL_ROW_Y], p[MUL_ROW_X], p[MUL_ROW_ROW],
                                   dim(t, MUL_ROW_ROWS), dim(t, MUL_ROW_COLS), type,
                                   type_at(t, MUL_ROW_ROW));
    case PLAN_OP_MUL_COLUMN:
        return mul_column(t, k);
    case PLAN_OP_SUM_COLUMNS:
        return kernel_cuda_row_sum(k, p[SUM_COLUMNS_Y], p[SUM_COLUMNS_X], dim(t, SUM_COLUMNS_ROWS),
                                   dim(t, SUM_COLUMNS_COLS), attr(t, SUM_COLUMNS_FACTOR), type);
    case PLAN_OP_SPREAD:
        return kernel_cuda_spread(k, p[SPREAD_Y], p[SPREAD_X], dim(t, SPREAD_ROWS),
                                  dim(t, SPREAD_COLS), attr(t, SPREAD_FACTOR), type);
    case PLAN_OP_SUM_ROWS:
        return kernel_cuda_column_sum(k, p[SUM_ROWS_Y], p[SUM_ROWS_X], dim(t, SUM_ROWS_ROWS),
                                      dim(t, SUM_ROWS_COLS), type);
    case PLAN_OP_MEAN:
        return kernel_cuda_mean_forward(k, p[MEAN_Y], p[MEAN_X], dim(t, MEAN_N), type);
    case PLAN_OP_MEAN_BACKWARD:
        return kernel_cuda_mean_backward(k, p[MEAN_BACKWARD_DX], p[MEAN_BACKWARD_DY],
                                         dim(t, MEAN_BACKWARD_N), type);
    case PLAN_OP_NORM:
        return kernel_cuda_norm(k, p[NORM_Y], type_at(t, NORM_Y), p[NORM_X], dim(t, NORM_N), type);
    }
    g_assert_not_reached();
}
