/* kernels/host/attention/attention.c - see attention.h.
 *
 * Forward, for a block of queries: with S = scale q k^T for one block of keys, the running maximum
 * m and sum l of each row, and the unnormalized output o,
 *     m' = max(m, row max of S)     P = exp(S - m')     c = exp(m - m')
 *     l  = c l + row sum of P       o = c o + P v
 * and at the end the output is o / l, and logsumexp = m + log l.
 * Backward, for a block of keys and one of queries: P = exp(S - logsumexp) is the exact softmax,
 * and with D = row sum of do o (equal to the row sum of P dP),
 *     dv += P^T do      dP = do v^T      dS = scale P (dP - D)      dq += dS k      dk += dS^T q
 * and a bias's gradient is P (dP - D).
 * (Dao et al., "FlashAttention", 2022, whose block recurrences these are.) All five products are
 * BLAS calls on strided blocks, so nothing is packed here. Blocks that causality or a window hides
 * are skipped.
 */
#include "kernels/host/attention/attention.h"
#include "kernels/alibi.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/products/matmul.h"
#include "kernels/host/vector.h"
#include <math.h>

#define Q_BLOCK  128
#define KV_BLOCK 128

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* How many of the keys first .. first + count - 1 query row sees, but for those that a window hides
 * before them. */
static size_t keys_seen(const KernelAttentionShape *shape, size_t row, size_t first, size_t count) {
    if (!shape->causal) {
        return count;
    }
    return row < first ? 0 : smaller(count, row - first + 1);
}

/* How long a head of v and o is. */
static size_t value_width(const KernelAttentionShape *shape) {
    return shape->v_dim ? shape->v_dim : shape->head_dim;
}

/* The first key that a query sees. */
static size_t first_seen(const KernelAttentionShape *shape, size_t row) {
    return shape->window && row >= shape->window ? row - shape->window + 1 : 0;
}

/* Scores before the window count as what no query sees. */
KERNEL_INLINE void hide_row(float *row, size_t seen, size_t query, size_t first,
                            const KernelAttentionShape *shape) {
    size_t from = first_seen(shape, query);
    size_t end = from > first ? smaller(seen, from - first) : 0;
    for (size_t j = 0; j < end; j++) {
        row[j] = -INFINITY;
    }
}

/* Adds slope (key - query) to a row of S. */
KERNEL_INLINE void lean_row(float *row, size_t seen, float slope, size_t query, size_t first) {
    float from = (float)first - (float)query;

    KERNEL_LOOP
    for (size_t j = 0; j < seen; j++) {
        row[j] += slope * (from + (float)(int)j);
    }
}

/* Adds a row of the bias, whose numbers for this head are so far apart. */
KERNEL_INLINE void bias_row(float *row, size_t seen, const float *bias, size_t apart) {
    for (size_t j = 0; j < seen; j++) {
        row[j] += bias[j * apart];
    }
}

/* What is added to the scores of a head. */
typedef struct {
    float slope;
    const float *bias; /* of query 0 and key 0; NULL: none */
    size_t apart;      /* elements from its number for a key to the next one's */
} Added;

static Added added_to(const KernelAttentionShape *shape, const float *bias, size_t batch,
                      size_t head) {
    size_t from = shape->masked ? batch * shape->seq_q * shape->seq_kv : head;
    return (Added){kernel_alibi_slope(head, shape->heads, shape->alibi), bias ? bias + from : NULL,
                   shape->masked ? 1 : shape->heads};
}

KERNEL_INLINE void add_to_row(float *row, size_t seen, const Added *added, size_t query,
                              size_t first, const KernelAttentionShape *shape) {
    if (added->slope != 0.0f) {
        lean_row(row, seen, added->slope, query, first);
    }
    if (added->bias) {
        bias_row(row, seen, added->bias + (query * shape->seq_kv + first) * added->apart,
                 added->apart);
    }
    hide_row(row, seen, query, first, shape);
}

/* A maximum may pass NaN over (max_f32()). */
KERNEL_INLINE bool has_nan(const float *row, size_t n) {
    for (size_t j = 0; j < n; j++) {
        if (isnan(row[j])) {
            return true;
        }
    }
    return false;
}

/* Turns a row of S (seen of count columns) into P in place; updates the running maximum and sum,
 * and returns what the output so far must be multiplied with. */
KERNEL_INLINE float fold_row(float *row, size_t seen, size_t count, float *maximum, float *total) {
    float largest = max_f32(row, seen, *maximum);
    float sum = 0.0f;

    if (largest == -INFINITY && !has_nan(row, seen)) { /* the bias hides all keys so far */
        kernel_zero_f32(row, count);
        return 1.0f;
    }
    KERNEL_SUM(sum)
    for (size_t j = 0; j < seen; j++) {
        float p = exp_f32(row[j] - largest);

        row[j] = p;
        sum += p;
    }
    kernel_zero_f32(row + seen, count - seen);

    float correction = exp_f32(*maximum - largest);

    *maximum = largest;
    *total = *total * correction + sum;
    return correction;
}

/* One block of queries of one head, against all keys it may see. */
KERNEL_INLINE void forward_block(float *o, size_t o_stride, float *logsumexp, const float *q,
                                 size_t q_stride, const float *k, size_t k_stride, const float *v,
                                 size_t v_stride, size_t q_first, size_t q_count,
                                 const Added *added, const KernelAttentionShape *shape) {
    size_t width = shape->head_dim, v_width = value_width(shape);
    size_t kv_start = first_seen(shape, q_first) / KV_BLOCK * KV_BLOCK;
    size_t kv_end = shape->causal ? smaller(shape->seq_kv, q_first + q_count) : shape->seq_kv;
    float maximum[Q_BLOCK];
    float total[Q_BLOCK];
    float block[Q_BLOCK * KV_BLOCK];

    for (size_t i = 0; i < q_count; i++) {
        maximum[i] = -INFINITY;
        total[i] = 0.0f;
    }
    for (size_t first = kv_start; first < kv_end; first += KV_BLOCK) {
        size_t count = smaller(KV_BLOCK, kv_end - first);

        kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_TRANSPOSE, q_count, count, width, shape->scale,
                        q, q_stride, k + first * k_stride, k_stride, 0.0f, block, count);
        for (size_t i = 0; i < q_count; i++) {
            size_t seen = keys_seen(shape, q_first + i, first, count);
            add_to_row(block + i * count, seen, added, q_first + i, first, shape);
            float correction = fold_row(block + i * count, seen, count, &maximum[i], &total[i]);

            if (first > kv_start && correction != 1.0f) {
                float *o_row = o + i * o_stride;

                KERNEL_LOOP
                for (size_t d = 0; d < v_width; d++) {
                    o_row[d] *= correction;
                }
            }
        }
        kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_NO_TRANSPOSE, q_count, v_width, count, 1.0f,
                        block, count, v + first * v_stride, v_stride,
                        first > kv_start ? 1.0f : 0.0f, o, o_stride);
    }
    for (size_t i = 0; i < q_count; i++) {
        float share = 1.0f / total[i];
        float *o_row = o + i * o_stride;

        if (logsumexp) {
            logsumexp[i] = maximum[i] + (float)log((double)total[i]);
        }
        KERNEL_LOOP
        for (size_t d = 0; d < v_width; d++) {
            o_row[d] *= share;
        }
    }
}

KERNEL(void, kernel_attention_forward_f32)
(float *o, float *logsumexp, size_t lse_stride, KernelConstView q, KernelConstView k,
 KernelConstView v, const float *bias, const KernelAttentionShape *shape) {
    size_t width = value_width(shape);
    size_t o_stride = shape->heads * width;
    size_t group = shape->heads / shape->kv_heads;

    for (size_t b = 0; b < shape->batch; b++) {
        for (size_t h = 0; h < shape->heads; h++) {
            const float *q_head = q.data + b * q.batch_stride + h * q.head_stride;
            const float *k_head = k.data + b * k.batch_stride + h / group * k.head_stride;
            const float *v_head = v.data + b * v.batch_stride + h / group * v.head_stride;
            float *o_head = o + b * shape->seq_q * o_stride + h * width;
            size_t lse_first = (b * shape->heads + h) * lse_stride;
            Added added = added_to(shape, bias, b, h);

            for (size_t first = 0; first < shape->seq_q; first += Q_BLOCK) {
                forward_block(o_head + first * o_stride, o_stride,
                              logsumexp ? logsumexp + lse_first + first : NULL,
                              q_head + first * q.seq_stride, q.seq_stride, k_head, k.seq_stride,
                              v_head, v.seq_stride, first, smaller(Q_BLOCK, shape->seq_q - first),
                              &added, shape);
            }
        }
    }
}

/* P in place of S, given the logsumexp of the row. */
KERNEL_INLINE void remake_row(float *row, size_t seen, size_t count, float logsumexp) {
    KERNEL_LOOP
    for (size_t j = 0; j < seen; j++) {
        row[j] = exp_f32(row[j] - logsumexp);
    }
    kernel_zero_f32(row + seen, count - seen);
}

/* dS in place of dP; and without its scale, where it is wanted, the bias's gradient. */
KERNEL_INLINE void score_gradient_row(float *d_row, float *d_bias, const float *p_row, size_t count,
                                      const float *d_o, const float *o, size_t width, float scale) {
    float dot = 0.0f;

    KERNEL_SUM(dot)
    for (size_t d = 0; d < width; d++) {
        dot += d_o[d] * o[d];
    }
    if (d_bias) {
        KERNEL_LOOP
        for (size_t j = 0; j < count; j++) {
            d_bias[j] = p_row[j] * (d_row[j] - dot);
        }
    }
    KERNEL_LOOP
    for (size_t j = 0; j < count; j++) {
        d_row[j] = scale * p_row[j] * (d_row[j] - dot);
    }
}

static void zero_rows(float *rows, size_t stride, size_t count, size_t width) {
    for (size_t i = 0; i < count; i++) {
        kernel_zero_f32(rows + i * stride, width);
    }
}

/* The data of one query head and the key head it reads, in one batch element. */
typedef struct {
    float *dq, *dk, *dv, *d_bias; /* d_bias [seq_q, seq_kv]; NULL: not wanted */
    const float *q, *k, *v, *o, *d_o, *logsumexp;
    size_t dq_stride, dk_stride, dv_stride, q_stride, k_stride, v_stride, o_stride;
    Added added;
} Head;

KERNEL_INLINE void backward_block(const Head *head, size_t q_first, size_t q_count, size_t kv_first,
                                  size_t kv_count, const KernelAttentionShape *shape) {
    size_t width = shape->head_dim, v_width = value_width(shape);
    const float *q = head->q + q_first * head->q_stride;
    const float *k = head->k + kv_first * head->k_stride;
    const float *v = head->v + kv_first * head->v_stride;
    const float *o = head->o + q_first * head->o_stride;
    const float *d_o = head->d_o + q_first * head->o_stride;
    float p[Q_BLOCK * KV_BLOCK];
    float ds[Q_BLOCK * KV_BLOCK];

    kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_TRANSPOSE, q_count, kv_count, width, shape->scale,
                    q, head->q_stride, k, head->k_stride, 0.0f, p, kv_count);
    kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_TRANSPOSE, q_count, kv_count, v_width, 1.0f, d_o,
                    head->o_stride, v, head->v_stride, 0.0f, ds, kv_count);
    for (size_t i = 0; i < q_count; i++) {
        size_t seen = keys_seen(shape, q_first + i, kv_first, kv_count);

        float *d_bias =
            head->d_bias ? head->d_bias + (q_first + i) * shape->seq_kv + kv_first : NULL;

        add_to_row(p + i * kv_count, seen, &head->added, q_first + i, kv_first, shape);
        remake_row(p + i * kv_count, seen, kv_count, head->logsumexp[q_first + i]);
        score_gradient_row(ds + i * kv_count, d_bias, p + i * kv_count, kv_count,
                           d_o + i * head->o_stride, o + i * head->o_stride, v_width, shape->scale);
    }
    kernel_gemm_f32(KERNEL_TRANSPOSE, KERNEL_NO_TRANSPOSE, kv_count, v_width, q_count, 1.0f, p,
                    kv_count, d_o, head->o_stride, 1.0f, head->dv + kv_first * head->dv_stride,
                    head->dv_stride);
    kernel_gemm_f32(KERNEL_TRANSPOSE, KERNEL_NO_TRANSPOSE, kv_count, width, q_count, 1.0f, ds,
                    kv_count, q, head->q_stride, 1.0f, head->dk + kv_first * head->dk_stride,
                    head->dk_stride);
    kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_NO_TRANSPOSE, q_count, width, kv_count, 1.0f, ds,
                    kv_count, k, head->k_stride, 1.0f, head->dq + q_first * head->dq_stride,
                    head->dq_stride);
}

/* Adds one query head's part to dk and dv, and writes its dq. */
KERNEL_INLINE void backward_head(const Head *head, const KernelAttentionShape *shape) {
    zero_rows(head->dq, head->dq_stride, shape->seq_q, shape->head_dim);
    for (size_t kv_first = 0; kv_first < shape->seq_kv; kv_first += KV_BLOCK) {
        size_t kv_count = smaller(KV_BLOCK, shape->seq_kv - kv_first);
        size_t q_start = shape->causal ? kv_first / Q_BLOCK * Q_BLOCK : 0;
        size_t q_end = shape->window
                           ? smaller(shape->seq_q, kv_first + kv_count + shape->window - 1)
                           : shape->seq_q;

        for (size_t q_first = q_start; q_first < q_end; q_first += Q_BLOCK) {
            backward_block(head, q_first, smaller(Q_BLOCK, shape->seq_q - q_first), kv_first,
                           kv_count, shape);
        }
    }
}

KERNEL(void, kernel_attention_backward_f32)
(KernelView dq, KernelView dk, KernelView dv, float *d_bias, const float *d_o, KernelConstView q,
 KernelConstView k, KernelConstView v, const float *bias, const float *o, const float *logsumexp,
 size_t lse_stride, const KernelAttentionShape *shape) {
    size_t width = value_width(shape);
    size_t o_stride = shape->heads * width;
    size_t group = shape->heads / shape->kv_heads;

    for (size_t b = 0; b < shape->batch; b++) {
        for (size_t h = 0; h < shape->heads; h++) {
            size_t kv = h / group;
            size_t o_offset = b * shape->seq_q * o_stride + h * width;
            size_t pairs = shape->seq_q * shape->seq_kv;
            Head head = {
                .dq = dq.data + b * dq.batch_stride + h * dq.head_stride,
                .dk = dk.data + b * dk.batch_stride + kv * dk.head_stride,
                .dv = dv.data + b * dv.batch_stride + kv * dv.head_stride,
                .d_bias = d_bias ? d_bias + (b * shape->heads + h) * pairs : NULL,
                .q = q.data + b * q.batch_stride + h * q.head_stride,
                .k = k.data + b * k.batch_stride + kv * k.head_stride,
                .v = v.data + b * v.batch_stride + kv * v.head_stride,
                .o = o + o_offset,
                .d_o = d_o + o_offset,
                .logsumexp = logsumexp + (b * shape->heads + h) * lse_stride,
                .dq_stride = dq.seq_stride,
                .dk_stride = dk.seq_stride,
                .dv_stride = dv.seq_stride,
                .q_stride = q.seq_stride,
                .k_stride = k.seq_stride,
                .v_stride = v.seq_stride,
                .o_stride = o_stride,
                .added = added_to(shape, bias, b, h),
            };

            if (d_bias && shape->causal) {
                kernel_zero_f32(head.d_bias, pairs); /* the blocks that are skipped */
            }
            if (h % group == 0) {
                zero_rows(head.dk, dk.seq_stride, shape->seq_kv, shape->head_dim);
                zero_rows(head.dv, dv.seq_stride, shape->seq_kv, width);
            }
            backward_head(&head, shape);
        }
    }
}
