/* exec/cuda/ops/activation.c - activations. */
#include "kernels/cuda/activation.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/sinks.h"

static KernelCudaFault dropout(const ExecTask *t, KernelCuda *k) {
    uint64_t n = dim(t, DROPOUT_N), place = dim(t, DROPOUT_STREAM);
    KernelCudaRandom random = {t->context->seed, UINT64_C(1) << 32 | place, first_to_drop(t)};
    return kernel_cuda_dropout_forward(k, t->pointers[DROPOUT_Y], t->pointers[DROPOUT_MASK],
                                       t->pointers[DROPOUT_X], n, (float)attr(t, DROPOUT_P), random,
                                       type_at(t, DROPOUT_X));
}

static KernelCudaFault activate(const ExecTask *t, KernelCuda *k, KernelCudaActivation kind) {
    return kernel_cuda_activation_forward(k, t->pointers[GELU_TANH_Y], t->pointers[GELU_TANH_X],
                                          dim(t, GELU_TANH_N), kind, type_at(t, GELU_TANH_X));
}

/* What backward is given beside dy is x, or y of TANH and RELU. */
static KernelCudaFault activate_back(const ExecTask *t, KernelCuda *k, KernelCudaActivation kind) {
    return kernel_cuda_activation_backward(
        k, t->pointers[SILU_BACKWARD_DX], t->pointers[SILU_BACKWARD_DY],
        t->pointers[SILU_BACKWARD_X], dim(t, SILU_BACKWARD_N), kind, type_at(t, SILU_BACKWARD_DY));
}

/* Of both kinds that choose columns. */
static KernelCudaChosen chosen_of(const ExecTask *t) {
    return (KernelCudaChosen){dim(t, CLAMP_COLUMNS_ROWS), dim(t, CLAMP_COLUMNS_COLS),
                              dim(t, CLAMP_COLUMNS_WIDTH), dim(t, CLAMP_COLUMNS_FROM),
                              type_at(t, CLAMP_COLUMNS_X)};
}

static KernelCudaFault clamp_columns(const ExecTask *t, KernelCuda *k) {
    KernelCudaChosen chosen = chosen_of(t);
    return kernel_cuda_clamp_columns(k, t->pointers[CLAMP_COLUMNS_Y], t->pointers[CLAMP_COLUMNS_X],
                                     &chosen, (float)attr(t, CLAMP_COLUMNS_LEAST),
                                     (float)attr(t, CLAMP_COLUMNS_MOST));
}

static KernelCudaFault limit_mask(const ExecTask *t, KernelCuda *k) {
    KernelCudaChosen chosen = chosen_of(t);
    return kernel_cuda_limit_mask(k, t->pointers[LIMIT_MASK_MASK], t->pointers[LIMIT_MASK_X],
                                  &chosen, (float)attr(t, LIMIT_MASK_SIGN),
                                  (float)attr(t, LIMIT_MASK_LIMIT));
}

KernelCudaFault exec_cuda_activation(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_of_first(t);
    switch ((ExecActivationOp)t->op->kind) {
    case PLAN_OP_GELU_TANH:
        return activate(t, k, KERNEL_CUDA_GELU_TANH);
    case PLAN_OP_GELU_ERF:
        return activate(t, k, KERNEL_CUDA_GELU_ERF);
    case PLAN_OP_TANH:
        return activate(t, k, KERNEL_CUDA_TANH);
    case PLAN_OP_RELU:
        return activate(t, k, KERNEL_CUDA_RELU);
    case PLAN_OP_SILU:
        return activate(t, k, KERNEL_CUDA_SILU);
    case PLAN_OP_GELU_TANH_BACKWARD:
        return activate_back(t, k, KERNEL_CUDA_GELU_TANH);
    case PLAN_OP_GELU_ERF_BACKWARD:
        return activate_back(t, k, KERNEL_CUDA_GELU_ERF);
    case PLAN_OP_TANH_BACKWARD:
        return activate_back(t, k, KERNEL_CUDA_TANH);
    case PLAN_OP_RELU_BACKWARD:
        return activate_back(t, k, KERNEL_CUDA_RELU);
    case PLAN_OP_SILU_BACKWARD:
        return activate_back(t, k, KERNEL_CUDA_SILU);
    case PLAN_OP_SWIGLU:
        return kernel_cuda_swiglu_forward(k, p[SWIGLU_Y], p[SWIGLU_GATE], p[SWIGLU_UP],
                                          dim(t, SWIGLU_N), type);
    case PLAN_OP_SWIGLU_BACKWARD:
        return kernel_cuda_swiglu_backward(k, p[SWIGLU_BACKWARD_DGATE], p[SWIGLU_BACKWARD_DUP],
                                           p[SWIGLU_BACKWARD_DY], p[SWIGLU_BACKWARD_GATE],
                                           p[SWIGLU_BACKWARD_UP], dim(t, SWIGLU_BACKWARD_N), type);
    case PLAN_OP_DROPOUT:
        return dropout(t, k);
    case PLAN_OP_DROPOUT_BACKWARD:
        return kernel_cuda_dropout_backward(k, p[DROPOUT_BACKWARD_DX], p[DROPOUT_BACKWARD_DY],
                                            p[DROPOUT_BACKWARD_MASK], dim(t, DROPOUT_BACKWARD_N),
                                            (float)attr(t, DROPOUT_BACKWARD_P), type);
    case PLAN_OP_CLAMP_COLUMNS:
        return clamp_columns(t, k);
    case PLAN_OP_LIMIT_MASK:
        return limit_mask(t, k);
    case PLAN_OP_WHERE_MASK:
        return kernel_cuda_where_mask(k, p[WHERE_MASK_Y], p[WHERE_MASK_MASK], p[WHERE_MASK_X],
                                      p[WHERE_MASK_ZERO], dim(t, WHERE_MASK_N),
                                      type_at(t, WHERE_MASK_X));
    }
    g_assert_not_reached();
}
