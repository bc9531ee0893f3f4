/* exec/cuda/ops/traced-products.c - calls of traced networks that are products: of matrices, and
 * attention. */
#include <math.h>
#include <string.h>

#include "exec/cuda/ops/traced-private.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/products/matmul.h"

/* ---- matrices ------------------------------------------------------------------------------- */

/* A tensor of two sides, or of three of which the first counts matrices, as products take it: as it
 * lies, if one of its last two sides has no gaps; else a copy. */
static KernelCudaMatrices matrices_of(TracedGpu *r, const KernelTensor *t, KernelDtype dtype) {
    unsigned first = t->n_dims - 2;
    size_t rows = t->sizes[first], cols = t->sizes[first + 1], n = first ? t->sizes[0] : 1;
    size_t down = t->strides[first], across = t->strides[first + 1];
    bool there = t->dtype == dtype && rows > 1 && cols > 1;
    KernelCudaMatrices m = {.data = t->data, .head_stride = first ? t->strides[0] : 0};
    if (there && across == 1 && down >= cols) {
        m.row_stride = down;
    } else if (there && down == 1 && across >= rows) {
        m.row_stride = across;
        m.transposed = true;
    } else {
        m.data = (void *)gpu_dense(r, t, dtype);
        m.row_stride = cols;
        m.head_stride = rows * cols;
    }
    m.batch_stride = n * m.head_stride;
    return m;
}

/* Whether both lie without gaps, as in one of a linear layer's three products. */
static bool are_linear(const KernelCudaMatrices *a, const KernelCudaMatrices *b, size_t rows,
                       size_t inner, size_t cols) {
    return a->row_stride == (a->transposed ? rows : inner) &&
           b->row_stride == (b->transposed ? inner : cols) && !(a->transposed && b->transposed);
}

/* Those know a way round rows of odd length (kernels/cuda/products/matmul.h). */
static KernelCudaFault multiply_linear(KernelCuda *k, void *y, const KernelCudaMatrices *a,
                                       const KernelCudaMatrices *b, size_t rows, size_t inner,
                                       size_t cols, KernelCudaType type) {
    return a->transposed /* dy^T x */
               ? kernel_cuda_linear_backward_weight(k, y, a->data, b->data, inner, rows, cols, type)
               : b->transposed /* x w^T */
                     ? kernel_cuda_linear_forward(k, y, a->data, b->data, NULL, rows, cols, inner,
                                                  type)
                     : kernel_cuda_linear_backward_input(k, y, a->data, b->data, rows, inner, cols,
                                                         type);
}

static void multiply(TracedGpu *r, void *y, const KernelTensor *a, const KernelTensor *b,
                     KernelDtype dtype) {
    unsigned first = a->n_dims - 2;
    size_t n = first ? a->sizes[0] : 1, rows = a->sizes[first], inner = a->sizes[first + 1];
    size_t cols = b->sizes[first + 1];
    KernelCudaMatrices left = matrices_of(r, a, dtype), right = matrices_of(r, b, dtype);
    KernelCudaMatrices made = {y, n * rows * cols, rows * cols, cols, false};
    if (n == 1 && are_linear(&left, &right, rows, inner, cols)) {
        TRACED_LAUNCH(
            r, multiply_linear(r->kernels, y, &left, &right, rows, inner, cols, gpu_type(dtype)));
        return;
    }
    TRACED_LAUNCH(r, kernel_cuda_heads_matmul(r->kernels, made, left, right, 1, n, rows, cols,
                                              inner, gpu_type(dtype)));
}

void gpu_run_mm(TracedGpu *r, const TracedRule *rule) {
    KernelDtype dtype = gpu_dtype_of(traced_tensor(r->call, 0));
    multiply(r, gpu_result_of(r, 0, dtype), traced_tensor(r->call, 0), traced_tensor(r->call, 1),
             dtype);
}

/* A linear layer's: rows by a weight that lies as it does there, and a bias. */
static bool is_linear(const TracedGpu *r, KernelDtype dtype) {
    const KernelTensor *bias = traced_tensor(r->call, 0), *x = traced_tensor(r->call, 1),
                       *w = traced_tensor(r->call, 2);
    KernelTensor turned = *w;
    turned.sizes[0] = w->sizes[1], turned.sizes[1] = w->sizes[0];
    turned.strides[0] = w->strides[1], turned.strides[1] = w->strides[0];
    const KernelTensor *all[] = {bias, x, &turned, traced_made(r->call, 0)};
    bool is = x->n_dims == 2 && bias->n_dims == 1 && traced_arg(r->call, 3)->number == 1 &&
              traced_arg(r->call, 4)->number == 1;
    for (unsigned i = 0; i < G_N_ELEMENTS(all) && is; i++) {
        is = all[i]->dtype == dtype && kernel_tensor_is_dense(all[i]);
    }
    return is;
}

static KernelTensor times(TracedGpu *r, const KernelTensor *t, double factor) {
    KernelTensor made = gpu_dense_like(t, gpu_room(r, t, KERNEL_FP32), KERNEL_FP32);
    KernelTensor given[] = {*t, {.dtype = KERNEL_FP32}};
    TRACED_LAUNCH(r, kernel_cuda_tensor_each(r->kernels, KERNEL_EACH_MULTIPLY, &made, given,
                                             (const double[]){0, factor}, 2, 0, 0));
    return made;
}

/* beta self + alpha a b; where beta is 0 whatever self holds. */
void gpu_run_addmm(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *a = traced_tensor(r->call, 1), *b = traced_tensor(r->call, 2),
                       *made = traced_made(r->call, 0);
    KernelDtype dtype = gpu_dtype_of(a);
    double beta = traced_arg(r->call, 3)->number, alpha = traced_arg(r->call, 4)->number;
    if (is_linear(r, dtype)) {
        TRACED_LAUNCH(r, kernel_cuda_linear_forward(r->kernels, made->data, a->data, b->data,
                                                    traced_tensor(r->call, 0)->data, a->sizes[0],
                                                    b->sizes[1], a->sizes[1], gpu_type(dtype)));
        return;
    }
    KernelTensor product = gpu_dense_like(made, gpu_room(r, made, dtype), dtype);
    multiply(r, product.data, a, b, dtype);
    KernelTensor both[] = {*traced_tensor(r->call, 0), product};
    if (beta == 0 || (beta != 1 && alpha != 1)) {
        both[0] = beta == 0 ? (KernelTensor){.dtype = KERNEL_FP32} : times(r, &both[0], beta);
        beta = 1;
    }
    KernelTensor turned[] = {product, both[0]};
    TRACED_LAUNCH(r, kernel_cuda_tensor_each(r->kernels, KERNEL_EACH_ADD, made,
                                             beta == 1 ? both : turned, (const double[]){0, 0}, 2,
                                             beta == 1 ? alpha : beta, 0));
}

/* ---- attention ------------------------------------------------------------------------------ */

/* [batch, heads, rows, dim] as [batch, rows, heads, dim]. */
static KernelTensor by_tokens(const KernelTensor *t) {
    KernelTensor turned = *t;
    turned.sizes[1] = t->sizes[2], turned.sizes[2] = t->sizes[1];
    turned.strides[1] = t->strides[2], turned.strides[2] = t->strides[1];
    return turned;
}

/* Heads of a token side by side, tokens so far apart, sequences one behind the other. */
static bool lies_in_rows(const KernelTensor *t, KernelDtype dtype) {
    size_t row = t->sizes[2] * t->sizes[3];
    bool heads = t->sizes[2] == 1 || t->strides[2] == t->sizes[3];
    bool sequences = t->sizes[0] == 1 || t->strides[0] == t->sizes[1] * t->strides[1];
    return t->dtype == dtype && t->strides[3] == 1 && heads && sequences && t->strides[1] >= row;
}

static const void *rows_of(TracedGpu *r, unsigned i, KernelDtype dtype, size_t *ret_stride) {
    KernelTensor t = by_tokens(traced_tensor(r->call, i));
    bool there = lies_in_rows(&t, dtype);
    *ret_stride = there ? t.strides[1] : t.sizes[2] * t.sizes[3];
    return there ? t.data : gpu_dense(r, &t, dtype);
}

static void *made_rows(TracedGpu *r, unsigned i, const KernelTensor *like, KernelDtype dtype) {
    KernelTensor t = by_tokens(traced_makes(r->call, i) ? traced_made(r->call, i) : like);
    return traced_makes(r->call, i) ? gpu_result(r, &t, dtype) : gpu_room(r, like, dtype);
}

typedef struct {
    KernelCudaAttention shape;
    const void *q, *k, *v, *bias;
} Attention;

/* Where the call's arguments stand: q, k and v behind each other, a bias only if bias > 0. */
typedef struct {
    unsigned q, bias, causal, scale, out;
} Places;

/* Takes what is added to each score; a stride of 0 lets many scores share an element. */
static void take_bias(Attention *a, TracedGpu *r, unsigned i, KernelDtype dtype) {
    KernelTensor bias = *traced_tensor(r->call, i);
    a->bias = bias.data;
    if (bias.dtype != dtype) {
        a->bias = gpu_dense(r, &bias, dtype);
        bias = gpu_dense_like(&bias, a->bias, dtype);
    }
    a->shape.scored = true;
    memcpy(a->shape.bias_strides, bias.strides, sizeof a->shape.bias_strides);
}

static Attention attention_of(TracedGpu *r, const Places *at) {
    unsigned q = at->q, scale = at->scale;
    const KernelTensor *qt = traced_tensor(r->call, q), *kt = traced_tensor(r->call, q + 1);
    size_t v_dim = traced_tensor(r->call, q + 2)->sizes[3];
    KernelDtype dtype = gpu_dtype_of(qt);
    Attention a = {.shape = {.batch = qt->sizes[0],
                             .heads = qt->sizes[1],
                             .kv_heads = kt->sizes[1],
                             .seq = qt->sizes[2],
                             .head_dim = qt->sizes[3],
                             .causal = traced_integer(r->call, at->causal) != 0,
                             .type = gpu_type(dtype),
                             .v_dim = v_dim == qt->sizes[3] ? 0 : v_dim,
                             .keys = kt->sizes[2]}};
    if (at->bias && traced_is(r->call, at->bias)) {
        take_bias(&a, r, at->bias, dtype);
    }
    double given = traced_is(r->call, scale) ? traced_arg(r->call, scale)->number : 0;
    a.shape.scale = (float)(given ? given : 1 / sqrt((double)qt->sizes[3]));
    a.q = rows_of(r, q, dtype, &a.shape.q_stride);
    a.k = rows_of(r, q + 1, dtype, &a.shape.k_stride);
    a.v = rows_of(r, q + 2, dtype, &a.shape.v_stride);
    return a;
}

/* What a kernel tells of its random numbers is zero, as it draws none. */
static void clear_rest(TracedGpu *r, unsigned from) {
    for (unsigned i = from; i < r->call->n_made; i++) {
        const TracedArg *made = &r->call->made[i];
        if (made->of == TRACED_TENSOR && made->operand != PLAN_NONE && !made->is_foreign) {
            gpu_fill(r, &made->tensor, 0);
        }
    }
}

static void forward(TracedGpu *r, const Places *at) {
    Attention a = attention_of(r, at);
    const KernelTensor *sums = traced_made(r->call, 1), *vt = traced_tensor(r->call, 2);
    KernelTensor like = *traced_tensor(r->call, 0);
    like.sizes[3] = vt->sizes[3];
    void *o = made_rows(r, 0, &like, (KernelDtype)a.shape.type);
    float *lse = gpu_result_of(r, 1, KERNEL_FP32);
    a.shape.lse_stride = lse ? sums->sizes[2] : a.shape.seq;
    TRACED_LAUNCH(
        r, kernel_cuda_attention_forward(r->kernels, o, lse, a.q, a.k, a.v, a.bias, &a.shape));
    clear_rest(r, 2);
}

/* (q, k, v, bias, compute_log_sumexp, dropout_p, is_causal, *, scale) */
void gpu_run_efficient(TracedGpu *r, const TracedRule *rule) {
    forward(r, &(Places){.q = 0, .bias = 3, .causal = 6, .scale = 7});
}

/* (q, k, v, dropout_p, is_causal, return_debug_mask, *, scale) */
void gpu_run_flash(TracedGpu *r, const TracedRule *rule) {
    forward(r, &(Places){.q = 0, .causal = 4, .scale = 6});
}

/* out: where the output stands, and behind it the sums of rows. */
static void backward(TracedGpu *r, const Places *at) {
    Attention a = attention_of(r, at);
    KernelDtype dtype = (KernelDtype)a.shape.type;
    KernelTensor d_o = by_tokens(traced_tensor(r->call, 0)),
                 o = by_tokens(traced_tensor(r->call, at->out));
    const void *given = gpu_dense(r, &d_o, dtype), *made = gpu_dense(r, &o, dtype);
    const float *lse = gpu_dense_of(r, at->out + 1, KERNEL_FP32);
    void *dq = made_rows(r, 0, traced_tensor(r->call, 1), dtype);
    void *dk = made_rows(r, 1, traced_tensor(r->call, 2), dtype);
    void *dv = made_rows(r, 2, traced_tensor(r->call, 3), dtype);
    void *d_bias = at->bias ? gpu_result_of(r, 3, dtype) : NULL;
    a.shape.lse_stride = traced_tensor(r->call, at->out + 1)->sizes[2];
    TRACED_LAUNCH(r, kernel_cuda_attention_backward(r->kernels, dq, dk, dv, d_bias, given, a.q, a.k,
                                                    a.v, a.bias, made, lse, &a.shape));
}

/* (grad_out, q, k, v, bias, out, lse, seed, offset, dropout_p, grad_input_mask, is_causal, *,
 * scale) */
void gpu_run_efficient_backward(TracedGpu *r, const TracedRule *rule) {
    backward(r, &(Places){.q = 1, .bias = 4, .causal = 11, .scale = 12, .out = 5});
}

/* (grad_out, q, k, v, out, lse, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal,
 * philox_seed, philox_offset, *, scale) */
void gpu_run_flash_backward(TracedGpu *r, const TracedRule *rule) {
    backward(r, &(Places){.q = 1, .causal = 11, .scale = 14, .out = 4});
}

/* q: where q stands; lse: where a row's sums are given. */
static const char *attention_unless(const TracedCall *call, unsigned q, const TracedArg *lse) {
    size_t widest = MAX(traced_tensor(call, q)->sizes[3], traced_tensor(call, q + 2)->sizes[3]);
    bool sums = lse->of == TRACED_TENSOR && lse->tensor.n_dims == 3;
    return widest > KERNEL_CUDA_WIDEST_HEAD            ? "of heads that are wider than 1024"
           : !sums || lse->tensor.dtype != KERNEL_FP32 ? "without sums of rows in fp32"
           : lse->tensor.sizes[2] && lse->tensor.sizes[2] < traced_tensor(call, q)->sizes[2]
               ? "with too few sums"
               : NULL;
}

const char *gpu_attention_why_not(const TracedCall *call) {
    return attention_unless(call, 0, &call->made[1]);
}

const char *gpu_efficient_backward_why_not(const TracedCall *call) {
    return attention_unless(call, 1, &call->args[6]);
}

const char *gpu_flash_backward_why_not(const TracedCall *call) {
    return attention_unless(call, 1, &call->args[5]);
}
