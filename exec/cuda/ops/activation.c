/* exec/cuda/ops/activation.c - activations. */
#include "kernels/cuda/activation.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/random.h"

/* What is dropped depends on the global batch, not on how it is dealt out to ranks. */
static KernelCudaFault dropout(const ExecTask *t, KernelCuda *k) {
    const ExecComm *comm = t->context->comm;
    uint64_t n = dim(t, 0), place = dim(t, 1);
    KernelCudaRandom random = {t->context->seed, UINT64_C(1) << 32 | place,
                               (t->turn * comm->world + comm->rank) * n};
    return kernel_cuda_dropout_forward(k, t->pointers[1], t->pointers[2], t->pointers[0], n,
                                       (float)attr(t, 0), random, type_at(t, 0));
}

static KernelCudaFault activate(const ExecTask *t, KernelCuda *k, KernelCudaActivation kind) {
    return kernel_cuda_activation_forward(k, t->pointers[1], t->pointers[0], dim(t, 0), kind,
                                          type_at(t, 0));
}

static KernelCudaFault activate_back(const ExecTask *t, KernelCuda *k, KernelCudaActivation kind) {
    return kernel_cuda_activation_backward(k, t->pointers[2], t->pointers[0], t->pointers[1],
                                           dim(t, 0), kind, type_at(t, 0));
}

KernelCudaFault exec_cuda_activation(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_at(t, 0);
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
        return kernel_cuda_swiglu_forward(k, p[2], p[0], p[1], dim(t, 0), type);
    case PLAN_OP_SWIGLU_BACKWARD:
        return kernel_cuda_swiglu_backward(k, p[3], p[4], p[0], p[1], p[2], dim(t, 0), type);
    case PLAN_OP_DROPOUT:
        return dropout(t, k);
    case PLAN_OP_DROPOUT_BACKWARD:
        return kernel_cuda_dropout_backward(k, p[2], p[0], p[1], dim(t, 0), (float)attr(t, 0),
                                            type);
    }
    g_assert_not_reached();
}
