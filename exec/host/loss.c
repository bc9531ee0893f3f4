/* exec/host/loss.c - softmax, and losses. */
#include "exec/host/ops.h"

#include "exec/host/fused.h"
#include "exec/task.h"
#include "kernels/host/rows/loss.h"

bool exec_host_loss(const ExecTask *t, GError **error) {
    switch ((ExecLossOp)t->op->kind) {
    case PLAN_OP_SOFTMAX:
        kernel_softmax_forward_f32(f32(t, SOFTMAX_Y), f32(t, SOFTMAX_X), dim(t, SOFTMAX_ROWS),
                                   dim(t, SOFTMAX_COLS));
        return true;
    case PLAN_OP_SOFTMAX_BACKWARD:
        kernel_softmax_backward_f32(f32(t, SOFTMAX_BACKWARD_DX), f32(t, SOFTMAX_BACKWARD_DY),
                                    f32(t, SOFTMAX_BACKWARD_Y), dim(t, SOFTMAX_BACKWARD_ROWS),
                                    dim(t, SOFTMAX_BACKWARD_COLS));
        return true;
    case PLAN_OP_LOG_SOFTMAX:
        kernel_log_softmax_forward_f32(f32(t, LOG_SOFTMAX_Y), f32(t, LOG_SOFTMAX_X),
                                       dim(t, LOG_SOFTMAX_ROWS), dim(t, LOG_SOFTMAX_COLS));
        return true;
    case PLAN_OP_LOG_SOFTMAX_BACKWARD:
        kernel_log_softmax_backward_f32(
            f32(t, LOG_SOFTMAX_BACKWARD_DX), f32(t, LOG_SOFTMAX_BACKWARD_DY),
            f32(t, LOG_SOFTMAX_BACKWARD_Y), dim(t, LOG_SOFTMAX_BACKWARD_ROWS),
            dim(t, LOG_SOFTMAX_BACKWARD_COLS));
        return true;
    case PLAN_OP_NLL_LOSS:
        return exec_host_in_table(
            kernel_nll_loss_forward_f32(f32(t, NLL_LOSS_Y), f32(t, NLL_LOSS_TOTAL),
                                        f32(t, NLL_LOSS_X), i64(t, NLL_LOSS_TARGET),
                                        dim(t, NLL_LOSS_ROWS), dim(t, NLL_LOSS_COLS), -100),
            "the targets", error);
    case PLAN_OP_NLL_LOSS_BACKWARD:
        return exec_host_in_table(
            kernel_nll_loss_backward_f32(
                f32(t, NLL_LOSS_BACKWARD_DX), f32(t, NLL_LOSS_BACKWARD_DY),
                i64(t, NLL_LOSS_BACKWARD_TARGET), f32(t, NLL_LOSS_BACKWARD_TOTAL),
                dim(t, NLL_LOSS_BACKWARD_ROWS), dim(t, NLL_LOSS_BACKWARD_COLS), -100),
            "the targets", error);
    case PLAN_OP_CROSS_ENTROPY:
        return exec_host_in_table(exec_fused_cross_entropy(t), "a target", error);
    case PLAN_OP_CROSS_ENTROPY_BACKWARD:
        return exec_host_in_table(exec_fused_cross_entropy_backward(t), "a target", error);
    case PLAN_OP_COMPILED_LOSS:
        return exec_host_in_table(exec_fused_compiled_loss(t), "a target", error);
    case PLAN_OP_COMPILED_LOSS_BACKWARD:
        return exec_host_in_table(exec_fused_compiled_loss_backward(t), "a target", error);
    case PLAN_OP_CHUNKED_LOSS:
        return exec_host_in_table(exec_fused_chunked_loss(t), "a target", error);
    }
    g_assert_not_reached();
}
