/* exec/cuda/ops/experts.c - ops of a mixture of experts, as exec/host/experts.c has them. */
#include "kernels/cuda/experts.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/grouped.h"
#include "kernels/cuda/reduce.h"

typedef KernelCudaFault GroupedProduct(KernelCuda *lane, void *out, const void *a, const void *b,
                                       const int32_t *ends, size_t m, size_t n, size_t k,
                                       size_t groups, KernelCudaType type);

/* a b ends > out; m n k groups */
static KernelCudaFault grouped(const ExecTask *t, KernelCuda *k, GroupedProduct *product) {
    gpointer *p = t->pointers;
    return product(k, p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 3),
                   type_at(t, 0));
}

KernelCudaFault exec_cuda_experts(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecExpertsOp)t->op->kind) {
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
    case PLAN_OP_GROUPED_LINEAR:
        return grouped(t, k, kernel_cuda_grouped_linear_forward);
    case PLAN_OP_GROUPED_LINEAR_DX:
        return grouped(t, k, kernel_cuda_grouped_linear_backward_input);
    case PLAN_OP_GROUPED_LINEAR_DW:
        return grouped(t, k, kernel_cuda_grouped_linear_backward_weight);
    case PLAN_OP_GROUPED_PARTS:
        return kernel_cuda_grouped_parts_forward(k, p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1),
                                                 dim(t, 2), dim(t, 3), dim(t, 4), type_at(t, 0));
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
    case PLAN_OP_SUM_EACH:
        return kernel_cuda_sum_each(k, p[1], p[0], dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 2),
                                    type_at(t, 0));
    case PLAN_OP_REPEAT_EACH:
        return kernel_cuda_repeat_each(k, p[1], p[0], dim(t, 0), dim(t, 1), dim(t, 2),
                                       type_at(t, 0));
    case PLAN_OP_ROWS_OF: /* x index > y; n width rows */
        return kernel_cuda_embedding_forward(k, p[2], p[0], p[1], dim(t, 0), dim(t, 2), dim(t, 1),
                                             type_at(t, 0));
    case PLAN_OP_ADD_TO_ROWS: /* a x index > y; n width rows */
        return kernel_cuda_add_to_rows(k, p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 2), dim(t, 1),
                                       type_at(t, 0));
    }
    g_assert_not_reached();
}
