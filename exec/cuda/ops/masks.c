/* exec/cuda/ops/masks.c - masks of attention, and what is added to its scores by distance, as
 * exec/host/masks.c has them. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/attention/heads.h"
#include "kernels/cuda/attention/positions.h"
#include "kernels/cuda/rows/embedding.h"

KernelCudaFault exec_cuda_masks(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_of_first(t);
    switch ((ExecMaskOp)t->op->kind) {
    case PLAN_OP_ONES_MASK:
        return kernel_cuda_ones_mask(k, p[ONES_MASK_MASK], dim(t, ONES_MASK_N));
    case PLAN_OP_UPPER_MASK:
        return kernel_cuda_upper_mask(k, p[UPPER_MASK_MASK], p[UPPER_MASK_ALL_MASK],
                                      dim(t, UPPER_MASK_ROWS), dim(t, UPPER_MASK_COLS));
    case PLAN_OP_MASKED_FILL:
        return kernel_cuda_masked_fill(k, p[MASKED_FILL_Y], p[MASKED_FILL_X], p[MASKED_FILL_MASK],
                                       dim(t, MASKED_FILL_OUTER), dim(t, MASKED_FILL_N),
                                       dim(t, MASKED_FILL_INNER), attr(t, MASKED_FILL_VALUE), type);
    case PLAN_OP_BACK:
        return kernel_cuda_shift_i64(k, p[BACK_INDEX], p[BACK_POSITION], dim(t, BACK_N),
                                     -dims(t)[BACK_BY]);
    case PLAN_OP_LATER_MASK:
    case PLAN_OP_UPTO_MASK:
        return kernel_cuda_compare_mask(k, p[LATER_MASK_MASK], p[LATER_MASK_POSITION],
                                        p[LATER_MASK_INDEX], dim(t, LATER_MASK_ROWS),
                                        dim(t, LATER_MASK_COLS), t->op->kind == PLAN_OP_LATER_MASK);
    case PLAN_OP_BOTH_MASK:
        return kernel_cuda_both_mask(k, p[BOTH_MASK_MASK], p[BOTH_MASK_ONE_MASK],
                                     p[BOTH_MASK_OTHER_MASK], dim(t, BOTH_MASK_N),
                                     dim(t, BOTH_MASK_N_ONE));
    case PLAN_OP_MASK_TO_BIAS:
        return kernel_cuda_mask_to_bias(k, p[MASK_TO_BIAS_Y], p[MASK_TO_BIAS_MASK],
                                        p[MASK_TO_BIAS_SHOWN], p[MASK_TO_BIAS_HIDDEN],
                                        dim(t, MASK_TO_BIAS_N), dim(t, MASK_TO_BIAS_BATCH),
                                        type_at(t, MASK_TO_BIAS_Y));
    case PLAN_OP_DISTANCES:
        return kernel_cuda_distances(k, p[DISTANCES_DISTANCE], p[DISTANCES_POSITION],
                                     dim(t, DISTANCES_N));
    case PLAN_OP_ABSOLUTE:
        return kernel_cuda_absolute_i64(k, p[ABSOLUTE_POSITION], p[ABSOLUTE_DISTANCE],
                                        dim(t, ABSOLUTE_N));
    case PLAN_OP_CLAMP:
        return kernel_cuda_at_most_i64(k, p[CLAMP_INDEX], p[CLAMP_POSITION], dim(t, CLAMP_N),
                                       dims(t)[CLAMP_LIMIT]);
    case PLAN_OP_POSITIVE_MASK:
        return kernel_cuda_positive_mask(k, p[POSITIVE_MASK_MASK], p[POSITIVE_MASK_DISTANCE],
                                         dim(t, POSITIVE_MASK_N));
    case PLAN_OP_BIAS:
        return kernel_cuda_embedding_forward(k, p[BIAS_Y], p[BIAS_W], p[BIAS_INDEX], dim(t, BIAS_N),
                                             dim(t, BIAS_LIMIT), dim(t, BIAS_HEADS), type);
    case PLAN_OP_BIAS_ADD:
        return kernel_cuda_bias_add(k, p[BIAS_ADD_Y], p[BIAS_ADD_X], type, p[BIAS_ADD_BIAS],
                                    dim(t, BIAS_ADD_BATCH), dim(t, BIAS_ADD_HEADS),
                                    dim(t, BIAS_ADD_ROWS) * dim(t, BIAS_ADD_COLS),
                                    type_at(t, BIAS_ADD_Y));
    case PLAN_OP_BIAS_BACKWARD:
        return kernel_cuda_bias_backward(k, p[BIAS_BACKWARD_DW], p[BIAS_BACKWARD_DY],
                                         p[BIAS_BACKWARD_INDEX], dim(t, BIAS_BACKWARD_N),
                                         dim(t, BIAS_BACKWARD_LIMIT), dim(t, BIAS_BACKWARD_HEADS),
                                         type);
    }
    g_assert_not_reached();
}
