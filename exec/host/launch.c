/* exec/host/launch.c - see launch.h. One function per op that needs more than a call.
 *
 * What differs between the ranks of a role is settled here: which rows of a parameter are this
 * rank's, which slice of a gather, which samples of the batch.
 */
#include "exec/host/launch.h"

#include <math.h>
#include <string.h>

#include "exec/error.h"
#include "exec/host/data.h"
#include "exec/host/optimizer.h"
#include "exec/host/task.h"
#include "kernels/host/activation.h"
#include "kernels/host/attention.h"
#include "kernels/host/copy.h"
#include "kernels/host/dropout.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/embedding.h"
#include "kernels/host/loss.h"
#include "kernels/host/matmul.h"
#include "kernels/host/norm.h"
#include "kernels/host/random.h"
#include "kernels/host/reduce.h"
#include "kernels/host/rope.h"

static bool bad_index(GError **error, const char *what) {
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "%s holds a number outside its table", what);
    return false;
}

/* ---- data and construction ------------------------------------------------------------------ */

static void batch(const ExecTask *t) {
    uint64_t samples = dim(t, 0), n = dim(t, 1);
    int64_t bound = dims(t)[2];
    const ExecComm *comm = t->context->comm;
    uint64_t first = (t->turn * comm->world + comm->rank) * samples;
    for (uint64_t i = 0; i < samples; i++) {
        if (bound) {
            exec_data_tokens((int64_t *)t->pointers[0] + i * n, (int64_t *)t->pointers[1] + i * n,
                             n, bound, t->context->seed, first + i);
        } else {
            exec_data_vector(f32(t, 0) + i * n, n, t->context->seed, first + i);
        }
    }
}

/* What is dropped depends on the global batch, not on how it is dealt out to ranks. */
static void dropout(const ExecTask *t) {
    const ExecComm *comm = t->context->comm;
    uint64_t n = dim(t, 0), place = dim(t, 1);
    kernel_dropout_forward_f32(f32(t, 1), bytes(t, 2), f32(t, 0), n, (float)attr(t, 0),
                               t->context->seed, UINT64_C(1) << 32 | place,
                               (t->turn * comm->world + comm->rank) * n);
}

/* Element i of a parameter is the same on whichever rank it lies. What of the parameter lies in
 * this buffer: elements [first, last) of the buffer, which start at `from` of the parameter. */
static void init(const ExecTask *t) {
    uint32_t parameter = (uint32_t)dims(t)[0];
    uint64_t n = dim(t, 1), total = t->context->plan->parameters[parameter].elements;
    uint64_t start = axis_rank(t) * (uint64_t)dims(t)[2], offset = dim(t, 3);
    uint64_t first = offset > start ? MIN(n, offset - start) : 0;
    uint64_t from = start > offset ? start - offset : 0;
    uint64_t count = from < total ? MIN(n - first, total - from) : 0;
    if (t->op->kind == PLAN_OP_INIT_FILL) {
        kernel_fill_f32(f32(t, 0) + first, (float)attr(t, 0), count);
    } else {
        kernel_philox_normal_f32(f32(t, 0) + first, count, t->context->seed, parameter, from, 0,
                                 (float)attr(t, 0));
    }
}

/* ---- attention ------------------------------------------------------------------------------ */

typedef struct {
    KernelAttentionShape shape;
    size_t q_stride, kv_stride, lse_stride;
} Attention;

static Attention attention_of(const ExecTask *t) {
    return (Attention){.shape = {.batch = dim(t, 0),
                                 .heads = dim(t, 1),
                                 .kv_heads = dim(t, 2),
                                 .seq_q = dim(t, 3),
                                 .seq_kv = dim(t, 3),
                                 .head_dim = dim(t, 4),
                                 .scale = (float)attr(t, 0),
                                 .causal = dims(t)[8] != 0},
                       .q_stride = dim(t, 5),
                       .kv_stride = dim(t, 6),
                       .lse_stride = dim(t, 7)};
}

static KernelConstView rows_view(const Attention *a, const float *data, size_t stride) {
    return (KernelConstView){data, a->shape.seq_q * stride, stride, a->shape.head_dim};
}

static void attention(const ExecTask *t) {
    Attention a = attention_of(t);
    kernel_attention_forward_f32(
        f32(t, 3), f32(t, 4), a.lse_stride, rows_view(&a, f32(t, 0), a.q_stride),
        rows_view(&a, f32(t, 1), a.kv_stride), rows_view(&a, f32(t, 2), a.kv_stride), &a.shape);
    /* Without dropout the state of its random numbers is never read; it is zero, not rubbish. */
    memset(t->pointers[5], 0, operand(t, 5)->elements * sizeof(int64_t));
    memset(t->pointers[6], 0, operand(t, 6)->elements * sizeof(int64_t));
}

static void attention_backward(const ExecTask *t) {
    Attention a = attention_of(t);
    const KernelAttentionShape *s = &a.shape;
    kernel_attention_backward_f32(
        kernel_view_bshd(f32(t, 6), s->seq_q, s->heads, s->head_dim),
        kernel_view_bshd(f32(t, 7), s->seq_kv, s->kv_heads, s->head_dim),
        kernel_view_bshd(f32(t, 8), s->seq_kv, s->kv_heads, s->head_dim), f32(t, 0),
        rows_view(&a, f32(t, 1), a.q_stride), rows_view(&a, f32(t, 2), a.kv_stride),
        rows_view(&a, f32(t, 3), a.kv_stride), f32(t, 4), f32(t, 5), a.lse_stride, s);
}

/* ---- rotary embedding ----------------------------------------------------------------------- */

static void negate_half(const ExecTask *t) {
    size_t rows = dim(t, 0), half = dim(t, 1), from = dim(t, 2);
    for (size_t r = 0; r < rows; r++) {
        kernel_scale_f32(f32(t, 1) + r * half, f32(t, 0) + r * 2 * half + from, -1, half);
    }
}

static void join_halves(const ExecTask *t) {
    size_t rows = dim(t, 0), half = dim(t, 1) * sizeof(float);
    kernel_copy_2d_bytes(t->pointers[2], 2 * half, t->pointers[0], half, rows, half);
    kernel_copy_2d_bytes((char *)t->pointers[2] + half, 2 * half, t->pointers[1], 2 * half, rows,
                         half);
}

static void put_half(const ExecTask *t) {
    size_t rows = dim(t, 0), half = dim(t, 1);
    kernel_zero_f32(f32(t, 1), rows * 2 * half);
    kernel_copy_2d_bytes(f32(t, 1) + dim(t, 4), 2 * half * sizeof(float), f32(t, 0) + dim(t, 3),
                         dim(t, 2) * sizeof(float), rows, half * sizeof(float));
}

static void table_mul(const ExecTask *t, bool apart) {
    size_t tokens = dim(t, 0), heads = dim(t, 1), n = dim(t, 2), seq = dim(t, 3);
    for (size_t row = 0; row < tokens * heads; row++) {
        size_t position = (apart ? row : row / heads) % seq;
        kernel_mul_f32(f32(t, 2) + row * n, f32(t, 0) + row * n, f32(t, 1) + position * n, n);
    }
}

/* ---- attention with its scores in memory ---------------------------------------------------- */

/* Where the row of a head of a token begins. */
static size_t head_row(const ExecTask *t, size_t batch, size_t token, size_t head, size_t heads,
                       bool apart) {
    size_t seq = dim(t, 1), row = apart ? (batch * heads + head) * seq + token
                                        : (batch * seq + token) * heads + head;
    return row * dim(t, 4);
}

/* x has its heads inside the rows of tokens, and lends each to `repeats` heads of y. */
static void repeat_heads(const ExecTask *t) {
    size_t seq = dim(t, 1), heads = dim(t, 2), repeats = dim(t, 3);
    for (size_t i = 0; i < dim(t, 0) * seq * heads * repeats; i++) {
        size_t head = i % (heads * repeats), token = i / (heads * repeats);
        size_t from = head_row(t, token / seq, token % seq, head / repeats, heads, false);
        size_t to = head_row(t, token / seq, token % seq, head, heads * repeats, dims(t)[5]);
        kernel_copy_f32(f32(t, 1) + to, f32(t, 0) + from, dim(t, 4));
    }
}

static void sum_heads(const ExecTask *t) {
    size_t seq = dim(t, 1), heads = dim(t, 2), repeats = dim(t, 3), n = dim(t, 4);
    kernel_zero_f32(f32(t, 1), dim(t, 0) * seq * heads * n);
    for (size_t i = 0; i < dim(t, 0) * seq * heads * repeats; i++) {
        size_t head = i % (heads * repeats), token = i / (heads * repeats);
        size_t from = head_row(t, token / seq, token % seq, head, heads * repeats, dims(t)[5]);
        size_t to = head_row(t, token / seq, token % seq, head / repeats, heads, dims(t)[5]);
        kernel_add_inplace_f32(f32(t, 1) + to, f32(t, 0) + from, n);
    }
}

static void heads_copy(const ExecTask *t) {
    size_t batch = dim(t, 0), seq = dim(t, 1), heads = dim(t, 2), n = dim(t, 3), row = dim(t, 4);
    size_t apart[] = {heads * seq * n, seq * n, n, 1}, inside[] = {seq * row, n, row, 1};
    size_t merged[] = {seq * heads * n, n, heads * n, 1}, size[] = {batch, heads, seq, n};
    if (dims(t)[5]) {
        kernel_copy_4d_f32(f32(t, 1), merged, f32(t, 0), apart, size);
    } else {
        kernel_copy_4d_f32(f32(t, 1), apart, f32(t, 0), inside, size);
    }
}

/* Where the matrix of one head begins, and how its rows follow each other (plan/ops.def). */
typedef struct {
    float *data;
    size_t batch_stride, head_stride, row_stride;
    bool transposed;
} HeadsMatrix;

static HeadsMatrix heads_matrix(const ExecTask *t, unsigned i, size_t r, size_t c, unsigned layout,
                                size_t stride) {
    size_t heads = dim(t, 1), rows = layout & 1 ? c : r, cols = layout & 1 ? r : c;
    bool inside = layout & 2;
    return (HeadsMatrix){.data = f32(t, i),
                         .batch_stride = inside ? rows * stride : heads * rows * cols,
                         .head_stride = inside ? cols : rows * cols,
                         .row_stride = inside ? stride : cols,
                         .transposed = layout & 1};
}

static void heads_matmul(const ExecTask *t) {
    size_t heads = dim(t, 1), m = dim(t, 2), n = dim(t, 3), k = dim(t, 4);
    HeadsMatrix a = heads_matrix(t, 0, m, k, (unsigned)dim(t, 5), dim(t, 8));
    HeadsMatrix b = heads_matrix(t, 1, k, n, (unsigned)dim(t, 6), dim(t, 9));
    HeadsMatrix y = heads_matrix(t, 2, m, n, (unsigned)dim(t, 7), heads * n);
    for (size_t i = 0; i < dim(t, 0) * heads; i++) {
        size_t batch = i / heads, head = i % heads;
        kernel_gemm_f32(a.transposed ? KERNEL_TRANSPOSE : KERNEL_NO_TRANSPOSE,
                        b.transposed ? KERNEL_TRANSPOSE : KERNEL_NO_TRANSPOSE, m, n, k, 1,
                        a.data + batch * a.batch_stride + head * a.head_stride, a.row_stride,
                        b.data + batch * b.batch_stride + head * b.head_stride, b.row_stride, 0,
                        y.data + batch * y.batch_stride + head * y.head_stride, y.row_stride);
    }
}

static void upper_mask(const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1);
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            size_t at = i * cols + j;
            bytes(t, 1)[at] = j > i ? bytes(t, 0)[at] : 0;
        }
    }
}

static void masked_fill(const ExecTask *t) {
    size_t n = dim(t, 1), inner = dim(t, 2), all = dim(t, 0) * n * inner;
    for (size_t i = 0; i < all; i++) {
        f32(t, 2)[i] = bytes(t, 1)[i / inner % n] ? (float)attr(t, 0) : f32(t, 0)[i];
    }
}

/* ---- relative bias --------------------------------------------------------------------------- */

static void distances(const ExecTask *t) {
    size_t n = dim(t, 0);
    int64_t *to = t->pointers[1];
    for (size_t i = 0; i < n * n; i++) {
        to[i] = i64(t, 0)[i % n] - i64(t, 0)[i / n];
    }
}

static void int64_numbers(const ExecTask *t) {
    bool clamps = t->op->kind == PLAN_OP_CLAMP;
    int64_t *to = t->pointers[1];
    for (size_t i = 0; i < dim(t, 0); i++) {
        int64_t x = i64(t, 0)[i];
        to[i] = clamps ? MIN(x, dims(t)[1]) : ABS(x);
    }
}

static void positive_mask(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        bytes(t, 1)[i] = i64(t, 0)[i] > 0;
    }
}

static void bias_add(const ExecTask *t) {
    size_t batch = dim(t, 0), heads = dim(t, 1), n = dim(t, 2) * dim(t, 3);
    for (size_t b = 0; b < batch * heads; b++) {
        for (size_t i = 0; i < n; i++) {
            f32(t, 2)[b * n + i] = f32(t, 0)[b * n + i] + f32(t, 1)[i * heads + b % heads];
        }
    }
}

static bool bias_backward(const ExecTask *t) {
    size_t n = dim(t, 0), heads = dim(t, 1), limit = dim(t, 2);
    kernel_zero_f32(f32(t, 2), limit * heads);
    for (size_t i = 0; i < n * heads; i++) {
        int64_t row = i64(t, 1)[i % n];
        if (row < 0 || (size_t)row >= limit) {
            return false;
        }
        f32(t, 2)[(size_t)row * heads + i / n] += f32(t, 0)[i];
    }
    return true;
}

/* ---- element by element --------------------------------------------------------------------- */

/* b repeats when it is shorter: broadcasting over leading dimensions. */
static void add(const ExecTask *t) {
    size_t n = dim(t, 0), nb = dim(t, 1);
    for (size_t at = 0; at < n; at += nb) {
        kernel_add_f32(f32(t, 2) + at, f32(t, 0) + at, f32(t, 1), nb);
    }
}

/* Ops on the few numbers of a norm: one by one, in double. */
static void numbers(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        double x = (double)f32(t, 0)[i], by = attr(t, 0);
        f32(t, 1)[i] = (float)(t->op->kind == PLAN_OP_POWER          ? pow(x, by)
                               : t->op->kind == PLAN_OP_ADD_NUMBER   ? x + by
                               : t->op->kind == PLAN_OP_TIMES_NUMBER ? x * by
                                                                     : fmin(x, by));
    }
}

static void concat_columns(const ExecTask *t) {
    size_t rows = dim(t, 0), row = dim(t, 1) * sizeof(float);
    unsigned n = list_length(t);
    for (unsigned i = 0; i < n; i++) {
        kernel_copy_2d_bytes((char *)t->pointers[n] + i * row, n * row, t->pointers[i], row, rows,
                             row);
    }
}

/* ---- sharding: layouts as in plan/flavour-fsdp2.c ------------------------------------------- */

static void flatten(const ExecTask *t, float *to) {
    for (unsigned i = 0; i < list_length(t); i++) {
        size_t n = operand(t, i)->elements;
        kernel_copy_f32(to, f32(t, i), n);
        to += n;
    }
}

static void gather_copy_in(const ExecTask *t) {
    flatten(t, f32(t, list_length(t)) + axis_rank(t) * dim(t, 0));
}

static void gather_copy_out(const ExecTask *t) {
    size_t slice = dim(t, 0), ranks = dim(t, 1), start = 0;
    for (unsigned i = 1; i <= list_length(t); i++) {
        size_t chunk = operand(t, i)->elements / ranks;
        kernel_copy_2d_bytes(t->pointers[i], chunk * sizeof(float), f32(t, 0) + start,
                             slice * sizeof(float), ranks, chunk * sizeof(float));
        start += chunk;
    }
}

static void reduce_copy_in(const ExecTask *t) {
    size_t slice = dim(t, 0), ranks = dim(t, 1), start = 0;
    float *packed = f32(t, list_length(t));
    for (unsigned i = 0; i < list_length(t); i++) {
        size_t rows = operand(t, i)->rows, elements = operand(t, i)->elements;
        size_t chunk = (rows + ranks - 1) / ranks * (elements / rows);
        for (size_t rank = 0; rank < ranks; rank++) {
            size_t before = MIN(elements, rank * chunk), real = MIN(chunk, elements - before);
            float *to = packed + rank * slice + start;
            kernel_copy_f32(to, f32(t, i) + before, real);
            kernel_zero_f32(to + real, chunk - real);
        }
        start += chunk;
    }
}

static void bucket_copy_out(const ExecTask *t) {
    const float *bucket = f32(t, 0);
    for (unsigned i = 1; i <= list_length(t); i++) {
        kernel_copy_f32(f32(t, i), bucket, operand(t, i)->elements);
        bucket += operand(t, i)->elements;
    }
}

/* ---- the switch ----------------------------------------------------------------------------- */

static bool collective(const ExecTask *t, GError **error) {
    const ExecComm *comm = t->context->comm;
    PlanAxis axis = (PlanAxis)t->op->axis;
    PlanDtype dtype = (PlanDtype)t->op->dtype;
    bool average = attr(t, 0) != 0;
    switch ((PlanOpKind)t->op->kind) {
    case PLAN_OP_ALL_GATHER:
        return comm->all_gather(comm->self, axis, t->pointers[0], t->pointers[1], dim(t, 0), dtype,
                                error);
    case PLAN_OP_REDUCE_SCATTER:
        return comm->reduce_scatter(comm->self, axis, t->pointers[0], t->pointers[1], dim(t, 0),
                                    dtype, average, error);
    default: /* an all-reduce */
        return comm->all_reduce(comm->self, axis, t->pointers[0], dim(t, 0), dtype, average, error);
    case PLAN_OP_BROADCAST:
        return comm->broadcast(comm->self, axis, t->pointers[0], dim(t, 0), dtype, error);
    }
}

bool exec_host_run(const ExecTask *t, GError **error) {
    switch ((PlanOpKind)t->op->kind) {
    case PLAN_OP_BATCH:
        batch(t);
        return true;
    case PLAN_OP_ARANGE:
        kernel_arange_i64(t->pointers[0], 0, 1, dim(t, 0));
        return true;
    case PLAN_OP_EMBEDDING:
        return kernel_embedding_forward_f32(f32(t, 2), f32(t, 0), i64(t, 1), dim(t, 0), dim(t, 2),
                                            dim(t, 1)) ||
               bad_index(error, "an embedding's index");
    case PLAN_OP_ADD:
        add(t);
        return true;
    case PLAN_OP_DROPOUT:
        dropout(t);
        return true;
    case PLAN_OP_DROPOUT_BACKWARD:
        kernel_dropout_backward_f32(f32(t, 2), f32(t, 0), bytes(t, 1), dim(t, 0),
                                    (float)attr(t, 0));
        return true;
    case PLAN_OP_RMSNORM:
        kernel_rmsnorm_forward_f32(f32(t, 2), f32(t, 3), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1),
                                   (float)attr(t, 0));
        return true;
    case PLAN_OP_RMSNORM_BACKWARD:
        kernel_rmsnorm_backward_f32(f32(t, 4), f32(t, 5), f32(t, 0), f32(t, 1), f32(t, 2),
                                    f32(t, 3), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_SILU:
        kernel_silu_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_SILU_BACKWARD:
        kernel_silu_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return true;
    case PLAN_OP_MUL:
        kernel_mul_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return true;
    case PLAN_OP_ROPE_TABLES:
        kernel_rope_tables_f32(f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1), attr(t, 0), 0);
        return true;
    case PLAN_OP_NEGATE_HALF:
        negate_half(t);
        return true;
    case PLAN_OP_JOIN_HALVES:
        join_halves(t);
        return true;
    case PLAN_OP_PUT_HALF:
        put_half(t);
        return true;
    case PLAN_OP_TABLE_MUL:
        table_mul(t, false);
        return true;
    case PLAN_OP_TABLE_MUL_BACKWARD:
        table_mul(t, dims(t)[4]);
        return true;
    case PLAN_OP_REPEAT_HEADS:
        repeat_heads(t);
        return true;
    case PLAN_OP_SUM_HEADS:
        sum_heads(t);
        return true;
    case PLAN_OP_HEADS_COPY:
        heads_copy(t);
        return true;
    case PLAN_OP_HEADS_MATMUL:
        heads_matmul(t);
        return true;
    case PLAN_OP_SOFTMAX:
        kernel_softmax_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_SOFTMAX_BACKWARD:
        kernel_softmax_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_ONES_MASK:
        memset(t->pointers[0], 1, dim(t, 0));
        return true;
    case PLAN_OP_UPPER_MASK:
        upper_mask(t);
        return true;
    case PLAN_OP_MASKED_FILL:
        masked_fill(t);
        return true;
    case PLAN_OP_DISTANCES:
        distances(t);
        return true;
    case PLAN_OP_ABSOLUTE:
    case PLAN_OP_CLAMP:
        int64_numbers(t);
        return true;
    case PLAN_OP_POSITIVE_MASK:
        positive_mask(t);
        return true;
    case PLAN_OP_BIAS:
        return kernel_embedding_forward_f32(f32(t, 2), f32(t, 0), i64(t, 1), dim(t, 0), dim(t, 2),
                                            dim(t, 1)) ||
               bad_index(error, "a bias's index");
    case PLAN_OP_BIAS_ADD:
        bias_add(t);
        return true;
    case PLAN_OP_BIAS_BACKWARD:
        return bias_backward(t) || bad_index(error, "a bias's index");
    case PLAN_OP_LAYERNORM:
        kernel_layernorm_forward_f32(f32(t, 3), f32(t, 4), f32(t, 5), f32(t, 0), f32(t, 1),
                                     f32(t, 2), dim(t, 0), dim(t, 1), (float)attr(t, 0));
        return true;
    case PLAN_OP_LINEAR:
        kernel_linear_forward_f32(f32(t, 3), f32(t, 0), f32(t, 1), f32(t, 2), dim(t, 0), dim(t, 1),
                                  dim(t, 2));
        return true;
    case PLAN_OP_ATTENTION:
        attention(t);
        return true;
    case PLAN_OP_GELU_TANH:
        kernel_gelu_tanh_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_GELU_ERF:
        kernel_gelu_erf_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_RELU:
        kernel_relu_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_MEAN:
        kernel_mean_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_LOG_SOFTMAX:
        kernel_log_softmax_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_NLL_LOSS:
        return kernel_nll_loss_forward_f32(f32(t, 2), f32(t, 3), f32(t, 0), i64(t, 1), dim(t, 0),
                                           dim(t, 1), -100) ||
               bad_index(error, "the targets");
    case PLAN_OP_EMBEDDING_BACKWARD:
        return kernel_embedding_backward_f32(f32(t, 2), f32(t, 0), i64(t, 1), dim(t, 0), dim(t, 2),
                                             dim(t, 1)) ||
               bad_index(error, "an embedding's index");
    case PLAN_OP_SUM_ROWS:
        kernel_column_sum_f32(f32(t, 1), f32(t, 0), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_LAYERNORM_BACKWARD:
        kernel_layernorm_backward_f32(f32(t, 5), f32(t, 6), f32(t, 7), f32(t, 0), f32(t, 1),
                                      f32(t, 2), f32(t, 3), f32(t, 4), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_LINEAR_DX:
        kernel_linear_backward_input_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1),
                                         dim(t, 2));
        return true;
    case PLAN_OP_LINEAR_DW:
        kernel_linear_backward_weight_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1),
                                          dim(t, 2));
        return true;
    case PLAN_OP_ATTENTION_BACKWARD:
        attention_backward(t);
        return true;
    case PLAN_OP_CONCAT_COLUMNS:
        concat_columns(t);
        return true;
    case PLAN_OP_GELU_TANH_BACKWARD:
        kernel_gelu_tanh_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return true;
    case PLAN_OP_GELU_ERF_BACKWARD:
        kernel_gelu_erf_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return true;
    case PLAN_OP_RELU_BACKWARD:
        kernel_threshold_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), 0, dim(t, 0));
        return true;
    case PLAN_OP_MEAN_BACKWARD:
        kernel_mean_backward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_LOG_SOFTMAX_BACKWARD:
        kernel_log_softmax_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_NLL_LOSS_BACKWARD:
        return kernel_nll_loss_backward_f32(f32(t, 3), f32(t, 0), i64(t, 1), f32(t, 2), dim(t, 0),
                                            dim(t, 1), -100) ||
               bad_index(error, "the targets");
    case PLAN_OP_INIT_NORMAL:
    case PLAN_OP_INIT_FILL:
        init(t);
        return true;
    case PLAN_OP_FILL:
        kernel_fill_f32(f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_CAST:
    case PLAN_OP_COPY:
        kernel_copy_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_SCALE:
        kernel_scale_f32(f32(t, 0), f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_FLATTEN:
        flatten(t, f32(t, list_length(t)));
        return true;
    case PLAN_OP_GATHER_COPY_IN:
        gather_copy_in(t);
        return true;
    case PLAN_OP_GATHER_COPY_OUT:
        gather_copy_out(t);
        return true;
    case PLAN_OP_PART:
        kernel_copy_f32(f32(t, 1), f32(t, 0) + axis_rank(t) * dim(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_REDUCE_COPY_IN:
        reduce_copy_in(t);
        return true;
    case PLAN_OP_BUCKET_COPY_IN:
        kernel_scale_f32(f32(t, 1), f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_BUCKET_COPY_OUT:
        bucket_copy_out(t);
        return true;
    case PLAN_OP_ADAM_DECAY:
    case PLAN_OP_ADAM_MOMENT:
    case PLAN_OP_ADAM_SQUARE_DECAY:
    case PLAN_OP_ADAM_SQUARE:
    case PLAN_OP_ADAM_SQRT:
    case PLAN_OP_ADAM_DIVIDE:
    case PLAN_OP_ADAM_CORRECT:
    case PLAN_OP_ADAM_EPS:
    case PLAN_OP_ADAM_UPDATE:
    case PLAN_OP_ADAM_FUSED:
    case PLAN_OP_GRADIENT_DECAY:
    case PLAN_OP_SGD_UPDATE:
    case PLAN_OP_SGD_FUSED:
    case PLAN_OP_MOMENTUM_START:
    case PLAN_OP_MOMENTUM_DECAY:
    case PLAN_OP_MOMENTUM_ADD:
    case PLAN_OP_MOMENTUM_FUSED:
    case PLAN_OP_NORMS:
    case PLAN_OP_SCALE_ALL:
    case PLAN_OP_ZERO_ALL:
        exec_host_optimize(t);
        return true;
    case PLAN_OP_NORM:
        kernel_norm_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_POWER:
    case PLAN_OP_ADD_NUMBER:
    case PLAN_OP_TIMES_NUMBER:
    case PLAN_OP_AT_MOST:
        numbers(t);
        return true;
    case PLAN_OP_ACCUMULATE:
        kernel_add_inplace_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_ALL_GATHER:
    case PLAN_OP_REDUCE_SCATTER:
    case PLAN_OP_ALL_REDUCE:
    case PLAN_OP_BROADCAST:
        return collective(t, error);
    case PLAN_N_OP_KINDS:
        break;
    }
    g_assert_not_reached();
}

/* Kernels are fp32 today; whatever a plan has in another floating dtype is refused before it
 * starts. */
bool exec_host_knows(const PlanRole *role, const PlanOp *op, GError **error) {
    const PlanOperand *operands = plan_op_operands(role, op);
    if (op->kind == PLAN_OP_ATTENTION && plan_op_attrs(role, op)[1] > 0) {
        g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                            "the host's attention kernel drops nothing; set attention = math (or "
                            "dropout = 0) in the network");
        return false;
    }
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (operands[i].buffer == PLAN_NONE) {
            continue;
        }
        PlanDtype dtype = (PlanDtype)role->buffers[operands[i].buffer].dtype;
        if (dtype == PLAN_BF16 || dtype == PLAN_FP16) {
            g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                        "the host device computes in fp32, and this plan has %s in %s; build it "
                        "with --param-dtype fp32 --reduce-dtype fp32",
                        plan_op_info((PlanOpKind)op->kind)->name, plan_dtype_name(dtype));
            return false;
        }
    }
    return true;
}

double exec_host_first_output(const ExecTask *t) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)t->op->kind);
    for (uint32_t i = 0; i < t->op->n_operands; i++) {
        unsigned slot = plan_op_slot_of(info, t->op->n_operands, i);
        if ((info->slots[slot].flags & PLAN_SLOT_WRITE) && t->pointers[i]) {
            return *f32(t, i);
        }
    }
    return NAN;
}
