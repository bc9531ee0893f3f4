/* exec/host/activation.c - activations. */
#include "exec/host/ops.h"

#include "exec/host/fused.h"
#include "exec/task.h"
#include "kernels/host/activation.h"
#include "kernels/host/dropout.h"

/* What is dropped depends on the global batch, not on how it is dealt out to ranks. */
static void dropout(const ExecTask *t) {
    const ExecComm *comm = t->context->comm;
    uint64_t n = dim(t, 0), place = dim(t, 1);
    kernel_dropout_forward_f32(f32(t, 1), bytes(t, 2), f32(t, 0), n, (float)attr(t, 0),
                               t->context->seed, UINT64_C(1) << 32 | place,
                               (t->turn * comm->world + comm->rank) * n);
}

void exec_host_activation(const ExecTask *t) {
    switch ((ExecActivationOp)t->op->kind) {
    case PLAN_OP_GELU_TANH:
        kernel_gelu_tanh_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return;
    case PLAN_OP_GELU_ERF:
        kernel_gelu_erf_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return;
    case PLAN_OP_TANH:
        kernel_tanh_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return;
    case PLAN_OP_RELU:
        kernel_relu_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return;
    case PLAN_OP_SILU:
        kernel_silu_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return;
    case PLAN_OP_GELU_TANH_BACKWARD:
        kernel_gelu_tanh_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return;
    case PLAN_OP_GELU_ERF_BACKWARD:
        kernel_gelu_erf_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return;
    case PLAN_OP_TANH_BACKWARD:
        kernel_tanh_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return;
    case PLAN_OP_RELU_BACKWARD:
        kernel_threshold_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), 0, dim(t, 0));
        return;
    case PLAN_OP_SILU_BACKWARD:
        kernel_silu_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return;
    case PLAN_OP_SWIGLU:
        exec_fused_swiglu(t);
        return;
    case PLAN_OP_SWIGLU_BACKWARD:
        exec_fused_swiglu_backward(t);
        return;
    case PLAN_OP_DROPOUT:
        dropout(t);
        return;
    case PLAN_OP_DROPOUT_BACKWARD:
        kernel_dropout_backward_f32(f32(t, 2), f32(t, 0), bytes(t, 1), dim(t, 0),
                                    (float)attr(t, 0));
        return;
    }
    g_assert_not_reached();
}
