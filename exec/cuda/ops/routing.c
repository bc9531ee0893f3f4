/* exec/cuda/ops/routing.c - which rows of a mixture go to which expert, as exec/host/routing.c has
 * it. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/attention/columns.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/reduce.h"

KernelCudaFault exec_cuda_routing(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecRoutingOp)t->op->kind) {
    case PLAN_OP_TOP_K:
        return kernel_cuda_top_k(k, p[TOP_K_Y], p[TOP_K_INDEX], p[TOP_K_X], dim(t, TOP_K_ROWS),
                                 dim(t, TOP_K_COLS), dim(t, TOP_K_K), type_at(t, TOP_K_X));
    case PLAN_OP_PICK_COLUMNS:
        return kernel_cuda_pick_columns(k, p[PICK_COLUMNS_Y], p[PICK_COLUMNS_X],
                                        p[PICK_COLUMNS_INDEX], dim(t, PICK_COLUMNS_ROWS),
                                        dim(t, PICK_COLUMNS_COLS), dim(t, PICK_COLUMNS_K),
                                        type_at(t, PICK_COLUMNS_X));
    case PLAN_OP_PICK_COLUMNS_BACKWARD:
        return kernel_cuda_pick_columns_backward(
            k, p[PICK_COLUMNS_BACKWARD_DX], p[PICK_COLUMNS_BACKWARD_DY],
            p[PICK_COLUMNS_BACKWARD_INDEX], dim(t, PICK_COLUMNS_BACKWARD_ROWS),
            dim(t, PICK_COLUMNS_BACKWARD_COLS), dim(t, PICK_COLUMNS_BACKWARD_K),
            type_at(t, PICK_COLUMNS_BACKWARD_DY));
    case PLAN_OP_TOTAL_COLUMNS:
        return kernel_cuda_row_sum(k, p[TOTAL_COLUMNS_Y], p[TOTAL_COLUMNS_X],
                                   dim(t, TOTAL_COLUMNS_ROWS), dim(t, TOTAL_COLUMNS_COLS), 1,
                                   type_at(t, TOTAL_COLUMNS_X));
    case PLAN_OP_ADD_COLUMN:
        return kernel_cuda_add_column(k, p[ADD_COLUMN_Y], p[ADD_COLUMN_X], p[ADD_COLUMN_COLUMN],
                                      dim(t, ADD_COLUMN_ROWS), dim(t, ADD_COLUMN_COLS),
                                      type_at(t, ADD_COLUMN_X));
    case PLAN_OP_DIVIDE_COLUMN:
        return kernel_cuda_divide_column(k, p[DIVIDE_COLUMN_Y], p[DIVIDE_COLUMN_X],
                                         p[DIVIDE_COLUMN_COLUMN], dim(t, DIVIDE_COLUMN_ROWS),
                                         dim(t, DIVIDE_COLUMN_COLS), type_at(t, DIVIDE_COLUMN_X));
    case PLAN_OP_COUNT:
        return kernel_cuda_count(k, p[COUNT_COUNTS], p[COUNT_INDEX], dim(t, COUNT_N),
                                 dim(t, COUNT_GROUPS));
    case PLAN_OP_SORT:
        return kernel_cuda_sort(k, p[SORT_SORTED], p[SORT_ORDER], p[SORT_INDEX], dim(t, SORT_N),
                                dim(t, SORT_GROUPS));
    case PLAN_OP_DIVIDE_DOWN:
        return kernel_cuda_divide_down_i64(k, p[DIVIDE_DOWN_INDEX], p[DIVIDE_DOWN_ORDER],
                                           dim(t, DIVIDE_DOWN_N), dims(t)[DIVIDE_DOWN_BY]);
    case PLAN_OP_ENDS:
        return kernel_cuda_ends(k, p[ENDS_ENDS], p[ENDS_COUNTS], dim(t, ENDS_GROUPS));
    case PLAN_OP_REMAINDER:
        return kernel_cuda_remainder_i64(k, p[REMAINDER_INDEX], p[REMAINDER_POSITION],
                                         dim(t, REMAINDER_N), dims(t)[REMAINDER_BY]);
    case PLAN_OP_NARROW:
        return kernel_cuda_narrow_i64(k, p[NARROW_NARROW], p[NARROW_INDEX], dim(t, NARROW_N));
    case PLAN_OP_TALLY:
        return kernel_cuda_tally(k, p[TALLY_TALLY], p[TALLY_NARROW], dim(t, TALLY_N),
                                 dim(t, TALLY_GROUPS));
    case PLAN_OP_TALLY_ENDS:
        return kernel_cuda_tally_ends(k, p[TALLY_ENDS_ENDS], p[TALLY_ENDS_TALLY],
                                      dim(t, TALLY_ENDS_GROUPS));
    case PLAN_OP_INVERT:
        return kernel_cuda_invert(k, p[INVERT_INDEX], p[INVERT_POSITION], p[INVERT_ORDER],
                                  dim(t, INVERT_N));
    }
    g_assert_not_reached();
}
