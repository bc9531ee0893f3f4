/* exec/cuda/ops/routing.c - which rows of a mixture go to which expert, as exec/host/routing.c has
 * it. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/experts.h"
#include "kernels/cuda/reduce.h"

KernelCudaFault exec_cuda_routing(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecRoutingOp)t->op->kind) {
    case PLAN_OP_TOP_K: /* x > y index */
        return kernel_cuda_top_k(k, p[1], p[2], p[0], dim(t, 0), dim(t, 1), dim(t, 2),
                                 type_at(t, 0));
    case PLAN_OP_PICK_COLUMNS: /* x index > y */
        return kernel_cuda_pick_columns(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), dim(t, 2),
                                        type_at(t, 0));
    case PLAN_OP_PICK_COLUMNS_BACKWARD: /* dy index > dx */
        return kernel_cuda_pick_columns_backward(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1),
                                                 dim(t, 2), type_at(t, 0));
    case PLAN_OP_TOTAL_COLUMNS:
        return kernel_cuda_row_sum(k, p[1], p[0], dim(t, 0), dim(t, 1), 1, type_at(t, 0));
    case PLAN_OP_ADD_COLUMN:
        return kernel_cuda_add_column(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), type_at(t, 0));
    case PLAN_OP_DIVIDE_COLUMN:
        return kernel_cuda_divide_column(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), type_at(t, 0));
    case PLAN_OP_COUNT:
        return kernel_cuda_count(k, p[1], p[0], dim(t, 0), dim(t, 1));
    case PLAN_OP_SORT: /* index > sorted order */
        return kernel_cuda_sort(k, p[1], p[2], p[0], dim(t, 0), dim(t, 1));
    case PLAN_OP_DIVIDE_DOWN:
        return kernel_cuda_divide_down_i64(k, p[1], p[0], dim(t, 0), dims(t)[1]);
    case PLAN_OP_ENDS:
        return kernel_cuda_ends(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_REMAINDER:
        return kernel_cuda_remainder_i64(k, p[1], p[0], dim(t, 0), dims(t)[1]);
    case PLAN_OP_NARROW:
        return kernel_cuda_narrow_i64(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_TALLY:
        return kernel_cuda_tally(k, p[1], p[0], dim(t, 0), dim(t, 1));
    case PLAN_OP_TALLY_ENDS:
        return kernel_cuda_tally_ends(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_INVERT: /* order > index position */
        return kernel_cuda_invert(k, p[1], p[2], p[0], dim(t, 0));
    }
    g_assert_not_reached();
}
