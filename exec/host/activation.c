/* exec/host/activation.c - activations. */
#include "exec/host/ops.h"

#include "exec/host/fused.h"
#include "exec/task.h"
#include "kernels/host/activation.h"
#include "kernels/host/dropout.h"
#include "kernels/host/sinks.h"

static void dropout(const ExecTask *t) {
    uint64_t n = dim(t, DROPOUT_N), place = dim(t, DROPOUT_STREAM);
    kernel_dropout_forward_f32(f32(t, DROPOUT_Y), bytes(t, DROPOUT_MASK), f32(t, DROPOUT_X), n,
                               (float)attr(t, DROPOUT_P), t->context->seed,
                               UINT64_C(1) << 32 | place, first_to_drop(t));
}

static void clamp_columns(const ExecTask *t) {
    kernel_clamp_columns_f32(
        f32(t, CLAMP_COLUMNS_Y), f32(t, CLAMP_COLUMNS_X), dim(t, CLAMP_COLUMNS_ROWS),
        dim(t, CLAMP_COLUMNS_COLS), dim(t, CLAMP_COLUMNS_WIDTH), dim(t, CLAMP_COLUMNS_FROM),
        (float)attr(t, CLAMP_COLUMNS_LEAST), (float)attr(t, CLAMP_COLUMNS_MOST));
}

static void limit_mask(const ExecTask *t) {
    kernel_limit_mask_f32(bytes(t, LIMIT_MASK_MASK), f32(t, LIMIT_MASK_X), dim(t, LIMIT_MASK_ROWS),
                          dim(t, LIMIT_MASK_COLS), dim(t, LIMIT_MASK_WIDTH),
                          dim(t, LIMIT_MASK_FROM), (float)attr(t, LIMIT_MASK_SIGN),
                          (float)attr(t, LIMIT_MASK_LIMIT));
}

void exec_host_activation(const ExecTask *t) {
    switch ((ExecActivationOp)t->op->kind) {
    case PLAN_OP_GELU_TANH:
        kernel_gelu_tanh_forward_f32(f32(t, GELU_TANH_Y), f32(t, GELU_TANH_X), dim(t, GELU_TANH_N));
        return;
    case PLAN_OP_GELU_ERF:
        kernel_gelu_erf_forward_f32(f32(t, GELU_ERF_Y), f32(t, GELU_ERF_X), dim(t, GELU_ERF_N));
        return;
    case PLAN_OP_TANH:
        kernel_tanh_forward_f32(f32(t, TANH_Y), f32(t, TANH_X), dim(t, TANH_N));
        return;
    case PLAN_OP_RELU:
        kernel_relu_forward_f32(f32(t, RELU_Y), f32(t, RELU_X), dim(t, RELU_N));
        return;
    case PLAN_OP_SILU:
        kernel_silu_forward_f32(f32(t, SILU_Y), f32(t, SILU_X), dim(t, SILU_N));
        return;
    case PLAN_OP_GELU_TANH_BACKWARD:
        kernel_gelu_tanh_backward_f32(f32(t, GELU_TANH_BACKWARD_DX), f32(t, GELU_TANH_BACKWARD_DY),
                                      f32(t, GELU_TANH_BACKWARD_X), dim(t, GELU_TANH_BACKWARD_N));
        return;
    case PLAN_OP_GELU_ERF_BACKWARD:
        kernel_gelu_erf_backward_f32(f32(t, GELU_ERF_BACKWARD_DX), f32(t, GELU_ERF_BACKWARD_DY),
                                     f32(t, GELU_ERF_BACKWARD_X), dim(t, GELU_ERF_BACKWARD_N));
        return;
    case PLAN_OP_TANH_BACKWARD:
        kernel_tanh_backward_f32(f32(t, TANH_BACKWARD_DX), f32(t, TANH_BACKWARD_DY),
                                 f32(t, TANH_BACKWARD_Y), dim(t, TANH_BACKWARD_N));
        return;
    case PLAN_OP_RELU_BACKWARD:
        kernel_threshold_backward_f32(f32(t, RELU_BACKWARD_DX), f32(t, RELU_BACKWARD_DY),
                                      f32(t, RELU_BACKWARD_Y), 0, dim(t, RELU_BACKWARD_N));
        return;
    case PLAN_OP_SILU_BACKWARD:
        kernel_silu_backward_f32(f32(t, SILU_BACKWARD_DX), f32(t, SILU_BACKWARD_DY),
                                 f32(t, SILU_BACKWARD_X), dim(t, SILU_BACKWARD_N));
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
        kernel_dropout_backward_f32(f32(t, DROPOUT_BACKWARD_DX), f32(t, DROPOUT_BACKWARD_DY),
                                    bytes(t, DROPOUT_BACKWARD_MASK), dim(t, DROPOUT_BACKWARD_N),
                                    (float)attr(t, DROPOUT_BACKWARD_P));
        return;
    case PLAN_OP_CLAMP_COLUMNS:
        clamp_columns(t);
        return;
    case PLAN_OP_LIMIT_MASK:
        limit_mask(t);
        return;
    case PLAN_OP_WHERE_MASK:
        kernel_where_mask_f32(f32(t, WHERE_MASK_Y), bytes(t, WHERE_MASK_MASK), f32(t, WHERE_MASK_X),
                              *f32(t, WHERE_MASK_ZERO), dim(t, WHERE_MASK_N));
        return;
    }
    g_assert_not_reached();
}
