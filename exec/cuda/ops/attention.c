/* exec/cuda/ops/attention.c - attention, of all heads by one kernel. */
#include "plan/op/attention.h"
#include "exec/cuda/ops/operands.h"

KernelCudaAttention exec_cuda_attention_shape(const ExecTask *t, PlanSlotNumber q) {
    PlanAttention a = plan_attention_of(t->context->role, t->op);
    return (KernelCudaAttention){.batch = a.batch,
                                 .heads = a.heads,
                                 .kv_heads = a.kv_heads,
                                 .seq = a.q_rows,
                                 .head_dim = a.head_dim,
                                 .scale = (float)a.scale,
                                 .causal = a.causal,
                                 .window = a.window,
                                 .masked = a.masked,
                                 .alibi = (float)a.alibi,
                                 .type = type_at(t, q)};
}

static KernelCudaAttention attention_of(const ExecTask *t, PlanSlotNumber q) {
    KernelCudaAttention shape = exec_cuda_attention_shape(t, q);
    shape.q_stride = dim(t, ATTENTION_Q_STRIDE);
    shape.k_stride = dim(t, ATTENTION_K_STRIDE);
    shape.v_stride = dim(t, ATTENTION_V_STRIDE);
    shape.lse_stride = dim(t, ATTENTION_LSE_STRIDE);
    shape.ordered = t->op->kind == PLAN_OP_ATTENTION_BACKWARD_ORDERED;
    return shape;
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
