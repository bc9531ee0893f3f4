/* exec/cuda/ops/shared-loss.c - the loss of layers that ranks share, as exec/host/shared-loss.c has
 * it. */
#include "kernels/cuda/ranks/shared-loss.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/attention/columns.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/ranks/shared.h"
#include "kernels/cuda/reduce.h"

KernelCudaFault exec_cuda_shared_loss(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecSharedLossOp)t->op->kind) {
    case PLAN_OP_MAX_COLUMNS:
        return kernel_cuda_row_max(k, p[MAX_COLUMNS_Y], p[MAX_COLUMNS_X], dim(t, MAX_COLUMNS_ROWS),
                                   dim(t, MAX_COLUMNS_COLS), type_at(t, MAX_COLUMNS_X));
    case PLAN_OP_SUB_COLUMN:
        return kernel_cuda_sub_column(k, p[SUB_COLUMN_Y], p[SUB_COLUMN_X], p[SUB_COLUMN_COLUMN],
                                      dim(t, SUB_COLUMN_ROWS), dim(t, SUB_COLUMN_COLS),
                                      type_at(t, SUB_COLUMN_X));
    case PLAN_OP_EXP:
        return kernel_cuda_exp(k, p[EXP_Y], p[EXP_X], dim(t, EXP_N), type_at(t, EXP_X));
    case PLAN_OP_LOG:
        return kernel_cuda_log(k, p[LOG_Y], p[LOG_X], dim(t, LOG_N), type_at(t, LOG_X));
    case PLAN_OP_SAFE_TARGET:
        return kernel_cuda_safe_target(k, p[SAFE_TARGET_MASK], p[SAFE_TARGET_INDEX],
                                       p[SAFE_TARGET_TARGET], dim(t, SAFE_TARGET_N));
    case PLAN_OP_PICK_COLUMN:
        return kernel_cuda_pick_columns(k, p[PICK_COLUMN_Y], p[PICK_COLUMN_X], p[PICK_COLUMN_INDEX],
                                        dim(t, PICK_COLUMN_ROWS), dim(t, PICK_COLUMN_COLS), 1,
                                        type_at(t, PICK_COLUMN_X));
    case PLAN_OP_KEEP_COUNTED:
        return kernel_cuda_keep_counted(k, p[KEEP_COUNTED_MASK], p[KEEP_COUNTED_Y],
                                        p[KEEP_COUNTED_X], p[KEEP_COUNTED_TARGET],
                                        dim(t, KEEP_COUNTED_N), false, type_at(t, KEEP_COUNTED_X));
    case PLAN_OP_COUNT_TARGETS:
        return kernel_cuda_count_targets(k, p[COUNT_TARGETS_MASK], p[COUNT_TARGETS_POSITION],
                                         p[COUNT_TARGETS_TARGET], dim(t, COUNT_TARGETS_N));
    case PLAN_OP_DIVIDE:
        return kernel_cuda_divide(k, p[DIVIDE_Y], p[DIVIDE_A], p[DIVIDE_B], dim(t, DIVIDE_N),
                                  type_at(t, DIVIDE_A));
    case PLAN_OP_PICKED_GRADIENT:
        return kernel_cuda_picked_gradient(k, p[PICKED_GRADIENT_WIDE], p[PICKED_GRADIENT_Y],
                                           p[PICKED_GRADIENT_MASK], dim(t, PICKED_GRADIENT_N),
                                           type_at(t, PICKED_GRADIENT_WIDE));
    case PLAN_OP_PUT_COLUMN:
        return kernel_cuda_put_column(k, p[PUT_COLUMN_X], p[PUT_COLUMN_Y], p[PUT_COLUMN_INDEX],
                                      p[PUT_COLUMN_POSITION], dim(t, PUT_COLUMN_ROWS),
                                      dim(t, PUT_COLUMN_COLS), type_at(t, PUT_COLUMN_Y));
    case PLAN_OP_SPREAD_COUNTED:
        return kernel_cuda_keep_counted(k, p[SPREAD_COUNTED_MASK], p[SPREAD_COUNTED_Y],
                                        p[SPREAD_COUNTED_DY], p[SPREAD_COUNTED_TARGET],
                                        dim(t, SPREAD_COUNTED_N), true,
                                        type_at(t, SPREAD_COUNTED_DY));
    }
    g_assert_not_reached();
}

KernelCudaFault exec_cuda_shared_compiled_loss(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecSharedCompiledLossOp)t->op->kind) {
    case PLAN_OP_LARGEST:
        return kernel_cuda_largest(k, p[LARGEST_MOST], p[LARGEST_LOGITS], dim(t, LARGEST_ROWS),
                                   dim(t, LARGEST_COLS), type_at(t, LARGEST_LOGITS));
    case PLAN_OP_SUM_OF_EXPS:
        return kernel_cuda_sum_of_exps(k, p[SUM_OF_EXPS_SUM], p[SUM_OF_EXPS_LOGITS],
                                       p[SUM_OF_EXPS_MOST], dim(t, SUM_OF_EXPS_ROWS),
                                       dim(t, SUM_OF_EXPS_COLS), type_at(t, SUM_OF_EXPS_LOGITS));
    case PLAN_OP_PICK_TARGETS:
        return kernel_cuda_pick_targets(
            k, p[PICK_TARGETS_PICKED], p[PICK_TARGETS_MASK], p[PICK_TARGETS_X],
            p[PICK_TARGETS_TARGET], p[PICK_TARGETS_LOGITS], p[PICK_TARGETS_MOST],
            p[PICK_TARGETS_SUM], dim(t, PICK_TARGETS_ROWS), dim(t, PICK_TARGETS_COLS),
            first_of_rank(t, PICK_TARGETS_COLS), all_of_ranks(t, PICK_TARGETS_COLS),
            type_at(t, PICK_TARGETS_LOGITS));
    case PLAN_OP_MEAN_PICKED:
        return kernel_cuda_mean_picked(k, p[MEAN_PICKED_Y], p[MEAN_PICKED_TOTAL],
                                       p[MEAN_PICKED_TARGET], p[MEAN_PICKED_PICKED],
                                       dim(t, MEAN_PICKED_N));
    case PLAN_OP_ADD_SOFTMAX:
        return kernel_cuda_add_softmax(k, p[ADD_SOFTMAX_Y], p[ADD_SOFTMAX_X], p[ADD_SOFTMAX_LOGITS],
                                       p[ADD_SOFTMAX_MOST], p[ADD_SOFTMAX_SUM],
                                       dim(t, ADD_SOFTMAX_ROWS), dim(t, ADD_SOFTMAX_COLS),
                                       type_at(t, ADD_SOFTMAX_LOGITS));
    case PLAN_OP_SCALE_COUNTED:
        return kernel_cuda_scale_counted(
            k, p[SCALE_COUNTED_DLOGITS], p[SCALE_COUNTED_X], p[SCALE_COUNTED_MASK],
            p[SCALE_COUNTED_DY], p[SCALE_COUNTED_TOTAL], dim(t, SCALE_COUNTED_ROWS),
            dim(t, SCALE_COUNTED_COLS), type_at(t, SCALE_COUNTED_DLOGITS));
    }
    g_assert_not_reached();
}
