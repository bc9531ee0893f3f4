/* exec/cuda/ops/activation.c - activations. */
#include "kernels/cuda/activation.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/random.h"

/* What is dropped depends on the global batch, not on how it is dealt out to ranks. */
static KernelCudaFault dropout(const ExecTask *t, KernelCuda *k) {
    const ExecComm *comm = t->context->comm;
    uint64_t n = dim(t, DROPOUT_N), place = dim(t, DROPOUT_STREAM);
    KernelCudaRandom random = {t->context->seed, UINT64_C(1) << 32 | place,
                               (t->pass * comm->world + comm->rank) * n};
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
    }
    g_assert_not_reached();
}
