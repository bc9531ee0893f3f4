/* exec/cuda/ops/attention.c - attention, of all heads by one kernel. */
#include "kernels/cuda/attention.h"
#include "exec/cuda/ops/operands.h"
#include "plan/op/work.h"

static KernelCudaAttention attention_of(const ExecTask *t, unsigned q) {
    bool masked = plan_op_has_mask(t->context->role, t->op); /* which hides what comes later, too */
    int64_t causal = masked ? 0 : dims(t)[8];
    return (KernelCudaAttention){.batch = dim(t, 0),
                                 .heads = dim(t, 1),
                                 .kv_heads = dim(t, 2),
                                 .seq = dim(t, 3),
                                 .head_dim = dim(t, 4),
                                 .q_stride = dim(t, 5),
                                 .k_stride = dim(t, 6),
                                 .v_stride = dim(t, 10),
                                 .lse_stride = dim(t, 7),
                                 .scale = (float)attr(t, 0),
                                 .causal = causal != 0,
                                 .window = causal > 1 ? (size_t)causal : 0,
                                 .masked = masked,
                                 .alibi = (float)attr(t, 2),
                                 .ordered = t->op->kind == PLAN_OP_ATTENTION_BACKWARD_ORDERED,
                                 .type = type_at(t, q)};
}

static KernelCudaFault attention(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention shape = attention_of(t, 0);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_forward(k, p[4], f32(t, 5), p[0], p[1], p[2], p[3], &shape);
}

static KernelCudaFault attention_backward(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention shape = attention_of(t, 1);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_backward(k, p[7], p[8], p[9], p[10], p[0], p[1], p[2], p[3], p[4],
                                          p[5], f32(t, 6), &shape);
}

/* All three gradients in one array's rows. */
static KernelCudaFault attention_backward_qkv(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention shape = attention_of(t, 1);
    gpointer *p = t->pointers;
    size_t q_bytes = shape.heads * shape.head_dim * kernel_cuda_type_bytes(shape.type);
    size_t kv_bytes = shape.kv_heads * shape.head_dim * kernel_cuda_type_bytes(shape.type);
    char *dq = p[6], *dk = dq + q_bytes, *dv = dk + kv_bytes;
    shape.gradient_stride = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
    return kernel_cuda_attention_backward(k, dq, dk, dv, NULL, p[0], p[1], p[2], p[3], NULL, p[4],
                                          f32(t, 5), &shape);
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
