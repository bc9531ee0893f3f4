/* exec/cuda/ops/latent.c - ops of latent attention, and of routing beside it, as exec/host/latent.c
 * has them. Attention with values of another length is this program's own kernels'. */
#include "kernels/cuda/latent.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/experts.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/rope.h"

/* From element `from` of an operand on. */
static gpointer from(const ExecTask *t, unsigned i, size_t elements) {
    return (char *)t->pointers[i] + elements * kernel_cuda_type_bytes(type_at(t, i));
}

static KernelCudaAttention attention_of(const ExecTask *t, unsigned q) {
    size_t heads = dim(t, 1), head_dim = dim(t, 4);
    return (KernelCudaAttention){.batch = dim(t, 0),
                                 .heads = heads,
                                 .kv_heads = dim(t, 2),
                                 .seq = dim(t, 3),
                                 .head_dim = head_dim,
                                 .q_stride = heads * head_dim,
                                 .k_stride = heads * head_dim,
                                 .v_stride = heads * dim(t, 6),
                                 .lse_stride = dim(t, 7),
                                 .scale = (float)attr(t, 0),
                                 .causal = dims(t)[8] != 0,
                                 .type = type_at(t, q),
                                 .v_dim = dim(t, 5),
                                 .v_head = dim(t, 6)};
}

static KernelCudaFault attention(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention shape = attention_of(t, 0);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_forward(k, p[3], p[4], p[0], p[1], from(t, 2, dim(t, 9)), NULL,
                                         &shape);
}

static KernelCudaFault attention_backward(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention shape = attention_of(t, 1);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_backward(k, p[6], p[7], p[8], NULL, p[0], p[1], p[2],
                                          from(t, 3, dim(t, 9)), NULL, p[4], f32(t, 5), &shape);
}

static KernelCudaNorm norm_of(const ExecTask *t, double eps) {
    return (KernelCudaNorm){dim(t, 0), dim(t, 1), (float)eps, type_at(t, 0), dim(t, 2)};
}

static KernelCudaFault turn_columns(const ExecTask *t, KernelCuda *k) {
    KernelCudaRope shape = {.tokens = dim(t, 0),
                            .heads = dim(t, 1),
                            .dim = dim(t, 2),
                            .seq = dim(t, 3),
                            .stride = dim(t, 1) * dim(t, 4),
                            .head = dim(t, 4)};
    return kernel_cuda_turn(k, t->pointers[2], from(t, 0, dim(t, 5)), t->pointers[1], &shape);
}

static KernelCudaFault join_heads(const ExecTask *t, KernelCuda *k) {
    KernelCudaPart own = {t->pointers[0], dim(t, 1), dim(t, 3), 1};
    KernelCudaPart shared = {t->pointers[1], dim(t, 2), dim(t, 2), dim(t, 4)};
    return kernel_cuda_join_columns(k, t->pointers[2], &own, &shared, dim(t, 0), type_at(t, 0));
}

KernelCudaFault exec_cuda_latent(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaNorm norm;
    switch ((ExecLatentOp)t->op->kind) {
    case PLAN_OP_LATENT_ATTENTION:
        return attention(t, k);
    case PLAN_OP_LATENT_ATTENTION_BACKWARD:
        return attention_backward(t, k);
    case PLAN_OP_NORM_COLUMNS: /* x w > y rstd */
        norm = norm_of(t, attr(t, 0));
        return kernel_cuda_rmsnorm_forward(k, NULL, p[2], p[3], p[0], NULL, p[1], &norm);
    case PLAN_OP_NORM_COLUMNS_BACKWARD: /* dy x rstd w > dx dw */
        norm = norm_of(t, 0);
        return kernel_cuda_rmsnorm_backward(k, p[4], p[5], NULL, p[0], p[1], p[2], p[3], &norm);
    case PLAN_OP_TURN_COLUMNS:
        return turn_columns(t, k);
    case PLAN_OP_JOIN_HEADS:
        return join_heads(t, k);
    case PLAN_OP_SUM_HEAD_COLUMNS:
        return kernel_cuda_sum_each(k, p[1], from(t, 0, dim(t, 4)), dim(t, 0), dim(t, 1), dim(t, 2),
                                    dim(t, 3), type_at(t, 0));
    case PLAN_OP_SIGMOID:
        return kernel_cuda_sigmoid(k, p[1], p[0], dim(t, 0), type_at(t, 0));
    case PLAN_OP_SIGMOID_BACKWARD:
        return kernel_cuda_sigmoid_backward(k, p[2], p[0], p[1], dim(t, 0), type_at(t, 0));
    case PLAN_OP_UNSET_COLUMNS:
        return kernel_cuda_unset_columns(k, p[1], p[0], dim(t, 0), dim(t, 1), dim(t, 2));
    }
    g_assert_not_reached();
}
