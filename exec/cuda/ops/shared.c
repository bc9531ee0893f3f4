/* exec/cuda/ops/shared.c - layers that ranks share, as exec/host/shared.c has them. */
#include "kernels/cuda/shared.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/shared-loss.h"

KernelCudaFault exec_cuda_share(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecShareOp)t->op->kind) {
    case PLAN_OP_OUTSIDE_MASK: /* index > below above outside */
        return kernel_cuda_outside_mask(k, p[1], p[2], p[3], p[0], dim(t, 0), first_of_rank(t),
                                        dims(t)[1]);
    case PLAN_OP_LOCAL_INDEX: /* index outside > copy local */
        return kernel_cuda_local_index(k, p[2], p[3], p[0], p[1], dim(t, 0), first_of_rank(t));
    case PLAN_OP_ZERO_MASKED:
        return kernel_cuda_zero_masked(k, p[1], p[0], dim(t, 0), dim(t, 1), type_at(t, 1));
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
