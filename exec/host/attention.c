/* exec/host/attention.c - attention, of all heads by one kernel. */
#include "exec/host/ops.h"

#include <string.h>

#include "exec/task.h"
#include "plan/op/attention.h"

typedef struct {
    KernelAttentionShape shape;
    size_t q_stride, k_stride, v_stride, lse_stride;
} Attention;

KernelAttentionShape exec_host_attention_shape(const ExecTask *t) {
    PlanAttention a = plan_attention_of(t->context->role, t->op);
    return (KernelAttentionShape){.batch = a.batch,
                                  .heads = a.heads,
                                  .kv_heads = a.kv_heads,
                                  .seq_q = a.q_rows,
                                  .seq_kv = a.kv_rows,
                                  .head_dim = a.head_dim,
                                  .v_dim = a.v_dim,
                                  .scale = (float)a.scale,
                                  .causal = a.causal,
                                  .window = a.window,
                                  .masked = a.masked,
                                  .alibi = (float)a.alibi};
}

static Attention attention_of(const ExecTask *t) {
    return (Attention){.shape = exec_host_attention_shape(t),
                       .q_stride = dim(t, ATTENTION_Q_STRIDE),
                       .k_stride = dim(t, ATTENTION_K_STRIDE),
                       .v_stride = dim(t, ATTENTION_V_STRIDE),
                       .lse_stride = dim(t, ATTENTION_LSE_STRIDE)};
}

static KernelConstView rows_view(const Attention *a, const float *data, size_t stride) {
    return (KernelConstView){data, a->shape.seq_q * stride, stride, a->shape.head_dim};
}

static void attention(const ExecTask *t) {
    Attention a = attention_of(t);
    kernel_attention_forward_f32(f32(t, ATTENTION_O), f32(t, ATTENTION_LSE), a.lse_stride,
                                 rows_view(&a, f32(t, ATTENTION_Q), a.q_stride),
                                 rows_view(&a, f32(t, ATTENTION_K), a.k_stride),
                                 rows_view(&a, f32(t, ATTENTION_V), a.v_stride),
                                 f32(t, ATTENTION_BIAS), &a.shape);
    /* Without dropout the state of its random numbers is never read; it is zero, not rubbish. */
    memset(t->pointers[ATTENTION_SEED], 0, operand(t, ATTENTION_SEED).elements * sizeof(int64_t));
    memset(t->pointers[ATTENTION_OFFSET], 0,
           operand(t, ATTENTION_OFFSET).elements * sizeof(int64_t));
}

static void attention_backward(const ExecTask *t) {
    Attention a = attention_of(t);
    const KernelAttentionShape *s = &a.shape;
    kernel_attention_backward_f32(
        kernel_view_bshd(f32(t, ATTENTION_BACKWARD_DQ), s->seq_q, s->heads, s->head_dim),
        kernel_view_bshd(f32(t, ATTENTION_BACKWARD_DK), s->seq_kv, s->kv_heads, s->head_dim),
        kernel_view_bshd(f32(t, ATTENTION_BACKWARD_DV), s->seq_kv, s->kv_heads, s->head_dim),
        f32(t, ATTENTION_BACKWARD_DBIAS), f32(t, ATTENTION_BACKWARD_DY),
        rows_view(&a, f32(t, ATTENTION_BACKWARD_Q), a.q_stride),
        rows_view(&a, f32(t, ATTENTION_BACKWARD_K), a.k_stride),
        rows_view(&a, f32(t, ATTENTION_BACKWARD_V), a.v_stride), f32(t, ATTENTION_BACKWARD_BIAS),
        f32(t, ATTENTION_BACKWARD_O), f32(t, ATTENTION_BACKWARD_LSE), a.lse_stride, s);
}

/* All three gradients in one array's rows. */
static void attention_backward_qkv(const ExecTask *t) {
    Attention a = attention_of(t);
    const KernelAttentionShape *s = &a.shape;
    size_t kv_row = s->kv_heads * s->head_dim, row = s->heads * s->head_dim + 2 * kv_row;
    float *dq = f32(t, ATTENTION_BACKWARD_QKV_DQKV), *dk = dq + row - 2 * kv_row, *dv = dk + kv_row;
    kernel_attention_backward_f32((KernelView){dq, s->seq_q * row, row, s->head_dim},
                                  (KernelView){dk, s->seq_kv * row, row, s->head_dim},
                                  (KernelView){dv, s->seq_kv * row, row, s->head_dim}, NULL,
                                  f32(t, ATTENTION_BACKWARD_QKV_DY),
                                  rows_view(&a, f32(t, ATTENTION_BACKWARD_QKV_Q), a.q_stride),
                                  rows_view(&a, f32(t, ATTENTION_BACKWARD_QKV_K), a.k_stride),
                                  rows_view(&a, f32(t, ATTENTION_BACKWARD_QKV_V), a.v_stride), NULL,
                                  f32(t, ATTENTION_BACKWARD_QKV_O),
                                  f32(t, ATTENTION_BACKWARD_QKV_LSE), a.lse_stride, s);
}

void exec_host_attention(const ExecTask *t) {
    switch ((ExecAttentionOp)t->op->kind) {
    case PLAN_OP_ATTENTION:
        attention(t);
        return;
    case PLAN_OP_ATTENTION_BACKWARD:
    case PLAN_OP_ATTENTION_BACKWARD_ORDERED: /* as it always is */
        attention_backward(t);
        return;
    case PLAN_OP_ATTENTION_BACKWARD_QKV:
        attention_backward_qkv(t);
        return;
    }
    g_assert_not_reached();
}
