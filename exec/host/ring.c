/* exec/host/ring.c - what ranks do that share sequences: attention of some rows to some keys, and
 * what merges it.
 */
#include "exec/host/ops.h"
#include "plan/mesh.h"

#include <math.h>
#include <string.h>

#include "exec/task.h"
#include "kernels/host/attention/rope.h"
#include "kernels/host/elementwise.h"

/* ---- attention ------------------------------------------------------------------------------ */

/* One sequence. Its operands have all rows, but only the last q_rows queries and the first kv_rows
 * keys take part. */
typedef struct {
    KernelAttentionShape shape;
    size_t seq, q_row;                /* numbers of a token in q, o and their gradients */
    size_t q_all, kv_all, q_skipped;  /* numbers of a sequence; those before its rows of queries */
    size_t q_part, kv_part, lse_part; /* of what is worked out of it */
} Part;

static Part part_of(const ExecTask *t) {
    KernelAttentionShape shape = exec_host_attention_shape(t);
    shape.batch = 1;
    size_t seq = dim(t, ATTENTION_PART_SEQ), q_row = shape.heads * shape.head_dim;
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
    for (size_t b = 0; b < dim(t, ATTENTION_PART_BATCH); b++) {
        kernel_attention_forward_f32(f32(t, ATTENTION_PART_O) + b * p.q_part,
                                     f32(t, ATTENTION_PART_LSE) + b * p.lse_part, p.shape.seq_q,
                                     queries(&p, f32(t, ATTENTION_PART_Q), b),
                                     keys(&p, f32(t, ATTENTION_PART_K), b),
                                     keys(&p, f32(t, ATTENTION_PART_V), b), NULL, &p.shape);
    }
    /* Nothing is dropped, so nobody reads the state of random numbers; it is zero, not rubbish. */
    memset(t->pointers[ATTENTION_PART_SEED], 0,
           operand(t, ATTENTION_PART_SEED).elements * sizeof(int64_t));
    memset(t->pointers[ATTENTION_PART_OFFSET], 0,
           operand(t, ATTENTION_PART_OFFSET).elements * sizeof(int64_t));
}

static KernelView key_gradients(const Part *p, float *dk, size_t sequence) {
    return (KernelView){dk + sequence * p->kv_part, 0, p->shape.head_dim,
                        p->shape.seq_kv * p->shape.head_dim};
}

static void attend_backward(const ExecTask *t) {
    Part p = part_of(t);
    for (size_t b = 0; b < dim(t, ATTENTION_PART_BACKWARD_BATCH); b++) {
        size_t first = b * p.q_all + p.q_skipped;
        KernelView dq = {f32(t, ATTENTION_PART_BACKWARD_DQ) + b * p.q_part, 0, p.q_row,
                         p.shape.head_dim};
        kernel_attention_backward_f32(dq, key_gradients(&p, f32(t, ATTENTION_PART_BACKWARD_DK), b),
                                      key_gradients(&p, f32(t, ATTENTION_PART_BACKWARD_DV), b),
                                      NULL, f32(t, ATTENTION_PART_BACKWARD_DY) + first,
                                      queries(&p, f32(t, ATTENTION_PART_BACKWARD_Q), b),
                                      keys(&p, f32(t, ATTENTION_PART_BACKWARD_K), b),
                                      keys(&p, f32(t, ATTENTION_PART_BACKWARD_V), b), NULL,
                                      f32(t, ATTENTION_PART_BACKWARD_O) + first,
                                      f32(t, ATTENTION_PART_BACKWARD_LSE) + b * p.lse_part,
                                      p.shape.seq_q, &p.shape);
    }
}

/* ---- rows of [outer, rows, inner] ----------------------------------------------------------- */

static void sub_rows(const ExecTask *t) {
    size_t inner = dim(t, SUB_ROWS_INNER), a_rows = dim(t, SUB_ROWS_A_ROWS),
           b_rows = dim(t, SUB_ROWS_B_ROWS), n = dim(t, SUB_ROWS_ROWS) * inner;
    for (size_t o = 0; o < dim(t, SUB_ROWS_OUTER); o++) {
        const float *a = f32(t, SUB_ROWS_A) + (o + 1) * a_rows * inner - n;
        const float *b = f32(t, SUB_ROWS_B) + (o + 1) * b_rows * inner - n;
        for (size_t i = 0; i < n; i++) {
            f32(t, SUB_ROWS_Y)[o * n + i] = a[i] - b[i];
        }
    }
}

static void put_rows(const ExecTask *t) {
    size_t inner = dim(t, PUT_ROWS_INNER), all = dim(t, PUT_ROWS_A_ROWS) * inner,
           n = dim(t, PUT_ROWS_B_ROWS) * inner;
    for (size_t o = 0; o < dim(t, PUT_ROWS_OUTER); o++) {
        float *y = f32(t, PUT_ROWS_Y) + o * all;
        kernel_copy_f32(y, f32(t, PUT_ROWS_A) + o * all, all - n);
        kernel_copy_f32(y + all - n, f32(t, PUT_ROWS_B) + o * n, n);
    }
}

static void add_rows(const ExecTask *t) {
    size_t inner = dim(t, ADD_ROWS_INNER), n = dim(t, ADD_ROWS_X_ROWS) * inner,
           all = dim(t, ADD_ROWS_Y_ROWS) * inner;
    for (size_t o = 0; o < dim(t, ADD_ROWS_OUTER); o++) {
        kernel_add_inplace_f32(f32(t, ADD_ROWS_Y) + o * all + dim(t, ADD_ROWS_FROM) * inner,
                               f32(t, ADD_ROWS_X) + o * n, n);
    }
}

/* [batch, heads, seq, dim] as [batch, seq, heads, dim]; who launches it rounds what comes out. */
static void cast_heads(const ExecTask *t) {
    size_t heads = dim(t, CAST_HEADS_HEADS), seq = dim(t, CAST_HEADS_SEQ),
           n = dim(t, CAST_HEADS_DIM);
    for (size_t row = 0; row < dim(t, CAST_HEADS_BATCH) * heads * seq; row++) {
        size_t token = row % seq, head = row / seq % heads, sequence = row / seq / heads;
        kernel_copy_f32(f32(t, CAST_HEADS_Y) + ((sequence * seq + token) * heads + head) * n,
                        f32(t, CAST_HEADS_X) + row * n, n);
    }
}

static void last_rows(const ExecTask *t) {
    size_t all = dim(t, LAST_ROWS_X_ROWS) * dim(t, LAST_ROWS_INNER),
           n = dim(t, LAST_ROWS_ROWS) * dim(t, LAST_ROWS_INNER);
    for (size_t o = 0; o < dim(t, LAST_ROWS_OUTER); o++) {
        kernel_copy_f32(f32(t, LAST_ROWS_Y) + o * n, f32(t, LAST_ROWS_X) + (o + 1) * all - n, n);
    }
}

/* ---- what merges ---------------------------------------------------------------------------- */

static void mul_heads(const ExecTask *t) {
    size_t rows = dim(t, MUL_HEADS_ROWS), heads = dim(t, MUL_HEADS_HEADS),
           width = dim(t, MUL_HEADS_DIM);
    for (size_t at = 0; at < dim(t, MUL_HEADS_BATCH) * rows * heads; at++) {
        size_t head = at % heads, row = at / heads % rows, sequence = at / heads / rows;
        float factor = f32(t, MUL_HEADS_COLUMN)[(sequence * heads + head) * rows + row];
        for (size_t i = 0; i < width; i++) {
            f32(t, MUL_HEADS_Y)[at * width + i] = factor * f32(t, MUL_HEADS_X)[at * width + i];
        }
    }
}

static float logistic(float x) {
    return 1 / (1 + expf(-x));
}

/* Large numbers of either sign do not overflow. */
static float log_logistic(float x) {
    return fminf(x, 0) - log1pf(expf(-fabsf(x)));
}

static void log_sigmoid(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, LOG_SIGMOID_N); i++) {
        f32(t, LOG_SIGMOID_Y)[i] = log_logistic(f32(t, LOG_SIGMOID_X)[i]);
    }
}

static void join(const ExecTask *t) {
    kernel_copy_f32(f32(t, JOIN_Y), f32(t, JOIN_A), dim(t, JOIN_N));
    kernel_copy_f32(f32(t, JOIN_Y) + dim(t, JOIN_N), f32(t, JOIN_B), dim(t, JOIN_N));
}

/* ---- a compiler's --------------------------------------------------------------------------- */

/* y is out where the other hop has none of a token's queries. */
static void merge_turn(const ExecTask *t) {
    size_t rows = dim(t, MERGE_TURN_ROWS), heads = dim(t, MERGE_TURN_HEADS),
           width = dim(t, MERGE_TURN_DIM), n = dim(t, MERGE_TURN_BLOCK_ROWS);
    size_t before = rows - n;
    for (size_t at = 0; at < dim(t, MERGE_TURN_BATCH) * rows * heads; at++) {
        size_t head = at % heads, row = at / heads % rows, sequence = at / heads / rows;
        size_t of_lse = (sequence * heads + head) * rows + row;
        float *y = f32(t, MERGE_TURN_Y) + at * width, lse = f32(t, MERGE_TURN_OUT_LSE)[of_lse];
        const float *out = f32(t, MERGE_TURN_OUT) + at * width;
        if (row < before) {
            kernel_copy_f32(y, out, width);
            f32(t, MERGE_TURN_LSE)[of_lse] = lse;
            continue;
        }
        size_t in_block = (sequence * n + row - before) * heads + head;
        const float *block = f32(t, MERGE_TURN_BLOCK) + in_block * width;
        float less =
            f32(t, MERGE_TURN_BLOCK_LSE)[(sequence * heads + head) * n + row - before] - lse;
        float weight = logistic(less);
        for (size_t i = 0; i < width; i++) {
            y[i] = out[i] - weight * (out[i] - block[i]);
        }
        f32(t, MERGE_TURN_LSE)[of_lse] = lse - log_logistic(-less);
    }
}

/* Keys' half and then values'. */
static void add_keys(const ExecTask *t) {
    size_t inner = dim(t, ADD_KEYS_INNER), all = dim(t, ADD_KEYS_SEQ) * inner,
           n = dim(t, ADD_KEYS_ROWS) * inner;
    size_t half = dim(t, ADD_KEYS_OUTER) * all;
    bool came = operand(t, ADD_KEYS_CAME).buffer != PLAN_NONE;
    if (came) {
        kernel_copy_f32(f32(t, ADD_KEYS_Y), f32(t, ADD_KEYS_CAME), 2 * half);
    } else {
        kernel_zero_f32(f32(t, ADD_KEYS_Y), 2 * half);
    }
    for (unsigned i = 0; i < 2; i++) {
        for (size_t o = 0; o < dim(t, ADD_KEYS_OUTER); o++) {
            kernel_add_inplace_f32(f32(t, ADD_KEYS_Y) + i * half + o * all,
                                   f32(t, ADD_KEYS_DK + i) + o * n, n);
        }
    }
}

static void add_queries(const ExecTask *t) {
    size_t inner = dim(t, ADD_QUERIES_INNER), all = dim(t, ADD_QUERIES_SEQ) * inner;
    if (operand(t, ADD_QUERIES_SUM).buffer != PLAN_NONE) {
        kernel_copy_f32(f32(t, ADD_QUERIES_Y), f32(t, ADD_QUERIES_SUM),
                        dim(t, ADD_QUERIES_OUTER) * all);
    } else {
        kernel_zero_f32(f32(t, ADD_QUERIES_Y), dim(t, ADD_QUERIES_OUTER) * all);
    }
    for (unsigned i = 0; i < 2; i++) { /* a, then b */
        size_t n = dim(t, ADD_QUERIES_A_ROWS + i) * inner;
        bool is_given = operand(t, ADD_QUERIES_A + i).buffer != PLAN_NONE;
        for (size_t o = 0; o < dim(t, ADD_QUERIES_OUTER) && is_given; o++) {
            kernel_add_inplace_f32(f32(t, ADD_QUERIES_Y) + (o + 1) * all - n,
                                   f32(t, ADD_QUERIES_A + i) + o * n, n);
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
    size_t half = dim(t, ROPE_TABLES_SEQ) / 2, width = dim(t, ROPE_TABLES_DIM), n = half * width;
    for (unsigned i = 0; i < 2; i++) {
        size_t first = half * plan_part_of_sequence(plan, t->context->comm->rank, i);
        kernel_rope_tables_f32(f32(t, ROPE_TABLES_COS) + i * n, f32(t, ROPE_TABLES_SIN) + i * n,
                               half, width, attr(t, ROPE_TABLES_BASE), first);
    }
}
