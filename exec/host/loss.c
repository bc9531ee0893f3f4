/* exec/host/loss.c - softmax, and losses. */
#include "exec/host/ops.h"

#include "exec/host/fused.h"
#include "exec/task.h"
#include "kernels/host/loss.h"

bool exec_host_loss(const ExecTask *t, GError **error) {
    switch ((ExecLossOp)t->op->kind) {
    case PLAN_OP_SOFTMAX:
        kernel_softmax_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_SOFTMAX_BACKWARD:
        kernel_softmax_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_LOG_SOFTMAX:
        kernel_log_softmax_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_LOG_SOFTMAX_BACKWARD:
        kernel_log_softmax_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_NLL_LOSS:
        return exec_host_in_table(kernel_nll_loss_forward_f32(f32(t, 2), f32(t, 3), f32(t, 0),
                                                              i64(t, 1), dim(t, 0), dim(t, 1),
                                                              -100),
                                  "the targets", error);
    case PLAN_OP_NLL_LOSS_BACKWARD:
        return exec_host_in_table(kernel_nll_loss_backward_f32(f32(t, 3), f32(t, 0), i64(t, 1),
                                                               f32(t, 2), dim(t, 0), dim(t, 1),
                                                               -100),
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
