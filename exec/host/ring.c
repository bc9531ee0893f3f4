/* exec/host/ring.c - what ranks do that share sequences: attention of some rows to some keys, and
 * what merges it.
 */
#include "exec/host/ops.h"

#include <math.h>
#include <string.h>

#include "exec/task.h"
#include "kernels/host/attention.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/rope.h"

/* ---- attention ------------------------------------------------------------------------------ */

/* Of one sequence: operands have all its rows, of which the last q_rows and first kv_rows count. */
typedef struct {
    KernelAttentionShape shape;
    size_t seq, q_row;                /* numbers of a token in q, o and their gradients */
    size_t q_all, kv_all, q_skipped;  /* numbers of a sequence; those before its rows of queries */
    size_t q_part, kv_part, lse_part; /* of what is worked out of it */
} Part;

static Part part_of(const ExecTask *t) {
    KernelAttentionShape shape = {.batch = 1,
                                  .heads = dim(t, 1),
                                  .kv_heads = dim(t, 2),
                                  .seq_q = dim(t, 5),
                                  .seq_kv = dim(t, 6),
                                  .head_dim = dim(t, 4),
                                  .scale = (float)attr(t, 0),
                                  .causal = dims(t)[7] != 0};
    size_t seq = dim(t, 3), q_row = shape.heads * shape.head_dim;
    size_t kv_row = shape.kv_heads * shape.head_dim;
    return (Part){.shape = shape,
                  .seq = seq,
                  .q_row = q_row,
                  .q_all = seq * q_row,
                  .kv_all = seq * kv_row,
                  .q_skipped = (seq - shape.seq_q) * q_row,
                  .q_part = shape.seq_q * q_row,
                  .kv_part = shape.seq_kv * kv_row,
                  .lse_part = shape.heads * shape.seq_q};
}

static KernelConstView queries(const Part *p, const float *q, size_t sequence) {
    return (KernelConstView){q + sequence * p->q_all + p->q_skipped, 0, p->q_row,
                             p->shape.head_dim};
}

static KernelConstView keys(const Part *p, const float *k, size_t sequence) {
    return (KernelConstView){k + sequence * p->kv_all, 0, p->shape.head_dim,
                             p->seq * p->shape.head_dim};
}

static void attend(const ExecTask *t) {
    Part p = part_of(t);
    for (size_t b = 0; b < dim(t, 0); b++) {
        kernel_attention_forward_f32(f32(t, 3) + b * p.q_part, f32(t, 4) + b * p.lse_part,
                                     p.shape.seq_q, queries(&p, f32(t, 0), b),
                                     keys(&p, f32(t, 1), b), keys(&p, f32(t, 2), b), NULL,
                                     &p.shape);
    }
    /* Nothing is dropped, so nobody reads the state of random numbers; it is zero, not rubbish. */
    memset(t->pointers[5], 0, operand(t, 5).elements * sizeof(int64_t));
    memset(t->pointers[6], 0, operand(t, 6).elements * sizeof(int64_t));
}

static KernelView key_gradients(const Part *p, float *dk, size_t sequence) {
    return (KernelView){dk + sequence * p->kv_part, 0, p->shape.head_dim,
                        p->shape.seq_kv * p->shape.head_dim};
}

static void attend_backward(const ExecTask *t) {
    Part p = part_of(t);
    for (size_t b = 0; b < dim(t, 0); b++) {
        size_t first = b * p.q_all + p.q_skipped;
        KernelView dq = {f32(t, 6) + b * p.q_part, 0, p.q_row, p.shape.head_dim};
        kernel_attention_backward_f32(dq, key_gradients(&p, f32(t, 7), b),
                                      key_gradients(&p, f32(t, 8), b), NULL, f32(t, 0) + first,
                                      queries(&p, f32(t, 1), b), keys(&p, f32(t, 2), b),
                                      keys(&p, f32(t, 3), b), NULL, f32(t, 4) + first,
                                      f32(t, 5) + b * p.lse_part, p.shape.seq_q, &p.shape);
    }
}

/* ---- rows of [outer, rows, inner] ----------------------------------------------------------- */

static void sub_rows(const ExecTask *t) {
    size_t inner = dim(t, 1), a_rows = dim(t, 2), b_rows = dim(t, 3), n = dim(t, 4) * inner;
    for (size_t o = 0; o < dim(t, 0); o++) {
        const float *a = f32(t, 0) + (o + 1) * a_rows * inner - n;
        const float *b = f32(t, 1) + (o + 1) * b_rows * inner - n;
        for (size_t i = 0; i < n; i++) {
            f32(t, 2)[o * n + i] = a[i] - b[i];
        }
    }
}

static void put_rows(const ExecTask *t) {
    size_t inner = dim(t, 1), all = dim(t, 2) * inner, n = dim(t, 3) * inner;
    for (size_t o = 0; o < dim(t, 0); o++) {
        float *y = f32(t, 2) + o * all;
        kernel_copy_f32(y, f32(t, 0) + o * all, all - n);
        kernel_copy_f32(y + all - n, f32(t, 1) + o * n, n);
    }
}

static void add_rows(const ExecTask *t) {
    size_t inner = dim(t, 1), n = dim(t, 2) * inner, all = dim(t, 3) * inner;
    for (size_t o = 0; o < dim(t, 0); o++) {
        kernel_add_inplace_f32(f32(t, 1) + o * all + dim(t, 4) * inner, f32(t, 0) + o * n, n);
    }
}

/* [batch, heads, seq, dim] as [batch, seq, heads, dim]; who launches it rounds what comes out. */
static void cast_heads(const ExecTask *t) {
    size_t heads = dim(t, 1), seq = dim(t, 2), n = dim(t, 3);
    for (size_t row = 0; row < dim(t, 0) * heads * seq; row++) {
        size_t token = row % seq, head = row / seq % heads, sequence = row / seq / heads;
        kernel_copy_f32(f32(t, 1) + ((sequence * seq + token) * heads + head) * n,
                        f32(t, 0) + row * n, n);
    }
}

static void last_rows(const ExecTask *t) {
    size_t all = dim(t, 2) * dim(t, 1), n = dim(t, 3) * dim(t, 1);
    for (size_t o = 0; o < dim(t, 0); o++) {
        kernel_copy_f32(f32(t, 1) + o * n, f32(t, 0) + (o + 1) * all - n, n);
    }
}

/* ---- what merges ---------------------------------------------------------------------------- */

static void mul_heads(const ExecTask *t) {
    size_t rows = dim(t, 1), heads = dim(t, 2), width = dim(t, 3);
    for (size_t at = 0; at < dim(t, 0) * rows * heads; at++) {
        size_t head = at % heads, row = at / heads % rows, sequence = at / heads / rows;
        float factor = f32(t, 1)[(sequence * heads + head) * rows + row];
        for (size_t i = 0; i < width; i++) {
            f32(t, 2)[at * width + i] = factor * f32(t, 0)[at * width + i];
        }
    }
}

static float logistic(float x) {
    return 1 / (1 + expf(-x));
}

/* Of large numbers of either sign, too. */
static float log_logistic(float x) {
    return fminf(x, 0) - log1pf(expf(-fabsf(x)));
}

static void log_sigmoid(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        f32(t, 1)[i] = log_logistic(f32(t, 0)[i]);
    }
}

static void join(const ExecTask *t) {
    kernel_copy_f32(f32(t, 2), f32(t, 0), dim(t, 0));
    kernel_copy_f32(f32(t, 2) + dim(t, 0), f32(t, 1), dim(t, 0));
}

/* ---- a compiler's --------------------------------------------------------------------------- */

/* y is out where the other turn has none of a token's queries. */
static void merge_turn(const ExecTask *t) {
    size_t rows = dim(t, 1), heads = dim(t, 2), width = dim(t, 3), n = dim(t, 4);
    size_t before = rows - n;
    for (size_t at = 0; at < dim(t, 0) * rows * heads; at++) {
        size_t head = at % heads, row = at / heads % rows, sequence = at / heads / rows;
        size_t of_lse = (sequence * heads + head) * rows + row;
        float *y = f32(t, 4) + at * width, lse = f32(t, 1)[of_lse];
        const float *out = f32(t, 0) + at * width;
        if (row < before) {
            kernel_copy_f32(y, out, width);
            f32(t, 5)[of_lse] = lse;
            continue;
        }
        size_t in_block = (sequence * n + row - before) * heads + head;
        const float *block = f32(t, 2) + in_block * width;
        float less = f32(t, 3)[(sequence * heads + head) * n + row - before] - lse;
        float weight = logistic(less);
        for (size_t i = 0; i < width; i++) {
            y[i] = out[i] - weight * (out[i] - block[i]);
        }
        f32(t, 5)[of_lse] = lse - log_logistic(-less);
    }
}

/* Keys' half and then values'. */
static void add_keys(const ExecTask *t) {
    size_t inner = dim(t, 2), all = dim(t, 1) * inner, n = dim(t, 3) * inner;
    size_t half = dim(t, 0) * all;
    bool came = operand(t, 0).buffer != PLAN_NONE;
    if (came) {
        kernel_copy_f32(f32(t, 3), f32(t, 0), 2 * half);
    } else {
        kernel_zero_f32(f32(t, 3), 2 * half);
    }
    for (unsigned i = 0; i < 2; i++) {
        for (size_t o = 0; o < dim(t, 0); o++) {
            kernel_add_inplace_f32(f32(t, 3) + i * half + o * all, f32(t, 1 + i) + o * n, n);
        }
    }
}

static void add_queries(const ExecTask *t) {
    size_t inner = dim(t, 2), all = dim(t, 1) * inner;
    if (operand(t, 0).buffer != PLAN_NONE) {
        kernel_copy_f32(f32(t, 3), f32(t, 0), dim(t, 0) * all);
    } else {
        kernel_zero_f32(f32(t, 3), dim(t, 0) * all);
    }
    for (unsigned i = 1; i < 3; i++) {
        size_t n = dim(t, 2 + i) * inner;
        for (size_t o = 0; o < dim(t, 0) && operand(t, i).buffer != PLAN_NONE; o++) {
            kernel_add_inplace_f32(f32(t, 3) + (o + 1) * all - n, f32(t, i) + o * n, n);
        }
    }
}

/* ---- both ----------------------------------------------------------------------------------- */

void exec_host_ring(const ExecTask *t) {
    switch ((ExecRingOp)t->op->kind) {
    case PLAN_OP_ATTENTION_PART:
        attend(t);
        return;
    case PLAN_OP_ATTENTION_PART_BACKWARD:
        attend_backward(t);
        return;
    case PLAN_OP_SUB_ROWS:
        sub_rows(t);
        return;
    case PLAN_OP_PUT_ROWS:
        put_rows(t);
        return;
    case PLAN_OP_ADD_ROWS:
        add_rows(t);
        return;
    case PLAN_OP_LAST_ROWS:
        last_rows(t);
        return;
    case PLAN_OP_CAST_HEADS:
        cast_heads(t);
        return;
    case PLAN_OP_MUL_HEADS:
        mul_heads(t);
        return;
    case PLAN_OP_LOG_SIGMOID:
        log_sigmoid(t);
        return;
    case PLAN_OP_MERGE_TURN:
        merge_turn(t);
        return;
    case PLAN_OP_ADD_KEYS:
        add_keys(t);
        return;
    case PLAN_OP_ADD_QUERIES:
        add_queries(t);
        return;
    case PLAN_OP_JOIN:
        join(t);
        return;
    }
    g_assert_not_reached();
}

void exec_host_tables(const ExecTask *t) {
    const Plan *plan = t->context->plan;
    size_t half = dim(t, 0) / 2, width = dim(t, 1), n = half * width;
    for (unsigned i = 0; i < 2; i++) {
        size_t first = half * plan_part_of_sequence(plan, t->context->comm->rank, i);
        kernel_rope_tables_f32(f32(t, 0) + i * n, f32(t, 1) + i * n, half, width, attr(t, 0),
                               first);
    }
}
