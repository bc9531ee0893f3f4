/* exec/cuda/ops/exchange.c - ops of experts that ranks share, as exec/host/exchange.c has them. */
#include "kernels/cuda/exchange.h"
#include "exec/cuda/ops/operands.h"

KernelCudaFault exec_cuda_exchange(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    gsize n = dim(t, 0);
    switch ((ExecExchangeOp)t->op->kind) {
    case PLAN_OP_SPLITS:
        return kernel_cuda_splits(k, p[1], p[0], n, dim(t, 1));
    case PLAN_OP_SPLITS_TO_HOST: /* launch.c copies them; the plan has room for as many rows each */
        return kernel_cuda_check_alike(k, p[0], n);
    case PLAN_OP_OWN_COUNTS:
        return kernel_cuda_own_counts(k, p[1], p[0], n, dim(t, 1));
    case PLAN_OP_RUNNING_SUM:
        return kernel_cuda_running_sum(k, p[1], p[0], n);
    case PLAN_OP_BY_EXPERT:
        return kernel_cuda_by_expert(k, p[1], p[0], n, dim(t, 1));
    case PLAN_OP_WHOLE_LESS:
        return kernel_cuda_combine_i64(k, p[2], p[0], p[1], n, -1);
    case PLAN_OP_WHOLE_PLUS:
        return kernel_cuda_combine_i64(k, p[2], p[0], p[1], n, 1);
    case PLAN_OP_SEGMENT: /* sorted position > index */
        return kernel_cuda_segment(k, p[2], p[0], p[1], n, dim(t, 1));
    case PLAN_OP_OF_SEGMENT: /* counts index > position */
        return kernel_cuda_of_segment(k, p[2], p[0], p[1], n, dim(t, 1));
    case PLAN_OP_PLACE_ROWS: /* x index > y */
        return kernel_cuda_place_rows(k, p[2], p[0], p[1], n, dim(t, 1), type_at(t, 0));
    }
    g_assert_not_reached();
}
