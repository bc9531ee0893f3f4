/* exec/host/attention.c - attention, of all heads by one kernel. */
#include "exec/host/ops.h"

#include <string.h>

#include "exec/task.h"
#include "kernels/host/attention.h"
#include "plan/op/work.h"

typedef struct {
    KernelAttentionShape shape;
    size_t q_stride, k_stride, v_stride, lse_stride;
} Attention;

static Attention attention_of(const ExecTask *t) {
    bool masked = plan_op_has_mask(t->context->role, t->op); /* which hides what comes later, too */
    int64_t causal = masked ? 0 : dims(t)[8];
    return (Attention){.shape = {.batch = dim(t, 0),
                                 .heads = dim(t, 1),
                                 .kv_heads = dim(t, 2),
                                 .seq_q = dim(t, 3),
                                 .seq_kv = dim(t, 3),
                                 .head_dim = dim(t, 4),
                                 .scale = (float)attr(t, 0),
                                 .causal = causal != 0,
                                 .window = causal > 1 ? (size_t)causal : 0,
                                 .masked = masked,
                                 .alibi = (float)attr(t, 2)},
                       .q_stride = dim(t, 5),
                       .k_stride = dim(t, 6),
                       .v_stride = dim(t, 10),
                       .lse_stride = dim(t, 7)};
}

static KernelConstView rows_view(const Attention *a, const float *data, size_t stride) {
    return (KernelConstView){data, a->shape.seq_q * stride, stride, a->shape.head_dim};
}

static void attention(const ExecTask *t) {
    Attention a = attention_of(t);
    kernel_attention_forward_f32(f32(t, 4), f32(t, 5), a.lse_stride,
                                 rows_view(&a, f32(t, 0), a.q_stride),
                                 rows_view(&a, f32(t, 1), a.k_stride),
                                 rows_view(&a, f32(t, 2), a.v_stride), f32(t, 3), &a.shape);
    /* Without dropout the state of its random numbers is never read; it is zero, not rubbish. */
    memset(t->pointers[6], 0, operand(t, 6).elements * sizeof(int64_t));
    memset(t->pointers[7], 0, operand(t, 7).elements * sizeof(int64_t));
}

static void attention_backward(const ExecTask *t) {
    Attention a = attention_of(t);
    const KernelAttentionShape *s = &a.shape;
    kernel_attention_backward_f32(
        kernel_view_bshd(f32(t, 7), s->seq_q, s->heads, s->head_dim),
        kernel_view_bshd(f32(t, 8), s->seq_kv, s->kv_heads, s->head_dim),
        kernel_view_bshd(f32(t, 9), s->seq_kv, s->kv_heads, s->head_dim), f32(t, 10), f32(t, 0),
        rows_view(&a, f32(t, 1), a.q_stride), rows_view(&a, f32(t, 2), a.k_stride),
        rows_view(&a, f32(t, 3), a.v_stride), f32(t, 4), f32(t, 5), f32(t, 6), a.lse_stride, s);
}

/* All three gradients in one array's rows. */
static void attention_backward_qkv(const ExecTask *t) {
    Attention a = attention_of(t);
    const KernelAttentionShape *s = &a.shape;
    size_t kv_row = s->kv_heads * s->head_dim, row = s->heads * s->head_dim + 2 * kv_row;
    float *dq = f32(t, 6), *dk = dq + row - 2 * kv_row, *dv = dk + kv_row;
    kernel_attention_backward_f32(
        (KernelView){dq, s->seq_q * row, row, s->head_dim},
        (KernelView){dk, s->seq_kv * row, row, s->head_dim},
        (KernelView){dv, s->seq_kv * row, row, s->head_dim}, NULL, f32(t, 0),
        rows_view(&a, f32(t, 1), a.q_stride), rows_view(&a, f32(t, 2), a.k_stride),
        rows_view(&a, f32(t, 3), a.v_stride), NULL, f32(t, 4), f32(t, 5), a.lse_stride, s);
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
