/* exec/cuda/ops/rows.c - arithmetic by rows and columns, and over all. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/reduce.h"

/* Of its two operands only the matrix may be in the narrower type (knows.c). */
static KernelCudaFault mul_column(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    size_t rows = dim(t, 0), cols = dim(t, 1);
    if (type_at(t, 0) == type_at(t, 1)) {
        return kernel_cuda_mul_column(k, p[2], p[0], p[1], rows, cols, type_at(t, 0));
    }
    KernelCudaFault fault =
        kernel_cuda_cast(k, p[2], type_at(t, 2), p[0], type_at(t, 0), rows * cols);
    return fault ? fault : kernel_cuda_mul_column(k, p[2], p[2], p[1], rows, cols, type_at(t, 2));
}

KernelCudaFault exec_cuda_rows(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_at(t, 0);
    switch ((ExecRowsOp)t->op->kind) {
    case PLAN_OP_MUL_ROW:
        return kernel_cuda_mul_row(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), type);
    case PLAN_OP_MUL_COLUMN:
        return mul_column(t, k);
    case PLAN_OP_SUM_COLUMNS:
        return kernel_cuda_row_sum(k, p[1], p[0], dim(t, 0), dim(t, 1), attr(t, 0), type);
    case PLAN_OP_SPREAD:
        return kernel_cuda_spread(k, p[1], p[0], dim(t, 0), dim(t, 1), attr(t, 0), type);
    case PLAN_OP_SUM_ROWS:
        return kernel_cuda_column_sum(k, p[1], p[0], dim(t, 0), dim(t, 1), type);
    case PLAN_OP_MEAN:
        return kernel_cuda_mean_forward(k, p[1], p[0], dim(t, 0), type);
    case PLAN_OP_MEAN_BACKWARD:
        return kernel_cuda_mean_backward(k, p[1], p[0], dim(t, 0), type);
    case PLAN_OP_NORM:
        return kernel_cuda_norm(k, p[1], type_at(t, 1), p[0], dim(t, 0), type);
    }
    g_assert_not_reached();
}
