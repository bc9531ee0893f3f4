/* exec/cuda/ops/exchange.c - ops of experts that ranks share, as exec/host/exchange.c has them. */
#include "kernels/cuda/experts/exchange.h"
#include "exec/cuda/ops/operands.h"

KernelCudaFault exec_cuda_exchange(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    gsize n = dim(t, SPLITS_RANKS); /* or of most ops n: the first dim */
    switch ((ExecExchangeOp)t->op->kind) {
    case PLAN_OP_SPLITS:
        return kernel_cuda_splits(k, p[SPLITS_POSITION], p[SPLITS_COUNTS], n,
                                  dim(t, SPLITS_EXPERTS));
    case PLAN_OP_SPLITS_TO_HOST: /* launch.c copies them; the plan has room for as many rows each */
        return kernel_cuda_check_alike(k, p[SPLITS_TO_HOST_POSITION], n);
    case PLAN_OP_OWN_COUNTS:
        return kernel_cuda_own_counts(k, p[OWN_COUNTS_POSITION], p[OWN_COUNTS_COUNTS], n,
                                      dim(t, OWN_COUNTS_EXPERTS));
    case PLAN_OP_RUNNING_SUM:
        return kernel_cuda_running_sum(k, p[RUNNING_SUM_POSITION], p[RUNNING_SUM_COUNTS], n);
    case PLAN_OP_BY_EXPERT:
        return kernel_cuda_by_expert(k, p[BY_EXPERT_POSITION], p[BY_EXPERT_COUNTS], n,
                                     dim(t, BY_EXPERT_EXPERTS));
    case PLAN_OP_WHOLE_LESS:
        return kernel_cuda_combine_i64(k, p[WHOLE_LESS_OFFSET], p[WHOLE_LESS_POSITION],
                                       p[WHOLE_LESS_INDEX], n, -1);
    case PLAN_OP_WHOLE_PLUS:
        return kernel_cuda_combine_i64(k, p[WHOLE_PLUS_OFFSET], p[WHOLE_PLUS_POSITION],
                                       p[WHOLE_PLUS_INDEX], n, 1);
    case PLAN_OP_SEGMENT:
        return kernel_cuda_segment(k, p[SEGMENT_INDEX], p[SEGMENT_SORTED], p[SEGMENT_POSITION], n,
                                   dim(t, SEGMENT_SEGMENTS));
    case PLAN_OP_OF_SEGMENT:
        return kernel_cuda_of_segment(k, p[OF_SEGMENT_POSITION], p[OF_SEGMENT_COUNTS],
                                      p[OF_SEGMENT_INDEX], n, dim(t, OF_SEGMENT_SEGMENTS));
    case PLAN_OP_PLACE_ROWS:
        return kernel_cuda_place_rows(k, p[PLACE_ROWS_Y], p[PLACE_ROWS_X], p[PLACE_ROWS_INDEX], n,
                                      dim(t, PLACE_ROWS_WIDTH), type_at(t, PLACE_ROWS_X));
    }
    g_assert_not_reached();
}
