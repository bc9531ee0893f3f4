/* exec/cuda/ops/positions.c - what a pass makes of nothing but positions and labels, as
 * exec/host/positions.c has it. */
#include "kernels/cuda/positions.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/heads.h"

KernelCudaFault exec_cuda_positions(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecPositionOp)t->op->kind) {
    case PLAN_OP_ARANGE:
        return kernel_cuda_arange_i64(k, p[0], dim(t, 0), 0, 1);
    case PLAN_OP_ROPE_FREQUENCIES:
        return kernel_cuda_rope_frequencies(k, p[0], dim(t, 0), attr(t, 0));
    case PLAN_OP_SHIFT:
        return kernel_cuda_shift_i64(k, p[1], p[0], dim(t, 0), dims(t)[1]);
    case PLAN_OP_AS_NUMBER:
        return kernel_cuda_as_number(k, p[1], p[0], dim(t, 0), type_at(t, 1));
    case PLAN_OP_OUTER:
        return kernel_cuda_outer(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1));
    case PLAN_OP_COS:
        return kernel_cuda_cos(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_SIN:
        return kernel_cuda_sin(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_PAD_TARGETS:
        return kernel_cuda_pad_targets(k, p[1], p[0], dim(t, 0), dim(t, 1));
    case PLAN_OP_DROP_FIRST:
    case PLAN_OP_DROP_LAST:
        return kernel_cuda_drop_one(k, p[1], p[0], dim(t, 0), dim(t, 1),
                                    t->op->kind == PLAN_OP_DROP_FIRST);
    }
    g_assert_not_reached();
}
