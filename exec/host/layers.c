/* exec/host/layers.c - layers that have parameters: tables, products, norms. */
#include "exec/host/ops.h"

#include "exec/host/fused.h"
#include "exec/task.h"
#include "kernels/host/products/matmul.h"
#include "kernels/host/rows/embedding.h"
#include "kernels/host/rows/norm.h"

static void linear_parts(const ExecTask *t) {
    size_t m = dim(t, LINEAR_PARTS_M), k = dim(t, LINEAR_PARTS_K),
           parts = dim(t, LINEAR_PARTS_PARTS), n = dim(t, LINEAR_PARTS_N) / parts;
    const float *bias = f32(t, LINEAR_PARTS_B);
    for (size_t i = 0; i < parts; i++) {
        kernel_linear_forward_f32(f32(t, LINEAR_PARTS_Y) + i * m * n, f32(t, LINEAR_PARTS_X),
                                  f32(t, LINEAR_PARTS_W) + i * n * k, bias ? bias + i * n : NULL, m,
                                  n, k);
    }
}

static bool lookup(const ExecTask *t, GError **error) {
    bool inside =
        t->op->kind == PLAN_OP_EMBEDDING
            ? kernel_embedding_forward_f32(f32(t, EMBEDDING_Y), f32(t, EMBEDDING_W),
                                           i64(t, EMBEDDING_INDEX), dim(t, EMBEDDING_N),
                                           dim(t, EMBEDDING_VOCAB), dim(t, EMBEDDING_WIDTH))
            : kernel_embedding_backward_f32(f32(t, EMBEDDING_BACKWARD_DW),
                                            f32(t, EMBEDDING_BACKWARD_DY), i64(t, EMBEDDING_INDEX),
                                            dim(t, EMBEDDING_N), dim(t, EMBEDDING_VOCAB),
                                            dim(t, EMBEDDING_WIDTH));
    return exec_host_in_table(inside, "an embedding's index", error);
}

static void norm(const ExecTask *t) {
    switch ((ExecNormOp)t->op->kind) {
    case PLAN_OP_LAYERNORM:
        kernel_layernorm_forward_f32(
            f32(t, LAYERNORM_Y), f32(t, LAYERNORM_MEAN), f32(t, LAYERNORM_RSTD),
            f32(t, LAYERNORM_X), f32(t, LAYERNORM_W), f32(t, LAYERNORM_B), dim(t, LAYERNORM_ROWS),
            dim(t, LAYERNORM_WIDTH), (float)attr(t, LAYERNORM_EPS));
        return;
    case PLAN_OP_RMSNORM:
        kernel_rmsnorm_forward_f32(f32(t, RMSNORM_Y), f32(t, RMSNORM_RSTD), f32(t, RMSNORM_X),
                                   f32(t, RMSNORM_W), dim(t, RMSNORM_ROWS), dim(t, RMSNORM_WIDTH),
                                   (float)attr(t, RMSNORM_EPS));
        return;
    case PLAN_OP_LAYERNORM_BACKWARD:
        kernel_layernorm_backward_f32(f32(t, LAYERNORM_BACKWARD_DX), f32(t, LAYERNORM_BACKWARD_DW),
                                      f32(t, LAYERNORM_BACKWARD_DB), f32(t, LAYERNORM_BACKWARD_DY),
                                      f32(t, LAYERNORM_BACKWARD_X), f32(t, LAYERNORM_BACKWARD_MEAN),
                                      f32(t, LAYERNORM_BACKWARD_RSTD), f32(t, LAYERNORM_BACKWARD_W),
                                      dim(t, LAYERNORM_BACKWARD_ROWS),
                                      dim(t, LAYERNORM_BACKWARD_WIDTH));
        return;
    case PLAN_OP_RMSNORM_BACKWARD:
        kernel_rmsnorm_backward_f32(f32(t, RMSNORM_BACKWARD_DX), f32(t, RMSNORM_BACKWARD_DW),
                                    f32(t, RMSNORM_BACKWARD_DY), f32(t, RMSNORM_BACKWARD_X),
                                    f32(t, RMSNORM_BACKWARD_RSTD), f32(t, RMSNORM_BACKWARD_W),
                                    dim(t, RMSNORM_BACKWARD_ROWS), dim(t, RMSNORM_BACKWARD_WIDTH));
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
        kernel_linear_forward_f32(f32(t, LINEAR_Y), f32(t, LINEAR_X), f32(t, LINEAR_W),
                                  f32(t, LINEAR_B), dim(t, LINEAR_M), dim(t, LINEAR_N),
                                  dim(t, LINEAR_K));
        return;
    case PLAN_OP_LINEAR_PARTS:
        linear_parts(t);
        return;
    case PLAN_OP_LINEAR_GELU:
        exec_fused_linear_gelu(t);
        return;
    case PLAN_OP_LINEAR_DX:
        kernel_linear_backward_input_f32(f32(t, LINEAR_DX_DX), f32(t, LINEAR_DX_DY),
                                         f32(t, LINEAR_DX_W), dim(t, LINEAR_DX_M),
                                         dim(t, LINEAR_DX_N), dim(t, LINEAR_DX_K));
        return;
    case PLAN_OP_LINEAR_DW:
        kernel_linear_backward_weight_f32(f32(t, LINEAR_DW_DW), f32(t, LINEAR_DW_DY),
                                          f32(t, LINEAR_DW_X), dim(t, LINEAR_DW_M),
                                          dim(t, LINEAR_DW_N), dim(t, LINEAR_DW_K));
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
