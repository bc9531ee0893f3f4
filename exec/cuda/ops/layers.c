/* exec/cuda/ops/layers.c - layers that have parameters: tables, products, norms. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/norm.h"

/* A product for each matrix of the result. */
static KernelCudaFault linear_parts(const ExecTask *t, KernelCuda *k) {
    size_t m = dim(t, 0), inside = dim(t, 2), parts = dim(t, 3), n = dim(t, 1) / parts;
    KernelCudaType type = type_at(t, 0);
    size_t bytes = kernel_cuda_type_bytes(type);
    const char *weight = t->pointers[1], *bias = t->pointers[2];
    char *y = t->pointers[3];
    KernelCudaFault fault = NULL;
    for (size_t i = 0; i < parts && !fault; i++) {
        fault = kernel_cuda_linear_forward(k, y + i * m * n * bytes, t->pointers[0],
                                           weight + i * n * inside * bytes,
                                           bias ? bias + i * n * bytes : NULL, m, n, inside, type);
    }
    return fault;
}

static KernelCudaNorm norm_of(const ExecTask *t, unsigned stored) {
    bool forward = plan_op_info((PlanOpKind)t->op->kind)->n_attrs == 1;
    return (KernelCudaNorm){dim(t, 0), dim(t, 1), forward ? (float)attr(t, 0) : 0,
                            type_at(t, stored)};
}

static KernelCudaFault norm(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaNorm shape = norm_of(t, 1);
    switch ((ExecNormOp)t->op->kind) {
    case PLAN_OP_LAYERNORM: /* x w b > y mean rstd */
        return kernel_cuda_layernorm_forward(k, NULL, p[3], p[4], p[5], p[0], NULL, p[1], p[2],
                                             &shape);
    case PLAN_OP_ADD_LAYERNORM: /* a r w c > sum y mean rstd */
        return kernel_cuda_layernorm_forward(k, p[4], p[5], p[6], p[7], p[0], p[1], p[2], p[3],
                                             &shape);
    case PLAN_OP_RMSNORM: /* x w > y rstd */
        return kernel_cuda_rmsnorm_forward(k, NULL, p[2], p[3], p[0], NULL, p[1], &shape);
    case PLAN_OP_ADD_RMSNORM: /* a r w > sum y rstd */
        return kernel_cuda_rmsnorm_forward(k, p[3], p[4], p[5], p[0], p[1], p[2], &shape);
    case PLAN_OP_LAYERNORM_BACKWARD: /* dy x mean rstd w > dx dw db */
        return kernel_cuda_layernorm_backward(k, p[5], p[6], p[7], NULL, p[0], p[1], p[2], p[3],
                                              p[4], &shape);
    case PLAN_OP_ADD_LAYERNORM_BACKWARD: /* dsum? dy sum mean rstd w > dx dw dc */
        return kernel_cuda_layernorm_backward(k, p[6], p[7], p[8], p[0], p[1], p[2], p[3], p[4],
                                              p[5], &shape);
    case PLAN_OP_RMSNORM_BACKWARD: /* dy x rstd w > dx dw */
        return kernel_cuda_rmsnorm_backward(k, p[4], p[5], NULL, p[0], p[1], p[2], p[3], &shape);
    case PLAN_OP_ADD_RMSNORM_BACKWARD: /* dsum? dy sum rstd w > dx dw */
        return kernel_cuda_rmsnorm_backward(k, p[5], p[6], p[0], p[1], p[2], p[3], p[4], &shape);
    }
    g_assert_not_reached();
}

static KernelCudaFault product(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_at(t, 0);
    switch ((ExecProductOp)t->op->kind) {
    case PLAN_OP_LINEAR:
        return kernel_cuda_linear_forward(k, p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1),
                                          dim(t, 2), type);
    case PLAN_OP_LINEAR_PARTS:
        return linear_parts(t, k);
    case PLAN_OP_LINEAR_GELU:
        return kernel_cuda_linear_gelu_forward(
            k, p[3], p[4], p[0], p[1], p[2], dim(t, 0), dim(t, 1), dim(t, 2),
            attr(t, 0) > 0 ? KERNEL_CUDA_GELU_ERF : KERNEL_CUDA_GELU_TANH, type);
    case PLAN_OP_LINEAR_DX:
        return kernel_cuda_linear_backward_input(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1),
                                                 dim(t, 2), type);
    case PLAN_OP_LINEAR_DW:
        return kernel_cuda_linear_backward_weight(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1),
                                                  dim(t, 2), type);
    case PLAN_OP_LINEAR_DX_GELU:
        return kernel_cuda_linear_gelu_backward_input(k, p[3], p[4], p[0], p[1], p[2], dim(t, 0),
                                                      dim(t, 1), dim(t, 2), type);
    case PLAN_OP_LINEAR_DW_DB:
        return kernel_cuda_linear_backward_weight_bias(k, p[2], p[3], p[0], p[1], dim(t, 0),
                                                       dim(t, 1), dim(t, 2), type);
    }
    g_assert_not_reached();
}

KernelCudaFault exec_cuda_layers(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecLayerOp)t->op->kind) {
    case PLAN_OP_EMBEDDING:
        return kernel_cuda_embedding_forward(k, p[2], p[0], p[1], dim(t, 0), dim(t, 2), dim(t, 1),
                                             type_at(t, 0));
    case PLAN_OP_EMBEDDING_BACKWARD:
        return kernel_cuda_embedding_backward(k, p[2], p[0], p[1], dim(t, 0), dim(t, 2), dim(t, 1),
                                              type_at(t, 0));
        EXEC_PRODUCT_OPS(EXEC_CASE)
        return product(t, k);
        EXEC_NORM_OPS(EXEC_CASE)
        return norm(t, k);
    }
    g_assert_not_reached();
}
