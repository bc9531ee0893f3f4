/* exec/cuda/ops/masks.c - masks of attention, and what is added to its scores by distance, as
 * exec/host/masks.c has them. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/heads.h"
#include "kernels/cuda/positions.h"

KernelCudaFault exec_cuda_masks(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_at(t, 0);
    switch ((ExecMaskOp)t->op->kind) {
    case PLAN_OP_ONES_MASK:
        return kernel_cuda_ones_mask(k, p[0], dim(t, 0));
    case PLAN_OP_UPPER_MASK:
        return kernel_cuda_upper_mask(k, p[1], p[0], dim(t, 0), dim(t, 1));
    case PLAN_OP_MASKED_FILL:
        return kernel_cuda_masked_fill(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), dim(t, 2),
                                       attr(t, 0), type);
    case PLAN_OP_BACK:
        return kernel_cuda_shift_i64(k, p[1], p[0], dim(t, 0), -dims(t)[1]);
    case PLAN_OP_LATER_MASK:
    case PLAN_OP_UPTO_MASK:
        return kernel_cuda_compare_mask(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1),
                                        t->op->kind == PLAN_OP_LATER_MASK);
    case PLAN_OP_BOTH_MASK:
        return kernel_cuda_both_mask(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1));
    case PLAN_OP_MASK_TO_BIAS: /* mask shown hidden > y */
        return kernel_cuda_mask_to_bias(k, p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1),
                                        type_at(t, 3));
    case PLAN_OP_DISTANCES:
        return kernel_cuda_distances(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_ABSOLUTE:
        return kernel_cuda_absolute_i64(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_CLAMP:
        return kernel_cuda_at_most_i64(k, p[1], p[0], dim(t, 0), dims(t)[1]);
    case PLAN_OP_POSITIVE_MASK:
        return kernel_cuda_positive_mask(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_BIAS:
        return kernel_cuda_embedding_forward(k, p[2], p[0], p[1], dim(t, 0), dim(t, 2), dim(t, 1),
                                             type);
    case PLAN_OP_BIAS_ADD:
        return kernel_cuda_bias_add(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1),
                                    dim(t, 2) * dim(t, 3), type);
    case PLAN_OP_BIAS_BACKWARD:
        return kernel_cuda_bias_backward(k, p[2], p[0], p[1], dim(t, 0), dim(t, 2), dim(t, 1),
                                         type);
    }
    g_assert_not_reached();
}
