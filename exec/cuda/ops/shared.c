/* exec/cuda/ops/shared.c - layers that ranks share, as exec/host/shared.c has them. */
#include "kernels/cuda/ranks/shared.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/attention/columns.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/ranks/shared-loss.h"
#include "kernels/cuda/reduce.h"

KernelCudaFault exec_cuda_share(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecShareOp)t->op->kind) {
    case PLAN_OP_OUTSIDE_MASK:
        return kernel_cuda_outside_mask(k, p[OUTSIDE_MASK_BELOW_MASK], p[OUTSIDE_MASK_ABOVE_MASK],
                                        p[OUTSIDE_MASK_MASK], p[OUTSIDE_MASK_INDEX],
                                        dim(t, OUTSIDE_MASK_N), first_of_rank(t, OUTSIDE_MASK_PART),
                                        dims(t)[OUTSIDE_MASK_PART]);
    case PLAN_OP_LOCAL_INDEX:
        return kernel_cuda_local_index(k, p[LOCAL_INDEX_POSITION], p[LOCAL_INDEX_LOCAL_INDEX],
                                       p[LOCAL_INDEX_INDEX], p[LOCAL_INDEX_MASK],
                                       dim(t, LOCAL_INDEX_N), first_of_rank(t, LOCAL_INDEX_PART));
    case PLAN_OP_ZERO_MASKED:
        return kernel_cuda_zero_masked(k, p[ZERO_MASKED_X], p[ZERO_MASKED_MASK],
                                       dim(t, ZERO_MASKED_ROWS), dim(t, ZERO_MASKED_WIDTH),
                                       type_at(t, ZERO_MASKED_X));
    case PLAN_OP_PARTS_COPY:
    case PLAN_OP_OWN_PARTS:
        return exec_cuda_pieces(t, k);
        EXEC_SHARED_LOSS_OPS(EXEC_CASE)
        return exec_cuda_shared_loss(t, k);
        EXEC_SHARED_COMPILED_LOSS_OPS(EXEC_CASE)
        return exec_cuda_shared_compiled_loss(t, k);
    }
    g_assert_not_reached();
}
