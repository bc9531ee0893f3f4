/* exec/cuda/ops/positions.c - what a pass makes of nothing but positions and labels, as
 * exec/host/positions.c has it. */
#include "kernels/cuda/attention/positions.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/attention/heads.h"
#include "kernels/cuda/elementwise.h"

KernelCudaFault exec_cuda_positions(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecPositionOp)t->op->kind) {
    case PLAN_OP_ARANGE:
        return kernel_cuda_arange_i64(k, p[ARANGE_Y], dim(t, ARANGE_N), 0, 1);
    case PLAN_OP_ROPE_FREQUENCIES:
        return kernel_cuda_rope_frequencies(k, p[ROPE_FREQUENCIES_Y], dim(t, ROPE_FREQUENCIES_DIM),
                                            attr(t, ROPE_FREQUENCIES_BASE));
    case PLAN_OP_SHIFT:
        return kernel_cuda_shift_i64(k, p[SHIFT_INDEX], p[SHIFT_POSITION], dim(t, SHIFT_N),
                                     dims(t)[SHIFT_FROM]);
    case PLAN_OP_AS_NUMBER:
        return kernel_cuda_as_number(k, p[AS_NUMBER_Y], p[AS_NUMBER_POSITION], dim(t, AS_NUMBER_N),
                                     type_at(t, AS_NUMBER_Y));
    case PLAN_OP_OUTER:
        return kernel_cuda_outer(k, p[OUTER_Y], p[OUTER_COLUMN], p[OUTER_ROW], dim(t, OUTER_ROWS),
                                 dim(t, OUTER_COLS));
    case PLAN_OP_COS:
        return kernel_cuda_cos(k, p[COS_Y], p[COS_X], dim(t, COS_N));
    case PLAN_OP_SIN:
        return kernel_cuda_sin(k, p[SIN_Y], p[SIN_X], dim(t, SIN_N));
    case PLAN_OP_PAD_TARGETS:
        return kernel_cuda_pad_targets(k, p[PAD_TARGETS_INDEX], p[PAD_TARGETS_TARGET],
                                       dim(t, PAD_TARGETS_BATCH), dim(t, PAD_TARGETS_SEQ));
    case PLAN_OP_DROP_FIRST:
    case PLAN_OP_DROP_LAST:
        return kernel_cuda_drop_one(k, p[DROP_FIRST_TARGET], p[DROP_FIRST_INDEX],
                                    dim(t, DROP_FIRST_BATCH), dim(t, DROP_FIRST_SEQ),
                                    t->op->kind == PLAN_OP_DROP_FIRST);
    }
    g_assert_not_reached();
}
