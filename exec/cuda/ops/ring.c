/* exec/cuda/ops/ring.c - ops of sequences that ranks share, as exec/host/ring.c has them. */
#include "kernels/cuda/ring.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/rope.h"

/* ---- attention ------------------------------------------------------------------------------ */

/* Keys lie head by head; queries are the last rows of each sequence's. */
static KernelCudaAttention part_of(const ExecTask *t, unsigned q) {
    size_t heads = dim(t, 1), head_dim = dim(t, 4);
    return (KernelCudaAttention){.batch = dim(t, 0),
                                 .heads = heads,
                                 .kv_heads = dim(t, 2),
                                 .seq = dim(t, 5),
                                 .head_dim = head_dim,
                                 .q_stride = heads * head_dim,
                                 .k_stride = head_dim,
                                 .v_stride = head_dim,
                                 .lse_stride = dim(t, 5),
                                 .scale = (float)attr(t, 0),
                                 .causal = dims(t)[7] != 0,
                                 .type = type_at(t, q),
                                 .keys = dim(t, 6),
                                 .rows = dim(t, 3),
                                 .by_head = true};
}

/* Of q, o or o's gradient, where those rows begin in the first sequence. */
static gpointer last_rows_of(const ExecTask *t, unsigned i) {
    size_t skipped = (dim(t, 3) - dim(t, 5)) * dim(t, 1) * dim(t, 4);
    return (char *)t->pointers[i] + skipped * kernel_cuda_type_bytes(type_at(t, i));
}

static KernelCudaFault attention(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention part = part_of(t, 0);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_forward(k, p[3], p[4], last_rows_of(t, 0), p[1], p[2], NULL,
                                         &part);
}

static KernelCudaFault attention_backward(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention part = part_of(t, 1);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_backward(k, p[6], p[7], p[8], NULL, last_rows_of(t, 0),
                                          last_rows_of(t, 1), p[2], p[3], NULL, last_rows_of(t, 4),
                                          p[5], &part);
}

/* ---- rows of [outer, rows, inner] ----------------------------------------------------------- */

static KernelCudaRows last_of(const ExecTask *t, unsigned i, size_t rows, size_t n) {
    return (KernelCudaRows){t->pointers[i], type_at(t, i), rows, rows - n, n};
}

static KernelCudaRows first_of(const ExecTask *t, unsigned i, size_t rows, size_t n) {
    return (KernelCudaRows){t->pointers[i], type_at(t, i), rows, 0, n};
}

/* The same so many elements further on. */
static KernelCudaRows from(KernelCudaRows rows, size_t elements) {
    rows.data = (char *)rows.data + elements * kernel_cuda_type_bytes(rows.type);
    return rows;
}

static KernelCudaFault sub_rows(const ExecTask *t, KernelCuda *k) {
    size_t n = dim(t, 4);
    KernelCudaRows y = first_of(t, 2, n, n);
    KernelCudaRows terms[] = {last_of(t, 0, dim(t, 2), n), last_of(t, 1, dim(t, 3), n)};
    return kernel_cuda_sum_of_rows(k, &y, terms, 2, false, true, dim(t, 0), dim(t, 1));
}

static KernelCudaFault add_rows(const ExecTask *t, KernelCuda *k) {
    size_t n = dim(t, 2);
    KernelCudaRows y = {t->pointers[1], type_at(t, 1), dim(t, 3), dim(t, 4), n};
    KernelCudaRows terms[] = {y, first_of(t, 0, n, n)};
    return kernel_cuda_sum_of_rows(k, &y, terms, 2, false, false, dim(t, 0), dim(t, 1));
}

/* Keys' half and then values'. */
static KernelCudaFault add_keys(const ExecTask *t, KernelCuda *k) {
    size_t outer = dim(t, 0), seq = dim(t, 1), inner = dim(t, 2), n = dim(t, 3);
    bool came = operand(t, 0).buffer != PLAN_NONE;
    KernelCudaFault fault = NULL;
    for (unsigned half = 0; half < 2 && !fault; half++) {
        size_t at = half * outer * seq * inner;
        KernelCudaRows y = from(first_of(t, 3, seq, seq), at), mine = first_of(t, 1 + half, n, n);
        KernelCudaRows terms[] = {came ? from(first_of(t, 0, seq, seq), at) : mine, mine};
        fault = kernel_cuda_sum_of_rows(k, &y, terms, came ? 2 : 1, true, false, outer, inner);
    }
    return fault;
}

static KernelCudaFault add_queries(const ExecTask *t, KernelCuda *k) {
    size_t seq = dim(t, 1), rows[] = {seq, dim(t, 3), dim(t, 4)}, n = 0;
    KernelCudaRows y = first_of(t, 3, seq, seq), terms[G_N_ELEMENTS(rows)];
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (operand(t, i).buffer != PLAN_NONE) {
            terms[n++] = first_of(t, i, rows[i], rows[i]);
        }
    }
    return kernel_cuda_sum_of_rows(k, &y, terms, n, false, false, dim(t, 0), dim(t, 2));
}

static KernelCudaFault merge(const ExecTask *t, KernelCuda *k) {
    KernelCudaMerge merge = {dim(t, 0), dim(t, 1),     dim(t, 2),     dim(t, 3),
                             dim(t, 4), type_at(t, 0), type_at(t, 2), type_at(t, 4)};
    gpointer *p = t->pointers;
    return kernel_cuda_merge_turn(k, p[4], p[5], p[0], p[1], p[2], p[3], &merge);
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
    case PLAN_OP_MUL_HEADS: /* x column > y */
        return kernel_cuda_mul_heads(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), dim(t, 2),
                                     dim(t, 3), type_at(t, 0));
    case PLAN_OP_LOG_SIGMOID:
        return kernel_cuda_log_sigmoid(k, p[1], p[0], dim(t, 0), type_at(t, 0));
    case PLAN_OP_CAST_HEADS:
        return kernel_cuda_cast_heads(k, p[1], type_at(t, 1), p[0], type_at(t, 0), dim(t, 0),
                                      dim(t, 1), dim(t, 2), dim(t, 3));
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
    size_t rows = shares ? dim(t, 0) / 2 : dim(t, 0), width = dim(t, 1);
    size_t part = rows * width * kernel_cuda_type_bytes(type_at(t, 0));
    KernelCudaFault fault = NULL;
    for (unsigned i = 0; i < (shares ? 2 : 1) && !fault; i++) {
        size_t first = shares ? rows * plan_part_of_sequence(c->plan, c->comm->rank, i) : 0;
        fault = kernel_cuda_rope_tables(k, (char *)t->pointers[0] + i * part,
                                        (char *)t->pointers[1] + i * part, rows, width, attr(t, 0),
                                        first, type_at(t, 0));
    }
    return fault;
}
