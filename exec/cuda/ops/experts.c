/* exec/cuda/ops/experts.c - what is done to the rows of a mixture of experts, as
 * exec/host/experts.c has it. */
#include "kernels/cuda/experts/experts.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/attention/columns.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/products/grouped.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/rows/embedding.h"

typedef KernelCudaFault GroupedProduct(KernelCuda *lane, void *out, const void *a, const void *b,
                                       const int32_t *ends, size_t m, size_t n, size_t k,
                                       size_t groups, KernelCudaType type);

/* Two factors, ends > the product, by the names of the forward one. */
static KernelCudaFault grouped(const ExecTask *t, KernelCuda *k, GroupedProduct *product) {
    gpointer *p = t->pointers;
    return product(k, p[GROUPED_LINEAR_Y], p[GROUPED_LINEAR_X], p[GROUPED_LINEAR_W],
                   p[GROUPED_LINEAR_ENDS], dim(t, GROUPED_LINEAR_M), dim(t, GROUPED_LINEAR_N),
                   dim(t, GROUPED_LINEAR_K), dim(t, GROUPED_LINEAR_GROUPS),
                   type_at(t, GROUPED_LINEAR_X));
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
        return kernel_cuda_grouped_parts_forward(
            k, p[GROUPED_PARTS_Y], p[GROUPED_PARTS_X], p[GROUPED_PARTS_W], p[GROUPED_PARTS_ENDS],
            dim(t, GROUPED_PARTS_M), dim(t, GROUPED_PARTS_N), dim(t, GROUPED_PARTS_K),
            dim(t, GROUPED_PARTS_GROUPS), dim(t, GROUPED_PARTS_PARTS), type_at(t, GROUPED_PARTS_X));
    case PLAN_OP_GROUPED_PRODUCT: /* what gives a grouped_linear's x its gradient */
        return kernel_cuda_grouped_linear_backward_input(
            k, p[GROUPED_PRODUCT_Y], p[GROUPED_PRODUCT_X], p[GROUPED_PRODUCT_W],
            p[GROUPED_PRODUCT_ENDS], dim(t, GROUPED_PRODUCT_M), dim(t, GROUPED_PRODUCT_K),
            dim(t, GROUPED_PRODUCT_N), dim(t, GROUPED_PRODUCT_GROUPS),
            type_at(t, GROUPED_PRODUCT_X));
    case PLAN_OP_SUM_EACH:
        return kernel_cuda_sum_each(k, p[SUM_EACH_Y], p[SUM_EACH_X], dim(t, SUM_EACH_ROWS),
                                    dim(t, SUM_EACH_EACH), dim(t, SUM_EACH_WIDTH),
                                    dim(t, SUM_EACH_WIDTH), type_at(t, SUM_EACH_X));
    case PLAN_OP_REPEAT_EACH:
        return kernel_cuda_repeat_each(k, p[REPEAT_EACH_Y], p[REPEAT_EACH_X],
                                       dim(t, REPEAT_EACH_ROWS), dim(t, REPEAT_EACH_EACH),
                                       dim(t, REPEAT_EACH_WIDTH), type_at(t, REPEAT_EACH_X));
    case PLAN_OP_ROWS_OF:
        return kernel_cuda_embedding_forward(k, p[ROWS_OF_Y], p[ROWS_OF_X], p[ROWS_OF_INDEX],
                                             dim(t, ROWS_OF_N), dim(t, ROWS_OF_ROWS),
                                             dim(t, ROWS_OF_WIDTH), type_at(t, ROWS_OF_X));
    case PLAN_OP_ADD_TO_ROWS:
        return kernel_cuda_add_to_rows(k, p[ADD_TO_ROWS_Y], p[ADD_TO_ROWS_A], p[ADD_TO_ROWS_X],
                                       p[ADD_TO_ROWS_INDEX], dim(t, ADD_TO_ROWS_N),
                                       dim(t, ADD_TO_ROWS_ROWS), dim(t, ADD_TO_ROWS_WIDTH),
                                       type_at(t, ADD_TO_ROWS_A));
    }
    g_assert_not_reached();
}
