/* exec/host/traced-products.c - calls of traced networks that are products: of matrices, and
 * attention, which is several. Convolutions: traced-windows.c. */
#include <math.h>
#include <string.h>

#include "exec/host/traced-private.h"
#include "kernels/host/products/matmul.h"
#include "kernels/host/rows/loss.h"
#include "kernels/host/traced/tensor-rows.h"

/* ---- matrices ------------------------------------------------------------------------------- */

/* As BLAS sees it: rows, or columns, that lie so far apart. */
typedef struct {
    const float *data;
    KernelTranspose transpose;
    size_t apart;
} Matrix;

static KernelTensor matrix_at(const KernelTensor *t, size_t i) {
    KernelTensor matrix = *t;
    if (t->n_dims == 3) {
        matrix = kernel_tensor_part(t, 0, i, 1);
        matrix.n_dims = 2;
        memmove(matrix.sizes, t->sizes + 1, 2 * sizeof *t->sizes);
        memmove(matrix.strides, t->strides + 1, 2 * sizeof *t->strides);
    }
    return matrix;
}

/* Its floats where they lie, if either side is without gaps; else a copy. */
static Matrix matrix_of(TracedRun *r, const KernelTensor *t, size_t i) {
    KernelTensor m = matrix_at(t, i);
    size_t rows = m.sizes[0], cols = m.sizes[1];
    bool floats = m.dtype == KERNEL_FP32 && rows > 1 && cols > 1;
    if (floats && m.strides[1] == 1 && m.strides[0] >= cols) {
        return (Matrix){m.data, KERNEL_NO_TRANSPOSE, m.strides[0]};
    }
    if (floats && m.strides[0] == 1 && m.strides[1] >= rows) {
        return (Matrix){m.data, KERNEL_TRANSPOSE, m.strides[1]};
    }
    return (Matrix){traced_floats(r, &m), KERNEL_NO_TRANSPOSE, cols};
}

/* y = alpha a b + beta y, where y has been filled unless beta is 0; of each matrix. */
static void multiply(TracedRun *r, float *y, const KernelTensor *a, const KernelTensor *b,
                     float alpha, float beta) {
    unsigned first = a->n_dims - 2;
    size_t batch = first ? a->sizes[0] : 1;
    size_t m = a->sizes[first], k = a->sizes[first + 1], n = b->sizes[first + 1];
    for (size_t i = 0; i < batch; i++) {
        Matrix left = matrix_of(r, a, i), right = matrix_of(r, b, i);
        kernel_gemm_f32(left.transpose, right.transpose, m, n, k, alpha, left.data, left.apart,
                        right.data, right.apart, beta, y + i * m * n, n);
    }
}

static KernelTensor dense_of(const KernelTensor *shape, float *data) {
    KernelTensor dense = *shape;
    dense.data = data;
    dense.dtype = KERNEL_FP32;
    size_t step = 1;
    for (unsigned i = dense.n_dims; i-- > 0; step *= dense.sizes[i]) {
        dense.strides[i] = step;
    }
    return dense;
}

bool host_run_mm(TracedRun *r, const TracedRule *rule, GError **error) {
    multiply(r, traced_result_of(r, 0), traced_tensor(r->call, 0), traced_tensor(r->call, 1), 1, 0);
    return true;
}

/* To what stands before the product, times beta. */
bool host_run_addmm(TracedRun *r, const TracedRule *rule, GError **error) {
    double beta = traced_arg(r->call, 3)->number, alpha = traced_arg(r->call, 4)->number;
    float *y = traced_result_of(r, 0);
    KernelTensor filled = dense_of(traced_made(r->call, 0), y);
    if (beta != 0) {
        kernel_tensor_each(KERNEL_EACH_COPY, &filled, traced_tensor(r->call, 0), 1, 0, 0);
    }
    multiply(r, y, traced_tensor(r->call, 1), traced_tensor(r->call, 2), (float)alpha, (float)beta);
    return true;
}

/* ---- attention ------------------------------------------------------------------------------ */

/* Where the operands of each sequence's each head lie: [batch, heads, seq, dim]. */
typedef struct {
    const float *q, *k, *v;
    const KernelTensor *bias; /* NULL: none */
    size_t batch, heads, kv_heads, rows, keys, dim, v_dim;
    float scale;
    bool causal;
} Attention;

static Attention attention_of(TracedRun *r, unsigned q, double scale, bool causal) {
    const KernelTensor *qt = traced_tensor(r->call, q), *kt = traced_tensor(r->call, q + 1),
                       *vt = traced_tensor(r->call, q + 2);
    return (Attention){.q = traced_floats(r, qt),
                       .k = traced_floats(r, kt),
                       .v = traced_floats(r, vt),
                       .batch = qt->sizes[0],
                       .heads = qt->sizes[1],
                       .kv_heads = kt->sizes[1],
                       .rows = qt->sizes[2],
                       .keys = kt->sizes[2],
                       .dim = qt->sizes[3],
                       .v_dim = vt->sizes[3],
                       .scale = (float)(scale ? scale : 1 / sqrt((double)qt->sizes[3])),
                       .causal = causal};
}

static double scale_of(const TracedRun *r, unsigned i) {
    return traced_is(r->call, i) ? traced_arg(r->call, i)->number : 0;
}

static void take_bias(Attention *a, const TracedRun *r, unsigned i) {
    a->bias = traced_is(r->call, i) ? traced_tensor(r->call, i) : NULL;
}

static size_t kv_head_of(const Attention *a, size_t head) {
    return head / a->heads * a->kv_heads + head % a->heads / (a->heads / a->kv_heads);
}

/* scale q k^T + bias, and -inf where a row sees no key. */
static void score(const Attention *a, size_t head, float *scores) {
    const float *q = a->q + head * a->rows * a->dim;
    const float *k = a->k + kv_head_of(a, head) * a->keys * a->dim;
    if (a->bias) {
        KernelTensor part = kernel_tensor_part(a->bias, 0, head / a->heads, 1);
        part = kernel_tensor_part(&part, 1, head % a->heads, 1);
        kernel_tensor_read_f32(scores, &part);
    }
    kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_TRANSPOSE, a->rows, a->keys, a->dim, a->scale, q,
                    a->dim, k, a->dim, a->bias ? 1 : 0, scores, a->keys);
    for (size_t i = 0; a->causal && i < a->rows; i++) {
        for (size_t j = i + 1; j < a->keys; j++) {
            scores[i * a->keys + j] = -INFINITY;
        }
    }
}

static float most_of(const float *row, size_t n) {
    float most = -INFINITY;
    for (size_t j = 0; j < n; j++) {
        most = row[j] > most ? row[j] : most;
    }
    return most;
}

static float log_sum(const float *row, size_t n) {
    float most = most_of(row, n);
    double sum = 0;
    for (size_t j = 0; j < n && most > -INFINITY; j++) {
        sum += exp((double)(row[j] - most));
    }
    return most + (float)log(sum);
}

/* In place; a row that sees no key becomes zeros. */
static void soften(float *scores, size_t rows, size_t keys) {
    for (size_t i = 0; i < rows; i++) {
        float *row = scores + i * keys;
        if (most_of(row, keys) > -INFINITY) {
            kernel_softmax_forward_f32(row, row, 1, keys);
        } else {
            memset(row, 0, keys * sizeof *row);
        }
    }
}

/* lse: a row's of each head, `apart` numbers from one head to the next; NULL: not asked for. */
static void attend(TracedRun *r, const Attention *a, float *o, float *lse, size_t apart) {
    float *scores = traced_scratch(r, a->rows * a->keys * sizeof *scores);
    for (size_t head = 0; head < a->batch * a->heads; head++) {
        score(a, head, scores);
        for (size_t i = 0; lse && i < a->rows; i++) {
            lse[head * apart + i] = log_sum(scores + i * a->keys, a->keys);
        }
        soften(scores, a->rows, a->keys);
        kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_NO_TRANSPOSE, a->rows, a->v_dim, a->keys, 1,
                        scores, a->keys, a->v + kv_head_of(a, head) * a->keys * a->v_dim, a->v_dim,
                        0, o + head * a->rows * a->v_dim, a->v_dim);
    }
}

typedef struct {
    float *dq, *dk, *dv; /* dk, dv: zero at first */
    const KernelTensor *d_bias;
} AttentionGradients;

/* With p the softmax: dv = p^T do; ds = p (do v^T - the row's sum of do o); dq and dk of ds. */
static void attend_backward(TracedRun *r, const Attention *a, const float *d_o, const float *o,
                            const AttentionGradients *made) {
    size_t pairs = a->rows * a->keys;
    float *p = traced_scratch(r, pairs * sizeof *p), *ds = traced_scratch(r, pairs * sizeof *ds);
    for (size_t head = 0; head < a->batch * a->heads; head++) {
        size_t kv = kv_head_of(a, head);
        const float *head_do = d_o + head * a->rows * a->v_dim;
        const float *head_o = o + head * a->rows * a->v_dim;
        score(a, head, p);
        soften(p, a->rows, a->keys);
        kernel_gemm_f32(KERNEL_TRANSPOSE, KERNEL_NO_TRANSPOSE, a->keys, a->v_dim, a->rows, 1, p,
                        a->keys, head_do, a->v_dim, 1, made->dv + kv * a->keys * a->v_dim,
                        a->v_dim);
        kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_TRANSPOSE, a->rows, a->keys, a->v_dim, 1,
                        head_do, a->v_dim, a->v + kv * a->keys * a->v_dim, a->v_dim, 0, ds,
                        a->keys);
        for (size_t i = 0; i < a->rows; i++) {
            double sum = 0;
            for (size_t d = 0; d < a->v_dim; d++) {
                sum += (double)head_do[i * a->v_dim + d] * head_o[i * a->v_dim + d];
            }
            for (size_t j = 0; j < a->keys; j++) {
                ds[i * a->keys + j] = p[i * a->keys + j] * (ds[i * a->keys + j] - (float)sum);
            }
        }
        if (made->d_bias) {
            KernelTensor part = kernel_tensor_part(made->d_bias, 0, head / a->heads, 1);
            part = kernel_tensor_part(&part, 1, head % a->heads, 1);
            kernel_tensor_write_f32(&part, ds);
        }
        kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_NO_TRANSPOSE, a->rows, a->dim, a->keys,
                        a->scale, ds, a->keys, a->k + kv * a->keys * a->dim, a->dim, 0,
                        made->dq + head * a->rows * a->dim, a->dim);
        kernel_gemm_f32(KERNEL_TRANSPOSE, KERNEL_NO_TRANSPOSE, a->keys, a->dim, a->rows, a->scale,
                        ds, a->keys, a->q + head * a->rows * a->dim, a->dim, 1,
                        made->dk + kv * a->keys * a->dim, a->dim);
    }
}

/* What a kernel tells of its random numbers is zero, as it draws none. */
static void clear_rest(const TracedRun *r, unsigned from) {
    for (unsigned i = from; i < r->call->n_made; i++) {
        const TracedArg *made = &r->call->made[i];
        if (made->of == TRACED_TENSOR && made->operand != PLAN_NONE && !made->is_foreign) {
            kernel_tensor_each(KERNEL_EACH_FILL, &made->tensor, NULL, 0, 0, 0);
        }
    }
}

static void run_forward(TracedRun *r, const Attention *a) {
    const KernelTensor *lse = traced_made(r->call, 1);
    bool wants_lse = kernel_tensor_count(lse) > 0;
    attend(r, a, traced_result_of(r, 0), wants_lse ? traced_result_of(r, 1) : NULL,
           wants_lse ? lse->sizes[2] : 0);
    clear_rest(r, 2);
}

/* (q, k, v, bias, compute_log_sumexp, dropout_p, is_causal, *, scale) */
bool host_run_efficient(TracedRun *r, const TracedRule *rule, GError **error) {
    Attention a = attention_of(r, 0, scale_of(r, 7), traced_integer(r->call, 6));
    take_bias(&a, r, 3);
    run_forward(r, &a);
    return true;
}

/* (q, k, v, dropout_p, is_causal, return_debug_mask, *, scale) */
bool host_run_flash(TracedRun *r, const TracedRule *rule, GError **error) {
    Attention a = attention_of(r, 0, scale_of(r, 6), traced_integer(r->call, 4));
    run_forward(r, &a);
    return true;
}

static float *cleared_result(TracedRun *r, unsigned i, const KernelTensor *like) {
    size_t n = kernel_tensor_count(like);
    float *made = traced_makes(r->call, i) && kernel_tensor_count(traced_made(r->call, i))
                      ? traced_result_of(r, i)
                      : traced_scratch(r, n * sizeof *made);
    memset(made, 0, n * sizeof *made);
    return made;
}

static void run_backward(TracedRun *r, const Attention *a, unsigned out) {
    bool wants_bias = traced_makes(r->call, 3) && kernel_tensor_count(traced_made(r->call, 3)) > 0;
    AttentionGradients made = {.dq = cleared_result(r, 0, traced_tensor(r->call, 1)),
                               .dk = cleared_result(r, 1, traced_tensor(r->call, 2)),
                               .dv = cleared_result(r, 2, traced_tensor(r->call, 3)),
                               .d_bias = wants_bias ? traced_made(r->call, 3) : NULL};
    attend_backward(r, a, traced_floats_of(r, 0), traced_floats_of(r, out), &made);
}

/* (grad_out, q, k, v, bias, out, lse, seed, offset, dropout_p, grad_input_mask, is_causal, *,
 * scale) */
bool host_run_efficient_backward(TracedRun *r, const TracedRule *rule, GError **error) {
    Attention a = attention_of(r, 1, scale_of(r, 12), traced_integer(r->call, 11));
    take_bias(&a, r, 4);
    run_backward(r, &a, 5);
    return true;
}

/* (grad_out, q, k, v, out, lse, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal,
 * philox_seed, philox_offset, *, scale) */
bool host_run_flash_backward(TracedRun *r, const TracedRule *rule, GError **error) {
    Attention a = attention_of(r, 1, scale_of(r, 14), traced_integer(r->call, 11));
    run_backward(r, &a, 4);
    return true;
}
