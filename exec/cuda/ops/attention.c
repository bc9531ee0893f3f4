/* exec/cuda/ops/attention.c - attention, of all heads by one kernel. */
#include "kernels/cuda/attention.h"
#include "exec/cuda/ops/operands.h"
#include "plan/op/work.h"

static KernelCudaAttention attention_of(const ExecTask *t, PlanSlotNumber q) {
    bool masked = plan_op_has_mask(t->context->role, t->op); /* which hides what comes later, too */
    int64_t causal = masked ? 0 : dims(t)[ATTENTION_CAUSAL];
    return (KernelCudaAttention){.batch = dim(t, ATTENTION_BATCH),
                                 .heads = dim(t, ATTENTION_HEADS),
                                 .kv_heads = dim(t, ATTENTION_KV_HEADS),
                                 .seq = dim(t, ATTENTION_SEQ),
                                 .head_dim = dim(t, ATTENTION_HEAD_DIM),
                                 .q_stride = dim(t, ATTENTION_Q_STRIDE),
                                 .k_stride = dim(t, ATTENTION_K_STRIDE),
                                 .v_stride = dim(t, ATTENTION_V_STRIDE),
                                 .lse_stride = dim(t, ATTENTION_LSE_STRIDE),
                                 .scale = (float)attr(t, ATTENTION_SCALE),
                                 .causal = causal != 0,
                                 .window = causal > 1 ? (size_t)causal : 0,
                                 .masked = masked,
                                 .alibi = (float)attr(t, ATTENTION_ALIBI),
                                 .ordered = t->op->kind == PLAN_OP_ATTENTION_BACKWARD_ORDERED,
                                 .type = type_at(t, q)};
}

static KernelCudaFault attention(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention shape = attention_of(t, ATTENTION_Q);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_forward(k, p[ATTENTION_O], f32(t, ATTENTION_LSE), p[ATTENTION_Q],
                                         p[ATTENTION_K], p[ATTENTION_V], p[ATTENTION_BIAS], &shape);
}

static KernelCudaFault attention_backward(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention shape = attention_of(t, ATTENTION_BACKWARD_Q);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_backward(
        k, p[ATTENTION_BACKWARD_DQ], p[ATTENTION_BACKWARD_DK], p[ATTENTION_BACKWARD_DV],
        p[ATTENTION_BACKWARD_DBIAS], p[ATTENTION_BACKWARD_DY], p[ATTENTION_BACKWARD_Q],
        p[ATTENTION_BACKWARD_K], p[ATTENTION_BACKWARD_V], p[ATTENTION_BACKWARD_BIAS],
        p[ATTENTION_BACKWARD_O], f32(t, ATTENTION_BACKWARD_LSE), &shape);
}

/* All three gradients in one array's rows. */
static KernelCudaFault attention_backward_qkv(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention shape = attention_of(t, ATTENTION_BACKWARD_QKV_Q);
    gpointer *p = t->pointers;
    size_t q_bytes = shape.heads * shape.head_dim * kernel_cuda_type_bytes(shape.type);
    size_t kv_bytes = shape.kv_heads * shape.head_dim * kernel_cuda_type_bytes(shape.type);
    char *dq = p[ATTENTION_BACKWARD_QKV_DQKV], *dk = dq + q_bytes, *dv = dk + kv_bytes;
    shape.gradient_stride = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
    return kernel_cuda_attention_backward(
        k, dq, dk, dv, NULL, p[ATTENTION_BACKWARD_QKV_DY], p[ATTENTION_BACKWARD_QKV_Q],
        p[ATTENTION_BACKWARD_QKV_K], p[ATTENTION_BACKWARD_QKV_V], NULL, p[ATTENTION_BACKWARD_QKV_O],
        f32(t, ATTENTION_BACKWARD_QKV_LSE), &shape);
}

KernelCudaFault exec_cuda_attention(const ExecTask *t, KernelCuda *k) {
    switch ((ExecAttentionOp)t->op->kind) {
    case PLAN_OP_ATTENTION:
        return attention(t, k);
    case PLAN_OP_ATTENTION_BACKWARD:
    case PLAN_OP_ATTENTION_BACKWARD_ORDERED:
        return attention_backward(t, k);
    case PLAN_OP_ATTENTION_BACKWARD_QKV:
        return attention_backward_qkv(t, k);
    }
    g_assert_not_reached();
}
