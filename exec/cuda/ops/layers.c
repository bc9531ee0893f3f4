/* exec/cuda/ops/layers.c - layers that have parameters: tables, products, norms. */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/products/matmul.h"
#include "kernels/cuda/rows/embedding.h"
#include "kernels/cuda/rows/norm.h"

/* A product for each matrix of the result. */
static KernelCudaFault linear_parts(const ExecTask *t, KernelCuda *k) {
    size_t m = dim(t, LINEAR_PARTS_M), inside = dim(t, LINEAR_PARTS_K),
           parts = dim(t, LINEAR_PARTS_PARTS), n = dim(t, LINEAR_PARTS_N) / parts;
    KernelCudaType type = type_at(t, LINEAR_PARTS_X);
    size_t bytes = kernel_cuda_type_bytes(type);
    const char *weight = t->pointers[LINEAR_PARTS_W], *bias = t->pointers[LINEAR_PARTS_B];
    char *y = t->pointers[LINEAR_PARTS_Y];
    KernelCudaFault fault = NULL;
    for (size_t i = 0; i < parts && !fault; i++) {
        fault = kernel_cuda_linear_forward(k, y + i * m * n * bytes, t->pointers[LINEAR_PARTS_X],
                                           weight + i * n * inside * bytes,
                                           bias ? bias + i * n * bytes : NULL, m, n, inside, type);
    }
    return fault;
}

/* x: what is normed; y: what may be narrower than that, as a product's share of a sum is; w: the
 * weight, which may be wider. */
static KernelCudaNorm norm_of(const ExecTask *t, PlanSlotNumber x, PlanSlotNumber y,
                              PlanSlotNumber w) {
    bool forward = plan_op_info((PlanOpKind)t->op->kind)->n_attrs == 1;
    return (KernelCudaNorm){dim(t, LAYERNORM_ROWS),
                            dim(t, LAYERNORM_WIDTH),
                            forward ? (float)attr(t, LAYERNORM_EPS) : 0,
                            type_at(t, x),
                            0,
                            type_at(t, y),
                            t->pointers[w] && type_at(t, w) == KERNEL_CUDA_F32};
}

static KernelCudaFault norm(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaNorm shape;
    switch ((ExecNormOp)t->op->kind) {
    case PLAN_OP_LAYERNORM:
        shape = norm_of(t, LAYERNORM_X, LAYERNORM_Y, LAYERNORM_W);
        return kernel_cuda_layernorm_forward(k, NULL, p[LAYERNORM_Y], p[LAYERNORM_MEAN],
                                             p[LAYERNORM_RSTD], p[LAYERNORM_X], NULL,
                                             p[LAYERNORM_W], p[LAYERNORM_B], &shape);
    case PLAN_OP_ADD_LAYERNORM:
        shape = norm_of(t, ADD_LAYERNORM_A, ADD_LAYERNORM_Y, ADD_LAYERNORM_W);
        return kernel_cuda_layernorm_forward(k, p[ADD_LAYERNORM_SUM], p[ADD_LAYERNORM_Y],
                                             p[ADD_LAYERNORM_MEAN], p[ADD_LAYERNORM_RSTD],
                                             p[ADD_LAYERNORM_A], p[ADD_LAYERNORM_R],
                                             p[ADD_LAYERNORM_W], p[ADD_LAYERNORM_C], &shape);
    case PLAN_OP_RMSNORM:
        shape = norm_of(t, RMSNORM_X, RMSNORM_Y, RMSNORM_W);
        return kernel_cuda_rmsnorm_forward(k, NULL, p[RMSNORM_Y], p[RMSNORM_RSTD], p[RMSNORM_X],
                                           NULL, p[RMSNORM_W], &shape);
    case PLAN_OP_ADD_RMSNORM:
        shape = norm_of(t, ADD_RMSNORM_A, ADD_RMSNORM_Y, ADD_RMSNORM_W);
        return kernel_cuda_rmsnorm_forward(k, p[ADD_RMSNORM_SUM], p[ADD_RMSNORM_Y],
                                           p[ADD_RMSNORM_RSTD], p[ADD_RMSNORM_A], p[ADD_RMSNORM_R],
                                           p[ADD_RMSNORM_W], &shape);
    case PLAN_OP_LAYERNORM_BACKWARD:
        shape = norm_of(t, LAYERNORM_BACKWARD_X, LAYERNORM_BACKWARD_DY, LAYERNORM_BACKWARD_W);
        return kernel_cuda_layernorm_backward(
            k, p[LAYERNORM_BACKWARD_DX], p[LAYERNORM_BACKWARD_DW], p[LAYERNORM_BACKWARD_DB], NULL,
            p[LAYERNORM_BACKWARD_DY], p[LAYERNORM_BACKWARD_X], p[LAYERNORM_BACKWARD_MEAN],
            p[LAYERNORM_BACKWARD_RSTD], p[LAYERNORM_BACKWARD_W], &shape);
    case PLAN_OP_ADD_LAYERNORM_BACKWARD:
        shape = norm_of(t, ADD_LAYERNORM_BACKWARD_SUM, ADD_LAYERNORM_BACKWARD_DY,
                        ADD_LAYERNORM_BACKWARD_W);
        return kernel_cuda_layernorm_backward(
            k, p[ADD_LAYERNORM_BACKWARD_DX], p[ADD_LAYERNORM_BACKWARD_DW],
            p[ADD_LAYERNORM_BACKWARD_DC], p[ADD_LAYERNORM_BACKWARD_DSUM],
            p[ADD_LAYERNORM_BACKWARD_DY], p[ADD_LAYERNORM_BACKWARD_SUM],
            p[ADD_LAYERNORM_BACKWARD_MEAN], p[ADD_LAYERNORM_BACKWARD_RSTD],
            p[ADD_LAYERNORM_BACKWARD_W], &shape);
    case PLAN_OP_RMSNORM_BACKWARD:
        shape = norm_of(t, RMSNORM_BACKWARD_X, RMSNORM_BACKWARD_DY, RMSNORM_BACKWARD_W);
        return kernel_cuda_rmsnorm_backward(
            k, p[RMSNORM_BACKWARD_DX], p[RMSNORM_BACKWARD_DW], NULL, p[RMSNORM_BACKWARD_DY],
            p[RMSNORM_BACKWARD_X], p[RMSNORM_BACKWARD_RSTD], p[RMSNORM_BACKWARD_W], &shape);
    case PLAN_OP_ADD_RMSNORM_BACKWARD:
        shape =
            norm_of(t, ADD_RMSNORM_BACKWARD_SUM, ADD_RMSNORM_BACKWARD_DY, ADD_RMSNORM_BACKWARD_W);
        return kernel_cuda_rmsnorm_backward(
            k, p[ADD_RMSNORM_BACKWARD_DX], p[ADD_RMSNORM_BACKWARD_DW], p[ADD_RMSNORM_BACKWARD_DSUM],
            p[ADD_RMSNORM_BACKWARD_DY], p[ADD_RMSNORM_BACKWARD_SUM], p[ADD_RMSNORM_BACKWARD_RSTD],
            p[ADD_RMSNORM_BACKWARD_W], &shape);
    }
    g_assert_not_reached();
}

static KernelCudaFault product(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_of_first(t);
    switch ((ExecProductOp)t->op->kind) {
    case PLAN_OP_LINEAR:
        return kernel_cuda_linear_forward(k, p[LINEAR_Y], p[LINEAR_X], p[LINEAR_W], p[LINEAR_B],
                                          dim(t, LINEAR_M), dim(t, LINEAR_N), dim(t, LINEAR_K),
                                          type);
    case PLAN_OP_LINEAR_PARTS:
        return linear_parts(t, k);
    case PLAN_OP_LINEAR_GELU:
        return kernel_cuda_linear_gelu_forward(
            k, p[LINEAR_GELU_Y], p[LINEAR_GELU_BEFORE], p[LINEAR_GELU_X], p[LINEAR_GELU_W],
            p[LINEAR_GELU_B], dim(t, LINEAR_GELU_M), dim(t, LINEAR_GELU_N), dim(t, LINEAR_GELU_K),
            attr(t, LINEAR_GELU_ERF) > 0 ? KERNEL_CUDA_GELU_ERF : KERNEL_CUDA_GELU_TANH, type);
    case PLAN_OP_LINEAR_DX:
        return kernel_cuda_linear_backward_input(k, p[LINEAR_DX_DX], p[LINEAR_DX_DY],
                                                 p[LINEAR_DX_W], dim(t, LINEAR_DX_M),
                                                 dim(t, LINEAR_DX_N), dim(t, LINEAR_DX_K), type);
    case PLAN_OP_LINEAR_DW:
        return kernel_cuda_linear_backward_weight(k, p[LINEAR_DW_DW], p[LINEAR_DW_DY],
                                                  p[LINEAR_DW_X], dim(t, LINEAR_DW_M),
                                                  dim(t, LINEAR_DW_N), dim(t, LINEAR_DW_K), type);
    case PLAN_OP_LINEAR_DX_GELU:
        return kernel_cuda_linear_gelu_backward_input(
            k, p[LINEAR_DX_GELU_DX], p[LINEAR_DX_GELU_DB], p[LINEAR_DX_GELU_DY],
            p[LINEAR_DX_GELU_W], p[LINEAR_DX_GELU_BEFORE], dim(t, LINEAR_DX_GELU_M),
            dim(t, LINEAR_DX_GELU_N), dim(t, LINEAR_DX_GELU_K), type);
    case PLAN_OP_LINEAR_DW_DB:
        return kernel_cuda_linear_backward_weight_bias(
            k, p[LINEAR_DW_DB_DW], p[LINEAR_DW_DB_DB], p[LINEAR_DW_DB_DY], p[LINEAR_DW_DB_X],
            dim(t, LINEAR_DW_DB_M), dim(t, LINEAR_DW_DB_N), dim(t, LINEAR_DW_DB_K), type);
    }
    g_assert_not_reached();
}

KernelCudaFault exec_cuda_layers(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecLayerOp)t->op->kind) {
    case PLAN_OP_EMBEDDING:
        return kernel_cuda_embedding_forward(k, p[EMBEDDING_Y], p[EMBEDDING_W], p[EMBEDDING_INDEX],
                                             dim(t, EMBEDDING_N), dim(t, EMBEDDING_VOCAB),
                                             dim(t, EMBEDDING_WIDTH), type_at(t, EMBEDDING_W));
    case PLAN_OP_EMBEDDING_BACKWARD:
        return kernel_cuda_embedding_backward(
            k, p[EMBEDDING_BACKWARD_DW], p[EMBEDDING_BACKWARD_DY], p[EMBEDDING_BACKWARD_INDEX],
            dim(t, EMBEDDING_BACKWARD_N), dim(t, EMBEDDING_BACKWARD_VOCAB),
            dim(t, EMBEDDING_BACKWARD_WIDTH), type_at(t, EMBEDDING_BACKWARD_DY));
        EXEC_PRODUCT_OPS(EXEC_CASE)
        return product(t, k);
        EXEC_NORM_OPS(EXEC_CASE)
        return norm(t, k);
    }
    g_assert_not_reached();
}
