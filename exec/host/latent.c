/* exec/host/latent.c - ops of latent attention, and of routing beside it. */
#include "exec/host/ops.h"

#include <math.h>
#include <string.h>

#include "exec/error.h"
#include "exec/task.h"
#include "kernels/host/attention/rope.h"
#include "kernels/host/copy.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/experts.h"
#include "kernels/host/rows/norm.h"

/* ---- attention ------------------------------------------------------------------------------ */

static KernelConstView keys_of(const ExecTask *t, PlanSlotNumber i) {
    size_t row = dim(t, LATENT_ATTENTION_HEADS) * dim(t, LATENT_ATTENTION_HEAD_DIM);
    return (KernelConstView){f32(t, i), dim(t, LATENT_ATTENTION_SEQ) * row, row,
                             dim(t, LATENT_ATTENTION_HEAD_DIM)};
}

static KernelConstView values_of(const ExecTask *t, PlanSlotNumber i) {
    size_t row = dim(t, LATENT_ATTENTION_HEADS) * dim(t, LATENT_ATTENTION_V_ROW);
    return (KernelConstView){f32(t, i) + dim(t, LATENT_ATTENTION_FROM),
                             dim(t, LATENT_ATTENTION_SEQ) * row, row,
                             dim(t, LATENT_ATTENTION_V_ROW)};
}

static KernelView gradient_of(const ExecTask *t, PlanSlotNumber i, size_t head_dim) {
    return kernel_view_bshd(f32(t, i), dim(t, LATENT_ATTENTION_BACKWARD_SEQ),
                            dim(t, LATENT_ATTENTION_BACKWARD_HEADS), head_dim);
}

static void attend(const ExecTask *t) {
    KernelAttentionShape shape = exec_host_attention_shape(t);
    kernel_attention_forward_f32(f32(t, LATENT_ATTENTION_O), f32(t, LATENT_ATTENTION_LSE),
                                 dim(t, LATENT_ATTENTION_LSE_STRIDE),
                                 keys_of(t, LATENT_ATTENTION_Q), keys_of(t, LATENT_ATTENTION_K),
                                 values_of(t, LATENT_ATTENTION_V), NULL, &shape);
    memset(t->pointers[LATENT_ATTENTION_SEED], 0,
           operand(t, LATENT_ATTENTION_SEED).elements * sizeof(int64_t));
    memset(t->pointers[LATENT_ATTENTION_OFFSET], 0,
           operand(t, LATENT_ATTENTION_OFFSET).elements * sizeof(int64_t));
}

static void attend_backward(const ExecTask *t) {
    KernelAttentionShape shape = exec_host_attention_shape(t);
    kernel_attention_backward_f32(
        gradient_of(t, LATENT_ATTENTION_BACKWARD_DQ, dim(t, LATENT_ATTENTION_BACKWARD_HEAD_DIM)),
        gradient_of(t, LATENT_ATTENTION_BACKWARD_DK, dim(t, LATENT_ATTENTION_BACKWARD_HEAD_DIM)),
        gradient_of(t, LATENT_ATTENTION_BACKWARD_DV, dim(t, LATENT_ATTENTION_BACKWARD_V_DIM)), NULL,
        f32(t, LATENT_ATTENTION_BACKWARD_DY), keys_of(t, LATENT_ATTENTION_BACKWARD_Q),
        keys_of(t, LATENT_ATTENTION_BACKWARD_K), values_of(t, LATENT_ATTENTION_BACKWARD_V), NULL,
        f32(t, LATENT_ATTENTION_BACKWARD_O), f32(t, LATENT_ATTENTION_BACKWARD_LSE),
        dim(t, LATENT_ATTENTION_BACKWARD_LSE_STRIDE), &shape);
}

/* ---- columns of rows ------------------------------------------------------------------------ */

/* Row by row, where they lie. */
static void norm_columns(const ExecTask *t) {
    size_t width = dim(t, NORM_COLUMNS_WIDTH);
    for (size_t r = 0; r < dim(t, NORM_COLUMNS_ROWS); r++) {
        kernel_rmsnorm_forward_f32(
            f32(t, NORM_COLUMNS_Y) + r * width, f32(t, NORM_COLUMNS_RSTD) + r,
            f32(t, NORM_COLUMNS_X) + r * dim(t, NORM_COLUMNS_ROW), f32(t, NORM_COLUMNS_W), 1, width,
            (float)attr(t, NORM_COLUMNS_EPS));
    }
}

static void norm_columns_backward(const ExecTask *t) {
    size_t rows = dim(t, NORM_COLUMNS_BACKWARD_ROWS), width = dim(t, NORM_COLUMNS_BACKWARD_WIDTH);
    float *dense = g_new(float, rows *width);
    kernel_copy_2d_bytes(dense, width * sizeof(float), f32(t, NORM_COLUMNS_BACKWARD_X),
                         dim(t, NORM_COLUMNS_BACKWARD_ROW) * sizeof(float), rows,
                         width * sizeof(float));
    kernel_rmsnorm_backward_f32(f32(t, NORM_COLUMNS_BACKWARD_DX), f32(t, NORM_COLUMNS_BACKWARD_DW),
                                f32(t, NORM_COLUMNS_BACKWARD_DY), dense,
                                f32(t, NORM_COLUMNS_BACKWARD_RSTD), f32(t, NORM_COLUMNS_BACKWARD_W),
                                rows, width);
    g_free(dense);
}

static void turn_columns(const ExecTask *t) {
    size_t heads = dim(t, TURN_COLUMNS_HEADS), n = dim(t, TURN_COLUMNS_DIM),
           seq = dim(t, TURN_COLUMNS_SEQ), row = dim(t, TURN_COLUMNS_ROW);
    KernelView y = {f32(t, TURN_COLUMNS_Y), seq * heads * n, heads * n, n};
    KernelConstView x = {f32(t, TURN_COLUMNS_X) + dim(t, TURN_COLUMNS_FROM), seq * heads * row,
                         heads * row, row};
    kernel_turn_f32(y, x, f32(t, TURN_COLUMNS_TURNS), dim(t, TURN_COLUMNS_TOKENS) / seq, heads, seq,
                    n);
}

static void join_heads(const ExecTask *t) {
    size_t rows = dim(t, JOIN_HEADS_ROWS), a = dim(t, JOIN_HEADS_A_COLS),
           b = dim(t, JOIN_HEADS_B_COLS), each = dim(t, JOIN_HEADS_EACH);
    kernel_copy_2d_bytes(f32(t, JOIN_HEADS_Y), (a + b) * sizeof(float), f32(t, JOIN_HEADS_A),
                         dim(t, JOIN_HEADS_ROW) * sizeof(float), rows, a * sizeof(float));
    for (size_t r = 0; r < rows; r++) {
        kernel_copy_f32(f32(t, JOIN_HEADS_Y) + r * (a + b) + a, f32(t, JOIN_HEADS_B) + r / each * b,
                        b);
    }
}

/* ---- routing -------------------------------------------------------------------------------- */

static void sigmoid(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, SIGMOID_N); i++) {
        f32(t, SIGMOID_Y)[i] = 1.0f / (1.0f + expf(-f32(t, SIGMOID_X)[i]));
    }
}

static void sigmoid_backward(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, SIGMOID_BACKWARD_N); i++) {
        float y = f32(t, SIGMOID_BACKWARD_Y)[i];
        f32(t, SIGMOID_BACKWARD_DX)[i] = f32(t, SIGMOID_BACKWARD_DY)[i] * y * (1.0f - y);
    }
}

static bool unset_columns(const ExecTask *t, GError **error) {
    const int64_t *index = t->pointers[UNSET_COLUMNS_INDEX];
    uint8_t *mask = t->pointers[UNSET_COLUMNS_MASK];
    size_t cols = dim(t, UNSET_COLUMNS_COLS), k = dim(t, UNSET_COLUMNS_K);
    for (size_t i = 0; i < dim(t, UNSET_COLUMNS_ROWS) * k; i++) {
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
        kernel_sum_each_f32(f32(t, SUM_HEAD_COLUMNS_Y),
                            f32(t, SUM_HEAD_COLUMNS_X) + dim(t, SUM_HEAD_COLUMNS_FROM),
                            dim(t, SUM_HEAD_COLUMNS_ROWS), dim(t, SUM_HEAD_COLUMNS_EACH),
                            dim(t, SUM_HEAD_COLUMNS_COLS), dim(t, SUM_HEAD_COLUMNS_ROW));
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
