/* exec/cuda/ops/shared-loss.c - the loss of layers that ranks share, as exec/host/shared-loss.c has
 * it. */
#include "kernels/cuda/shared-loss.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/shared.h"

KernelCudaFault exec_cuda_shared_loss(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecSharedLossOp)t->op->kind) {
    case PLAN_OP_MAX_COLUMNS:
        return kernel_cuda_row_max(k, p[1], p[0], dim(t, 0), dim(t, 1), type_at(t, 0));
    case PLAN_OP_SUB_COLUMN:
        return kernel_cuda_sub_column(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), type_at(t, 0));
    case PLAN_OP_EXP:
        return kernel_cuda_exp(k, p[1], p[0], dim(t, 0), type_at(t, 0));
    case PLAN_OP_LOG:
        return kernel_cuda_log(k, p[1], p[0], dim(t, 0), type_at(t, 0));
    case PLAN_OP_SAFE_TARGET:
        return kernel_cuda_safe_target(k, p[1], p[2], p[0], dim(t, 0));
    case PLAN_OP_PICK_COLUMN:
        return kernel_cuda_pick_columns(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), 1,
                                        type_at(t, 0));
    case PLAN_OP_KEEP_COUNTED: /* x target > mask y */
        return kernel_cuda_keep_counted(k, p[2], p[3], p[0], p[1], dim(t, 0), false, type_at(t, 0));
    case PLAN_OP_COUNT_TARGETS:
        return kernel_cuda_count_targets(k, p[1], p[2], p[0], dim(t, 0));
    case PLAN_OP_DIVIDE:
        return kernel_cuda_divide(k, p[2], p[0], p[1], dim(t, 0), type_at(t, 0));
    case PLAN_OP_PICKED_GRADIENT:
        return kernel_cuda_picked_gradient(k, p[1], p[2], p[0], dim(t, 0), type_at(t, 1));
    case PLAN_OP_PUT_COLUMN: /* y index position & x */
        return kernel_cuda_put_column(k, p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1),
                                      type_at(t, 0));
    case PLAN_OP_SPREAD_COUNTED: /* dy target > mask y */
        return kernel_cuda_keep_counted(k, p[2], p[3], p[0], p[1], dim(t, 0), true, type_at(t, 0));
    }
    g_assert_not_reached();
}

KernelCudaFault exec_cuda_shared_compiled_loss(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecSharedCompiledLossOp)t->op->kind) {
    case PLAN_OP_LARGEST:
        return kernel_cuda_largest(k, p[1], p[0], dim(t, 0), dim(t, 1), type_at(t, 0));
    case PLAN_OP_SUM_OF_EXPS: /* logits most > sum */
        return kernel_cuda_sum_of_exps(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), type_at(t, 0));
    case PLAN_OP_PICK_TARGETS: /* target logits most sum & x > picked mask */
        return kernel_cuda_pick_targets(k, p[5], p[6], p[4], p[0], p[1], p[2], p[3], dim(t, 0),
                                        dim(t, 1), first_of_rank(t), all_of_ranks(t),
                                        type_at(t, 1));
    case PLAN_OP_MEAN_PICKED: /* target picked > y total */
        return kernel_cuda_mean_picked(k, p[2], p[3], p[0], p[1], dim(t, 0));
    case PLAN_OP_ADD_SOFTMAX: /* x logits most sum > y */
        return kernel_cuda_add_softmax(k, p[4], p[0], p[1], p[2], p[3], dim(t, 0), dim(t, 1),
                                       type_at(t, 1));
    case PLAN_OP_SCALE_COUNTED: /* x mask dy total > dlogits */
        return kernel_cuda_scale_counted(k, p[4], p[0], p[1], p[2], p[3], dim(t, 0), dim(t, 1),
                                         type_at(t, 4));
    }
    g_assert_not_reached();
}
