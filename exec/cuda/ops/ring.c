/* exec/cuda/ops/ring.c - ops of sequences that ranks share, as exec/host/ring.c has them. */
#include "kernels/cuda/ranks/ring.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/attention/rope.h"
#include "plan/mesh.h"

/* ---- attention ------------------------------------------------------------------------------ */

/* Keys lie head by head; queries are the last rows of each sequence's. */
static KernelCudaAttention part_of(const ExecTask *t, PlanSlotNumber q) {
    KernelCudaAttention part = exec_cuda_attention_shape(t, q);
    part.q_stride = part.heads * part.head_dim;
    part.k_stride = part.v_stride = part.head_dim;
    part.lse_stride = part.seq;
    part.keys = dim(t, ATTENTION_PART_KV_ROWS);
    part.rows = dim(t, ATTENTION_PART_SEQ);
    part.by_head = true;
    return part;
}

/* Where the queries of this part begin, in the first sequence of q, o or o's gradient. */
static gpointer last_rows_of(const ExecTask *t, PlanSlotNumber i) {
    size_t skipped = (dim(t, ATTENTION_PART_SEQ) - dim(t, ATTENTION_PART_Q_ROWS)) *
                     dim(t, ATTENTION_PART_HEADS) * dim(t, ATTENTION_PART_HEAD_DIM);
    return (char *)t->pointers[i] + skipped * kernel_cuda_type_bytes(type_at(t, i));
}

static KernelCudaFault attention(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention part = part_of(t, ATTENTION_PART_Q);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_forward(k, p[ATTENTION_PART_O], p[ATTENTION_PART_LSE],
                                         last_rows_of(t, ATTENTION_PART_Q), p[ATTENTION_PART_K],
                                         p[ATTENTION_PART_V], NULL, &part);
}

static KernelCudaFault attention_backward(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention part = part_of(t, ATTENTION_PART_BACKWARD_Q);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_backward(
        k, p[ATTENTION_PART_BACKWARD_DQ], p[ATTENTION_PART_BACKWARD_DK],
        p[ATTENTION_PART_BACKWARD_DV], NULL, last_rows_of(t, ATTENTION_PART_BACKWARD_DY),
        last_rows_of(t, ATTENTION_PART_BACKWARD_Q), p[ATTENTION_PART_BACKWARD_K],
        p[ATTENTION_PART_BACKWARD_V], NULL, last_rows_of(t, ATTENTION_PART_BACKWARD_O),
        p[ATTENTION_PART_BACKWARD_LSE], &part);
}

/* ---- rows of [outer, rows, inner] ----------------------------------------------------------- */

static KernelCudaRows last_of(const ExecTask *t, PlanSlotNumber i, size_t rows, size_t n) {
    return (KernelCudaRows){t->pointers[i], type_at(t, i), rows, rows - n, n};
}

static KernelCudaRows first_of(const ExecTask *t, PlanSlotNumber i, size_t rows, size_t n) {
    return (KernelCudaRows){t->pointers[i], type_at(t, i), rows, 0, n};
}

/* The same so many elements further on. */
static KernelCudaRows from(KernelCudaRows rows, size_t elements) {
    rows.data = (char *)rows.data + elements * kernel_cuda_type_bytes(rows.type);
    return rows;
}

static KernelCudaFault sub_rows(const ExecTask *t, KernelCuda *k) {
    size_t n = dim(t, SUB_ROWS_ROWS);
    KernelCudaRows y = first_of(t, SUB_ROWS_Y, n, n);
    KernelCudaRows terms[] = {last_of(t, SUB_ROWS_A, dim(t, SUB_ROWS_A_ROWS), n),
                              last_of(t, SUB_ROWS_B, dim(t, SUB_ROWS_B_ROWS), n)};
    return kernel_cuda_sum_of_rows(k, &y, terms, 2, false, true, dim(t, SUB_ROWS_OUTER),
                                   dim(t, SUB_ROWS_INNER));
}

static KernelCudaFault add_rows(const ExecTask *t, KernelCuda *k) {
    size_t n = dim(t, ADD_ROWS_X_ROWS);
    KernelCudaRows y = {t->pointers[ADD_ROWS_Y], type_at(t, ADD_ROWS_Y), dim(t, ADD_ROWS_Y_ROWS),
                        dim(t, ADD_ROWS_FROM), n};
    KernelCudaRows terms[] = {y, first_of(t, ADD_ROWS_X, n, n)};
    return kernel_cuda_sum_of_rows(k, &y, terms, 2, false, false, dim(t, ADD_ROWS_OUTER),
                                   dim(t, ADD_ROWS_INNER));
}

/* Keys' half and then values'. */
static KernelCudaFault add_keys(const ExecTask *t, KernelCuda *k) {
    size_t outer = dim(t, ADD_KEYS_OUTER), seq = dim(t, ADD_KEYS_SEQ),
           inner = dim(t, ADD_KEYS_INNER), n = dim(t, ADD_KEYS_ROWS);
    bool came = operand(t, ADD_KEYS_CAME).buffer != PLAN_NONE;
    KernelCudaFault fault = NULL;
    for (unsigned half = 0; half < 2 && !fault; half++) {
        size_t at = half * outer * seq * inner;
        KernelCudaRows y = from(first_of(t, ADD_KEYS_Y, seq, seq), at),
                       mine = first_of(t, ADD_KEYS_DK + half, n, n);
        KernelCudaRows terms[] = {came ? from(first_of(t, ADD_KEYS_CAME, seq, seq), at) : mine,
                                  mine};
        fault = kernel_cuda_sum_of_rows(k, &y, terms, came ? 2 : 1, true, false, outer, inner);
    }
    return fault;
}

static KernelCudaFault add_queries(const ExecTask *t, KernelCuda *k) {
    size_t seq = dim(t, ADD_QUERIES_SEQ),
           rows[] = {seq, dim(t, ADD_QUERIES_A_ROWS), dim(t, ADD_QUERIES_B_ROWS)}, n = 0;
    KernelCudaRows y = first_of(t, ADD_QUERIES_Y, seq, seq), terms[G_N_ELEMENTS(rows)];
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (operand(t, i).buffer != PLAN_NONE) {
            terms[n++] = first_of(t, i, rows[i], rows[i]);
        }
    }
    return kernel_cuda_sum_of_rows(k, &y, terms, n, false, false, dim(t, ADD_QUERIES_OUTER),
                                   dim(t, ADD_QUERIES_INNER));
}

static KernelCudaFault merge(const ExecTask *t, KernelCuda *k) {
    KernelCudaMerge merge = {dim(t, MERGE_TURN_BATCH),      dim(t, MERGE_TURN_ROWS),
                             dim(t, MERGE_TURN_HEADS),      dim(t, MERGE_TURN_DIM),
                             dim(t, MERGE_TURN_BLOCK_ROWS), type_at(t, MERGE_TURN_OUT),
                             type_at(t, MERGE_TURN_BLOCK),  type_at(t, MERGE_TURN_Y)};
    gpointer *p = t->pointers;
    return kernel_cuda_merge_turn(k, p[MERGE_TURN_Y], p[MERGE_TURN_LSE], p[MERGE_TURN_OUT],
                                  p[MERGE_TURN_OUT_LSE], p[MERGE_TURN_BLOCK],
                                  p[MERGE_TURN_BLOCK_LSE], &merge);
}

/* ---- all ------------------------------------------------------------------------------------ */

KernelCudaFault exec_cuda_ring(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    switch ((ExecRingOp)t->op->kind) {
    case PLAN_OP_ATTENTION_PART:
        return attention(t, k);
    case PLAN_OP_ATTENTION_PART_BACKWARD:
        return attention_backward(t, k);
    case PLAN_OP_SUB_ROWS:
        return sub_rows(t, k);
    case PLAN_OP_ADD_ROWS:
        return add_rows(t, k);
    case PLAN_OP_PUT_ROWS:
    case PLAN_OP_LAST_ROWS:
    case PLAN_OP_JOIN:
        return exec_cuda_pieces(t, k);
    case PLAN_OP_MUL_HEADS:
        return kernel_cuda_mul_heads(k, p[MUL_HEADS_Y], p[MUL_HEADS_X], p[MUL_HEADS_COLUMN],
                                     dim(t, MUL_HEADS_BATCH), dim(t, MUL_HEADS_ROWS),
                                     dim(t, MUL_HEADS_HEADS), dim(t, MUL_HEADS_DIM),
                                     type_at(t, MUL_HEADS_X));
    case PLAN_OP_LOG_SIGMOID:
        return kernel_cuda_log_sigmoid(k, p[LOG_SIGMOID_Y], p[LOG_SIGMOID_X], dim(t, LOG_SIGMOID_N),
                                       type_at(t, LOG_SIGMOID_X));
    case PLAN_OP_CAST_HEADS:
        return kernel_cuda_cast_heads(k, p[CAST_HEADS_Y], type_at(t, CAST_HEADS_Y), p[CAST_HEADS_X],
                                      type_at(t, CAST_HEADS_X), dim(t, CAST_HEADS_BATCH),
                                      dim(t, CAST_HEADS_HEADS), dim(t, CAST_HEADS_SEQ),
                                      dim(t, CAST_HEADS_DIM));
    case PLAN_OP_MERGE_TURN:
        return merge(t, k);
    case PLAN_OP_ADD_KEYS:
        return add_keys(t, k);
    case PLAN_OP_ADD_QUERIES:
        return add_queries(t, k);
    }
    g_assert_not_reached();
}

/* The rank's two parts of the sequences, each from its own position on. */
KernelCudaFault exec_cuda_tables(const ExecTask *t, KernelCuda *k) {
    const ExecContext *c = t->context;
    bool shares = c->plan->axes[PLAN_AXIS_CONTEXT] > 1;
    size_t rows = shares ? dim(t, ROPE_TABLES_SEQ) / 2 : dim(t, ROPE_TABLES_SEQ),
           width = dim(t, ROPE_TABLES_DIM);
    size_t part = rows * width * kernel_cuda_type_bytes(type_at(t, ROPE_TABLES_COS));
    KernelCudaFault fault = NULL;
    for (unsigned i = 0; i < (shares ? 2 : 1) && !fault; i++) {
        size_t first = shares ? rows * plan_part_of_sequence(c->plan, c->comm->rank, i) : 0;
        fault =
            kernel_cuda_rope_tables(k, (char *)t->pointers[ROPE_TABLES_COS] + i * part,
                                    (char *)t->pointers[ROPE_TABLES_SIN] + i * part, rows, width,
                                    attr(t, ROPE_TABLES_BASE), first, type_at(t, ROPE_TABLES_COS));
    }
    return fault;
}
