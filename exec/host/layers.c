/* exec/host/layers.c - layers that have parameters: tables, products, norms. */
#include "exec/host/ops.h"

#include "exec/host/fused.h"
#include "exec/task.h"
#include "kernels/host/embedding.h"
#include "kernels/host/matmul.h"
#include "kernels/host/norm.h"

static void linear_parts(const ExecTask *t) {
    size_t m = dim(t, 0), k = dim(t, 2), parts = dim(t, 3), n = dim(t, 1) / parts;
    const float *bias = f32(t, 2);
    for (size_t i = 0; i < parts; i++) {
        kernel_linear_forward_f32(f32(t, 3) + i * m * n, f32(t, 0), f32(t, 1) + i * n * k,
                                  bias ? bias + i * n : NULL, m, n, k);
    }
}

static bool lookup(const ExecTask *t, GError **error) {
    bool inside = t->op->kind == PLAN_OP_EMBEDDING
                      ? kernel_embedding_forward_f32(f32(t, 2), f32(t, 0), i64(t, 1), dim(t, 0),
                                                     dim(t, 2), dim(t, 1))
                      : kernel_embedding_backward_f32(f32(t, 2), f32(t, 0), i64(t, 1), dim(t, 0),
                                                      dim(t, 2), dim(t, 1));
    return exec_host_in_table(inside, "an embedding's index", error);
}

static void norm(const ExecTask *t) {
    switch ((ExecNormOp)t->op->kind) {
    case PLAN_OP_LAYERNORM:
        kernel_layernorm_forward_f32(f32(t, 3), f32(t, 4), f32(t, 5), f32(t, 0), f32(t, 1),
                                     f32(t, 2), dim(t, 0), dim(t, 1), (float)attr(t, 0));
        return;
    case PLAN_OP_RMSNORM:
        kernel_rmsnorm_forward_f32(f32(t, 2), f32(t, 3), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1),
                                   (float)attr(t, 0));
        return;
    case PLAN_OP_LAYERNORM_BACKWARD:
        kernel_layernorm_backward_f32(f32(t, 5), f32(t, 6), f32(t, 7), f32(t, 0), f32(t, 1),
                                      f32(t, 2), f32(t, 3), f32(t, 4), dim(t, 0), dim(t, 1));
        return;
    case PLAN_OP_RMSNORM_BACKWARD:
        kernel_rmsnorm_backward_f32(f32(t, 4), f32(t, 5), f32(t, 0), f32(t, 1), f32(t, 2),
                                    f32(t, 3), dim(t, 0), dim(t, 1));
        return;
    case PLAN_OP_ADD_RMSNORM:
    case PLAN_OP_ADD_LAYERNORM:
        exec_fused_add_norm(t);
        return;
    case PLAN_OP_ADD_RMSNORM_BACKWARD:
    case PLAN_OP_ADD_LAYERNORM_BACKWARD:
        exec_fused_add_norm_backward(t);
        return;
    }
    g_assert_not_reached();
}

static void product(const ExecTask *t) {
    switch ((ExecProductOp)t->op->kind) {
    case PLAN_OP_LINEAR:
        kernel_linear_forward_f32(f32(t, 3), f32(t, 0), f32(t, 1), f32(t, 2), dim(t, 0), dim(t, 1),
                                  dim(t, 2));
        return;
    case PLAN_OP_LINEAR_PARTS:
        linear_parts(t);
        return;
    case PLAN_OP_LINEAR_GELU:
        exec_fused_linear_gelu(t);
        return;
    case PLAN_OP_LINEAR_DX:
        kernel_linear_backward_input_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1),
                                         dim(t, 2));
        return;
    case PLAN_OP_LINEAR_DW:
        kernel_linear_backward_weight_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1),
                                          dim(t, 2));
        return;
    case PLAN_OP_LINEAR_DX_GELU:
        exec_fused_linear_dx_gelu(t);
        return;
    case PLAN_OP_LINEAR_DW_DB:
        exec_fused_linear_dw_db(t);
        return;
    }
    g_assert_not_reached();
}

bool exec_host_layers(const ExecTask *t, GError **error) {
    switch ((ExecLayerOp)t->op->kind) {
    case PLAN_OP_EMBEDDING:
    case PLAN_OP_EMBEDDING_BACKWARD:
        return lookup(t, error);
        EXEC_PRODUCT_OPS(EXEC_CASE)
        product(t);
        return true;
        EXEC_NORM_OPS(EXEC_CASE)
        norm(t);
        return true;
    }
    g_assert_not_reached();
}
