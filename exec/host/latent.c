/* exec/host/latent.c - ops of latent attention, and of routing beside it. */
#include "exec/host/ops.h"

#include <math.h>
#include <string.h>

#include "exec/error.h"
#include "exec/task.h"
#include "kernels/host/attention.h"
#include "kernels/host/copy.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/experts.h"
#include "kernels/host/norm.h"
#include "kernels/host/rope.h"

/* ---- attention ------------------------------------------------------------------------------ */

static KernelAttentionShape shape_of(const ExecTask *t) {
    return (KernelAttentionShape){.batch = dim(t, 0),
                                  .heads = dim(t, 1),
                                  .kv_heads = dim(t, 2),
                                  .seq_q = dim(t, 3),
                                  .seq_kv = dim(t, 3),
                                  .head_dim = dim(t, 4),
                                  .v_dim = dim(t, 5),
                                  .scale = (float)attr(t, 0),
                                  .causal = dims(t)[8] != 0};
}

static KernelConstView keys_of(const ExecTask *t, unsigned i) {
    size_t row = dim(t, 1) * dim(t, 4);
    return (KernelConstView){f32(t, i), dim(t, 3) * row, row, dim(t, 4)};
}

static KernelConstView values_of(const ExecTask *t, unsigned i) {
    size_t row = dim(t, 1) * dim(t, 6);
    return (KernelConstView){f32(t, i) + dim(t, 9), dim(t, 3) * row, row, dim(t, 6)};
}

static KernelView gradient_of(const ExecTask *t, unsigned i, size_t head_dim) {
    return kernel_view_bshd(f32(t, i), dim(t, 3), dim(t, 1), head_dim);
}

static void attend(const ExecTask *t) {
    KernelAttentionShape shape = shape_of(t);
    kernel_attention_forward_f32(f32(t, 3), f32(t, 4), dim(t, 7), keys_of(t, 0), keys_of(t, 1),
                                 values_of(t, 2), NULL, &shape);
    memset(t->pointers[5], 0, operand(t, 5).elements * sizeof(int64_t));
    memset(t->pointers[6], 0, operand(t, 6).elements * sizeof(int64_t));
}

static void attend_backward(const ExecTask *t) {
    KernelAttentionShape shape = shape_of(t);
    kernel_attention_backward_f32(gradient_of(t, 6, dim(t, 4)), gradient_of(t, 7, dim(t, 4)),
                                  gradient_of(t, 8, dim(t, 5)), NULL, f32(t, 0), keys_of(t, 1),
                                  keys_of(t, 2), values_of(t, 3), NULL, f32(t, 4), f32(t, 5),
                                  dim(t, 7), &shape);
}

/* ---- columns of rows ------------------------------------------------------------------------ */

/* Row by row, where they lie. */
static void norm_columns(const ExecTask *t) {
    size_t width = dim(t, 1);
    for (size_t r = 0; r < dim(t, 0); r++) {
        kernel_rmsnorm_forward_f32(f32(t, 2) + r * width, f32(t, 3) + r, f32(t, 0) + r * dim(t, 2),
                                   f32(t, 1), 1, width, (float)attr(t, 0));
    }
}

static void norm_columns_backward(const ExecTask *t) {
    size_t rows = dim(t, 0), width = dim(t, 1);
    float *dense = g_new(float, rows *width);
    kernel_copy_2d_bytes(dense, width * sizeof(float), f32(t, 1), dim(t, 2) * sizeof(float), rows,
                         width * sizeof(float));
    kernel_rmsnorm_backward_f32(f32(t, 4), f32(t, 5), f32(t, 0), dense, f32(t, 2), f32(t, 3), rows,
                                width);
    g_free(dense);
}

static void turn_columns(const ExecTask *t) {
    size_t heads = dim(t, 1), n = dim(t, 2), seq = dim(t, 3), row = dim(t, 4);
    KernelView y = {f32(t, 2), seq * heads * n, heads * n, n};
    KernelConstView x = {f32(t, 0) + dim(t, 5), seq * heads * row, heads * row, row};
    kernel_turn_f32(y, x, f32(t, 1), dim(t, 0) / seq, heads, seq, n);
}

static void join_heads(const ExecTask *t) {
    size_t rows = dim(t, 0), a = dim(t, 1), b = dim(t, 2), each = dim(t, 4);
    kernel_copy_2d_bytes(f32(t, 2), (a + b) * sizeof(float), f32(t, 0), dim(t, 3) * sizeof(float),
                         rows, a * sizeof(float));
    for (size_t r = 0; r < rows; r++) {
        kernel_copy_f32(f32(t, 2) + r * (a + b) + a, f32(t, 1) + r / each * b, b);
    }
}

/* ---- routing -------------------------------------------------------------------------------- */

static void sigmoid(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        f32(t, 1)[i] = 1.0f / (1.0f + expf(-f32(t, 0)[i]));
    }
}

static void sigmoid_backward(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        float y = f32(t, 1)[i];
        f32(t, 2)[i] = f32(t, 0)[i] * y * (1.0f - y);
    }
}

static bool unset_columns(const ExecTask *t, GError **error) {
    const int64_t *index = t->pointers[0];
    uint8_t *mask = t->pointers[1];
    size_t cols = dim(t, 1), k = dim(t, 2);
    for (size_t i = 0; i < dim(t, 0) * k; i++) {
        if (index[i] < 0 || (size_t)index[i] >= cols) {
            g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED,
                        "a group of experts has a number outside of them");
            return false;
        }
        mask[i / k * cols + (size_t)index[i]] = 0;
    }
    return true;
}

/* ---- all ------------------------------------------------------------------------------------ */

bool exec_host_latent(const ExecTask *t, GError **error) {
    switch ((ExecLatentOp)t->op->kind) {
    case PLAN_OP_LATENT_ATTENTION:
        attend(t);
        return true;
    case PLAN_OP_LATENT_ATTENTION_BACKWARD:
        attend_backward(t);
        return true;
    case PLAN_OP_NORM_COLUMNS:
        norm_columns(t);
        return true;
    case PLAN_OP_NORM_COLUMNS_BACKWARD:
        norm_columns_backward(t);
        return true;
    case PLAN_OP_TURN_COLUMNS:
        turn_columns(t);
        return true;
    case PLAN_OP_JOIN_HEADS:
        join_heads(t);
        return true;
    case PLAN_OP_SUM_HEAD_COLUMNS:
        kernel_sum_each_f32(f32(t, 1), f32(t, 0) + dim(t, 4), dim(t, 0), dim(t, 1), dim(t, 2),
                            dim(t, 3));
        return true;
    case PLAN_OP_SIGMOID:
        sigmoid(t);
        return true;
    case PLAN_OP_SIGMOID_BACKWARD:
        sigmoid_backward(t);
        return true;
    case PLAN_OP_UNSET_COLUMNS:
        return unset_columns(t, error);
    }
    g_assert_not_reached();
}
