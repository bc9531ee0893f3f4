/* exec/cuda/ops/experts.c - what is done to the rows of a mixture of experts, as
 * exec/host/experts.c has it. */
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
    case PLAN_OP_GROUPED_LINEAR:
        return grouped(t, k, kernel_cuda_grouped_linear_forward);
    case PLAN_OP_GROUPED_LINEAR_DX:
        return grouped(t, k, kernel_cuda_grouped_linear_backward_input);
    case PLAN_OP_GROUPED_LINEAR_DW:
        return grouped(t, k, kernel_cuda_grouped_linear_backward_weight);
    case PLAN_OP_GROUPED_PARTS:
        return kernel_cuda_grouped_parts_forward(k, p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1),
                                                 dim(t, 2), dim(t, 3), dim(t, 4), type_at(t, 0));
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
