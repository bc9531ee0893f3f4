/* exec/cuda/ops/latent.c - ops of latent attention, and of routing beside it, as exec/host/latent.c
 * has them. Attention with values of another length is this program's own kernels'. */
#include "kernels/cuda/experts/latent.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/attention/columns.h"
#include "kernels/cuda/attention/rope.h"
#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/rows/norm.h"

/* From element `from` of an operand on. */
static gpointer from(const ExecTask *t, PlanSlotNumber i, size_t elements) {
    return (char *)t->pointers[i] + elements * kernel_cuda_type_bytes(type_at(t, i));
}

static KernelCudaAttention attention_of(const ExecTask *t, PlanSlotNumber q) {
    KernelCudaAttention shape = exec_cuda_attention_shape(t, q);
    shape.q_stride = shape.k_stride = shape.heads * shape.head_dim;
    shape.v_dim = dim(t, LATENT_ATTENTION_V_DIM);
    shape.v_head = dim(t, LATENT_ATTENTION_V_ROW);
    shape.v_stride = shape.heads * shape.v_head;
    shape.lse_stride = dim(t, LATENT_ATTENTION_LSE_STRIDE);
    return shape;
}

static KernelCudaFault attention(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention shape = attention_of(t, LATENT_ATTENTION_Q);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_forward(k, p[LATENT_ATTENTION_O], p[LATENT_ATTENTION_LSE],
                                         p[LATENT_ATTENTION_Q], p[LATENT_ATTENTION_K],
                                         from(t, LATENT_ATTENTION_V, dim(t, LATENT_ATTENTION_FROM)),
                                         NULL, &shape);
}

static KernelCudaFault attention_backward(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention shape = attention_of(t, LATENT_ATTENTION_BACKWARD_Q);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_backward(
        k, p[LATENT_ATTENTION_BACKWARD_DQ], p[LATENT_ATTENTION_BACKWARD_DK],
        p[LATENT_ATTENTION_BACKWARD_DV], NULL, p[LATENT_ATTENTION_BACKWARD_DY],
        p[LATENT_ATTENTION_BACKWARD_Q], p[LATENT_ATTENTION_BACKWARD_K],
        from(t, LATENT_ATTENTION_BACKWARD_V, dim(t, LATENT_ATTENTION_BACKWARD_FROM)), NULL,
        p[LATENT_ATTENTION_BACKWARD_O], f32(t, LATENT_ATTENTION_BACKWARD_LSE), &shape);
}

static KernelCudaNorm norm_of(const ExecTask *t, double eps) {
    return (KernelCudaNorm){dim(t, NORM_COLUMNS_ROWS), dim(t, NORM_COLUMNS_WIDTH), (float)eps,
                            type_at(t, NORM_COLUMNS_X), dim(t, NORM_COLUMNS_ROW)};
}

static KernelCudaFault turn_columns(const ExecTask *t, KernelCuda *k) {
    KernelCudaRope shape = {.tokens = dim(t, TURN_COLUMNS_TOKENS),
                            .heads = dim(t, TURN_COLUMNS_HEADS),
                            .dim = dim(t, TURN_COLUMNS_DIM),
                            .seq = dim(t, TURN_COLUMNS_SEQ),
                            .stride = dim(t, TURN_COLUMNS_HEADS) * dim(t, TURN_COLUMNS_ROW),
                            .head = dim(t, TURN_COLUMNS_ROW)};
    return kernel_cuda_turn(k, t->pointers[TURN_COLUMNS_Y],
                            from(t, TURN_COLUMNS_X, dim(t, TURN_COLUMNS_FROM)),
                            t->pointers[TURN_COLUMNS_TURNS], &shape);
}

static KernelCudaFault join_heads(const ExecTask *t, KernelCuda *k) {
    KernelCudaPart own = {t->pointers[JOIN_HEADS_A], dim(t, JOIN_HEADS_A_COLS),
                          dim(t, JOIN_HEADS_ROW), 1};
    KernelCudaPart shared = {t->pointers[JOIN_HEADS_B], dim(t, JOIN_HEADS_B_COLS),
                             dim(t, JOIN_HEADS_B_COLS), dim(t, JOIN_HEADS_EACH)};
    return kernel_cuda_join_columns(k, t->pointers[JOIN_HEADS_Y], &own, &shared,
                                    type_at(t, JOIN_HEADS_B), dim(t, JOIN_HEADS_ROWS),
                                    type_at(t, JOIN_HEADS_A));
}

KernelCudaFault exec_cuda_latent(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaNorm norm;
    switch ((ExecLatentOp)t->op->kind) {
    case PLAN_OP_LATENT_ATTENTION:
        return attention(t, k);
    case PLAN_OP_LATENT_ATTENTION_BACKWARD:
        return attention_backward(t, k);
    case PLAN_OP_NORM_COLUMNS:
        norm = norm_of(t, attr(t, NORM_COLUMNS_EPS));
        return kernel_cuda_rmsnorm_forward(k, NULL, p[NORM_COLUMNS_Y], p[NORM_COLUMNS_RSTD],
                                           p[NORM_COLUMNS_X], NULL, p[NORM_COLUMNS_W], &norm);
    case PLAN_OP_NORM_COLUMNS_BACKWARD:
        norm = norm_of(t, 0);
        return kernel_cuda_rmsnorm_backward(
            k, p[NORM_COLUMNS_BACKWARD_DX], p[NORM_COLUMNS_BACKWARD_DW], NULL,
            p[NORM_COLUMNS_BACKWARD_DY], p[NORM_COLUMNS_BACKWARD_X], p[NORM_COLUMNS_BACKWARD_RSTD],
            p[NORM_COLUMNS_BACKWARD_W], &norm);
    case PLAN_OP_TURN_COLUMNS:
        return turn_columns(t, k);
    case PLAN_OP_JOIN_HEADS:
        return join_heads(t, k);
    case PLAN_OP_SUM_HEAD_COLUMNS:
        return kernel_cuda_sum_each(k, p[SUM_HEAD_COLUMNS_Y],
                                    from(t, SUM_HEAD_COLUMNS_X, dim(t, SUM_HEAD_COLUMNS_FROM)),
                                    dim(t, SUM_HEAD_COLUMNS_ROWS), dim(t, SUM_HEAD_COLUMNS_EACH),
                                    dim(t, SUM_HEAD_COLUMNS_COLS), dim(t, SUM_HEAD_COLUMNS_ROW),
                                    type_at(t, SUM_HEAD_COLUMNS_X));
    case PLAN_OP_SIGMOID:
        return kernel_cuda_sigmoid(k, p[SIGMOID_Y], p[SIGMOID_X], dim(t, SIGMOID_N),
                                   type_at(t, SIGMOID_X));
    case PLAN_OP_SIGMOID_BACKWARD:
        return kernel_cuda_sigmoid_backward(k, p[SIGMOID_BACKWARD_DX], p[SIGMOID_BACKWARD_DY],
                                            p[SIGMOID_BACKWARD_Y], dim(t, SIGMOID_BACKWARD_N),
                                            type_at(t, SIGMOID_BACKWARD_DY));
    case PLAN_OP_UNSET_COLUMNS:
        return kernel_cuda_unset_columns(k, p[UNSET_COLUMNS_MASK], p[UNSET_COLUMNS_INDEX],
                                         dim(t, UNSET_COLUMNS_ROWS), dim(t, UNSET_COLUMNS_COLS),
                                         dim(t, UNSET_COLUMNS_K));
    }
    g_assert_not_reached();
}
