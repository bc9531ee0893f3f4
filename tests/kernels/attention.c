/* tests/kernels/attention.c - blockwise attention against the plain one in double. */
#include "kernels/host/attention/attention.h"
#include "tests/kernels/check.h"

typedef enum {
    LAYOUT_BSHD,   /* q, k, v each contiguous [batch, seq, heads, width] */
    LAYOUT_BHSD,   /* each contiguous [batch, heads, seq, width] */
    LAYOUT_PACKED, /* one [batch, seq, heads + 2 kv_heads, width] */
} Layout;

typedef struct {
    KernelAttentionShape shape;
    Layout layout;
    size_t q_at, k_at, v_at, bias_at, size; /* elements, in one array of all inputs */
    bool has_bias;
    float *array; /* borrowed: that array */
} Case;

static size_t value_width(const KernelAttentionShape *s) {
    return s->v_dim ? s->v_dim : s->head_dim;
}

/* The views of an array of all inputs (or of their gradients). */
static void views(const Case *test, float *array, KernelView *q, KernelView *k, KernelView *v) {
    const KernelAttentionShape *s = &test->shape;
    size_t all = s->heads + 2 * s->kv_heads;

    switch (test->layout) {
    case LAYOUT_BSHD:
        *q = kernel_view_bshd(array + test->q_at, s->seq_q, s->heads, s->head_dim);
        *k = kernel_view_bshd(array + test->k_at, s->seq_kv, s->kv_heads, s->head_dim);
        *v = kernel_view_bshd(array + test->v_at, s->seq_kv, s->kv_heads, value_width(s));
        break;
    case LAYOUT_BHSD:
        *q = kernel_view_bhsd(array + test->q_at, s->seq_q, s->heads, s->head_dim);
        *k = kernel_view_bhsd(array + test->k_at, s->seq_kv, s->kv_heads, s->head_dim);
        *v = kernel_view_bhsd(array + test->v_at, s->seq_kv, s->kv_heads, value_width(s));
        break;
    case LAYOUT_PACKED:
    default:
        *q = kernel_view_bshd(array, s->seq_q, all, s->head_dim);
        *k = kernel_view_bshd(array, s->seq_q, all, s->head_dim);
        *v = kernel_view_bshd(array, s->seq_q, all, s->head_dim);
        k->data += s->heads * s->head_dim;
        v->data += (s->heads + s->kv_heads) * s->head_dim;
        break;
    }
}

static size_t offset(KernelView view, const float *base, size_t b, size_t s, size_t h) {
    return (size_t)(view.data - base) + b * view.batch_stride + s * view.seq_stride +
           h * view.head_stride;
}

static const float *bias_of(const Case *test, const float *array) {
    return test->has_bias ? array + test->bias_at : NULL;
}

static size_t bias_elements(const KernelAttentionShape *s) {
    return s->heads * s->seq_q * s->seq_kv;
}

/* By a list, as MPT's code makes it: the slopes of the next power of two; if those are too many,
 * every other one from the second, then every other one from the first. */
static double slope_of(const KernelAttentionShape *s, size_t head) {
    double slopes[64], most = (double)s->alibi;
    size_t n = 1, order[64], k = 0;
    if (most == 0) {
        return 0;
    }
    while (n < s->heads) {
        n *= 2;
    }
    for (size_t i = 0; i < n; i++) {
        slopes[i] = 1 / pow(2, (double)(i + 1) * most / (double)n);
        order[i] = i;
    }
    for (size_t from = 2; n != s->heads && from-- > 0;) {
        for (size_t i = from; i < n; i += 2) {
            order[k++] = i;
        }
    }
    return slopes[order[head]];
}

/* What is added to a score. */
static double added(const Case *test, const double *in, size_t head, size_t query, size_t key) {
    const KernelAttentionShape *s = &test->shape;
    size_t at = test->bias_at + (query * s->seq_kv + key) * s->heads + head;
    return slope_of(s, head) * ((double)key - (double)query) + (test->has_bias ? in[at] : 0);
}

static size_t first_seen(const KernelAttentionShape *s, size_t query) {
    return s->window && query + 1 > s->window ? query + 1 - s->window : 0;
}

/* out is o[batch, seq_q, heads, head_dim], then logsumexp[batch, heads, seq_q]. */
static void plain(const double *in, double *out, gpointer data) {
    const Case *test = data;
    const KernelAttentionShape *s = &test->shape;
    float *base = test->array;
    KernelView q, k, v;
    g_autofree double *p = g_new(double, s->seq_kv);
    double *lse = out + s->batch * s->seq_q * s->heads * value_width(s);

    views(test, base, &q, &k, &v); /* for the offsets; the values come from in */
    for (size_t b = 0; b < s->batch; b++) {
        for (size_t h = 0; h < s->heads; h++) {
            size_t kv = h / (s->heads / s->kv_heads);

            for (size_t i = 0; i < s->seq_q; i++) {
                const double *q_row = in + offset(q, base, b, i, h);
                double *o_row = out + ((b * s->seq_q + i) * s->heads + h) * value_width(s);
                size_t seen = s->causal && i + 1 < s->seq_kv ? i + 1 : s->seq_kv;
                size_t first = first_seen(s, i);
                double largest = -INFINITY, total = 0.0;

                for (size_t j = first; j < seen; j++) {
                    p[j] = added(test, in, h, i, j);
                    for (size_t d = 0; d < s->head_dim; d++) {
                        p[j] += (double)s->scale * q_row[d] * in[offset(k, base, b, j, kv) + d];
                    }
                    largest = MAX(largest, p[j]);
                }
                for (size_t d = 0; d < value_width(s); d++) {
                    o_row[d] = 0.0;
                }
                for (size_t j = first; j < seen; j++) {
                    p[j] = exp(p[j] - largest);
                    total += p[j];
                    for (size_t d = 0; d < value_width(s); d++) {
                        o_row[d] += p[j] * in[offset(v, base, b, j, kv) + d];
                    }
                }
                for (size_t d = 0; d < value_width(s); d++) {
                    o_row[d] /= total;
                }
                lse[(b * s->heads + h) * s->seq_q + i] = largest + log(total);
            }
        }
    }
}

static Case new_case(KernelAttentionShape shape, Layout layout, bool has_bias) {
    size_t q = shape.batch * shape.seq_q * shape.heads * shape.head_dim;
    size_t k = shape.batch * shape.seq_kv * shape.kv_heads * shape.head_dim;
    size_t v = shape.batch * shape.seq_kv * shape.kv_heads * value_width(&shape);

    size_t bias = has_bias ? bias_elements(&shape) : 0;

    return (Case){.shape = shape,
                  .layout = layout,
                  .k_at = q,
                  .v_at = q + k,
                  .bias_at = q + k + v,
                  .size = q + k + v + bias,
                  .has_bias = has_bias};
}

/* Forward for any case; scores reach far enough apart for the running maximum to matter. */
static void try_forward_of(KernelAttentionShape shape, Layout layout, bool has_bias) {
    Case test = new_case(shape, layout, has_bias);
    size_t n_out = shape.batch * shape.seq_q * shape.heads * value_width(&shape);
    size_t lse_stride = shape.seq_q + 3;
    size_t n_lse = shape.batch * shape.heads * lse_stride;
    g_autofree float *in = check_random(test.size, -3, 3, 1);
    g_autofree float *o = check_poisoned(n_out);
    g_autofree float *lse = check_poisoned(n_lse);
    g_autofree float *lse_row = check_poisoned(shape.seq_q);
    g_autofree double *wide = check_doubles(in, test.size);
    g_autofree double *want = g_new(double, n_out + shape.batch * shape.heads * shape.seq_q);
    KernelView q, k, v;

    test.array = in;
    views(&test, in, &q, &k, &v);
    plain(wide, want, &test);
    kernel_attention_forward_f32(o, lse, lse_stride, kernel_view_const(q), kernel_view_const(k),
                                 kernel_view_const(v), bias_of(&test, in), &shape);
    check_close("attention_forward o", o, want, n_out, 2e-6, 2e-5);
    for (size_t r = 0; r < shape.batch * shape.heads; r++) {
        memcpy(lse_row, lse + r * lse_stride, shape.seq_q * sizeof *lse);
        check_close("attention_forward logsumexp", lse_row, want + n_out + r * shape.seq_q,
                    shape.seq_q, 2e-6, 2e-6);
        for (size_t i = shape.seq_q; i < lse_stride; i++) {
            g_assert_true(isnan(lse[r * lse_stride + i]));
        }
    }
    check_guard("attention_forward logsumexp", lse, n_lse);
}

static void try_forward(KernelAttentionShape shape, Layout layout) {
    try_forward_of(shape, layout, false);
    try_forward_of(shape, layout, true);
}

static void test_forward(void) {
    const size_t lengths[] = {1, 3, 33, 127, 128, 129, 300};

    for (size_t l = 0; l < G_N_ELEMENTS(lengths); l++) {
        for (int causal = 0; causal < 2; causal++) {
            KernelAttentionShape shape = {2, 4, 2, lengths[l], lengths[l], 7, 0.4f, causal != 0};

            try_forward(shape, LAYOUT_BSHD);
            try_forward(shape, LAYOUT_BHSD);
            try_forward(shape, LAYOUT_PACKED);
        }
    }
    try_forward((KernelAttentionShape){1, 3, 3, 5, 200, 16, 0.25f, false}, LAYOUT_BSHD);
    try_forward((KernelAttentionShape){1, 3, 1, 200, 5, 16, 0.25f, true}, LAYOUT_BHSD);
    try_forward((KernelAttentionShape){1, 6, 1, 140, 270, 64, 0.125f, true}, LAYOUT_BSHD);
    try_forward((KernelAttentionShape){1, 6, 2, 300, 300, 16, 0.25f, true, 8}, LAYOUT_PACKED);
    try_forward((KernelAttentionShape){2, 8, 8, 40, 40, 16, 0.25f, false, 8}, LAYOUT_BSHD);
    try_forward((KernelAttentionShape){2, 4, 2, 150, 150, 12, 0.3f, true, .v_dim = 8}, LAYOUT_BSHD);
    try_forward((KernelAttentionShape){2, 3, 3, 140, 30, 8, 0.3f, false, .v_dim = 20}, LAYOUT_BHSD);
    const size_t windows[] = {1, 2, 127, 128, 129, 299, 300, 301};
    for (size_t i = 0; i < G_N_ELEMENTS(windows); i++) {
        try_forward((KernelAttentionShape){1, 4, 2, 300, 300, 7, 0.4f, true, 0, windows[i]},
                    LAYOUT_PACKED);
    }
}

/* A bias of -INFINITY hides what causality would, and whole blocks of keys before the first one. */
static void test_hidden_keys(void) {
    enum {
        SEQ = 300,
        DIM = 8
    };
    KernelAttentionShape shape = {1, 1, 1, SEQ, SEQ, DIM, 0.5f, true}, hiding = shape;
    g_autofree float *in = check_random(3 * SEQ * DIM, -2, 2, 1);
    g_autofree float *want = check_poisoned(SEQ * DIM), *o = check_poisoned(SEQ * DIM);
    g_autofree float *lse = check_poisoned(SEQ), *bias = g_new(float, SEQ *SEQ);
    KernelConstView q = kernel_const_view_bshd(in, SEQ, 1, DIM);
    KernelConstView k = kernel_const_view_bshd(in + SEQ * DIM, SEQ, 1, DIM);
    KernelConstView v = kernel_const_view_bshd(in + 2 * SEQ * DIM, SEQ, 1, DIM);

    hiding.causal = false;
    for (size_t i = 0; i < SEQ * SEQ; i++) {
        bias[i] = i % SEQ > i / SEQ ? -INFINITY : 0.0f;
    }
    kernel_attention_forward_f32(want, lse, SEQ, q, k, v, NULL, &shape);
    kernel_attention_forward_f32(o, lse, SEQ, q, k, v, bias, &hiding);
    g_autofree double *wide = check_doubles(want, SEQ * DIM);
    check_close("attention_forward, hidden keys", o, wide, SEQ * DIM, 1e-6, 1e-6);
    for (size_t i = 0; i < SEQ * SEQ; i++) {
        bias[i] = i % SEQ == SEQ - 1 ? 0.0f : -INFINITY;
    }
    kernel_attention_forward_f32(o, lse, SEQ, q, k, v, bias, &hiding);
    for (size_t i = 0; i < SEQ * DIM; i++) {
        g_assert_cmpfloat(o[i], ==, v.data[(SEQ - 1) * DIM + i % DIM]);
    }
}

/* A query that sees a key of NaN gets NaN, also where all keys of a block are; no other does. */
static void test_nan(void) {
    enum {
        SEQ = 300,
        DIM = 8,
        FROM = 128, /* the second block of keys */
        END = 256
    };
    KernelAttentionShape shape = {1, 1, 1, SEQ, SEQ, DIM, 0.5f, true};
    g_autofree float *in = check_random(3 * SEQ * DIM, -2, 2, 1);
    g_autofree float *o = check_poisoned(SEQ * DIM), *lse = check_poisoned(SEQ);
    KernelConstView q = kernel_const_view_bshd(in, SEQ, 1, DIM);
    KernelConstView k = kernel_const_view_bshd(in + SEQ * DIM, SEQ, 1, DIM);
    KernelConstView v = kernel_const_view_bshd(in + 2 * SEQ * DIM, SEQ, 1, DIM);

    for (size_t first = 0; first <= FROM; first += FROM) {
        g_autofree float *copy = g_memdup2(in, 3 * SEQ * DIM * sizeof *in);
        size_t end = first ? END : FROM;

        for (size_t i = first * DIM; i < end * DIM; i++) {
            copy[SEQ * DIM + i] = NAN;
        }
        k.data = copy + SEQ * DIM;
        kernel_attention_forward_f32(o, lse, SEQ, q, k, v, NULL, &shape);
        for (size_t i = 0; i < SEQ; i++) {
            g_assert_true(isnan(o[i * DIM]) == (i >= first));
            g_assert_true(isnan(lse[i]) == (i >= first));
        }
    }
}

/* A mask that hides what a window does, another window in each sequence, gives what it gives. */
static void test_masks(void) {
    enum {
        SEQ = 150,
        HEADS = 3,
        DIM = 4,
        N = SEQ * HEADS * DIM
    };
    KernelAttentionShape one = {1, HEADS, HEADS, SEQ, SEQ, DIM, 0.5f, true}, masked = one;
    g_autofree float *in = check_random(2 * 4 * N, -2, 2, 1), *mask = g_new(float, 2 * SEQ * SEQ);
    g_autofree float *want = check_poisoned(2 * 4 * N), *out = check_poisoned(2 * 4 * N);
    g_autofree float *lse = check_poisoned(2 * HEADS * SEQ);

    masked.batch = 2;
    masked.causal = false;
    masked.masked = true;
    for (size_t b = 0; b < 2; b++) {
        float *x = in + b * N, *y = want + b * N;
        KernelConstView q = kernel_const_view_bshd(x, SEQ, HEADS, DIM);
        KernelConstView k = kernel_const_view_bshd(x + 2 * N, SEQ, HEADS, DIM);
        KernelConstView v = kernel_const_view_bshd(x + 4 * N, SEQ, HEADS, DIM);
        one.window = 10 + 130 * b;
        for (size_t i = 0; i < SEQ; i++) {
            for (size_t j = 0; j < SEQ; j++) {
                bool seen = j <= i && i - j < one.window;
                mask[(b * SEQ + i) * SEQ + j] = seen ? 0.0f : -INFINITY;
            }
        }
        kernel_attention_forward_f32(y, lse, SEQ, q, k, v, NULL, &one);
        kernel_attention_backward_f32(kernel_view_bshd(y + 2 * N, SEQ, HEADS, DIM),
                                      kernel_view_bshd(y + 4 * N, SEQ, HEADS, DIM),
                                      kernel_view_bshd(y + 6 * N, SEQ, HEADS, DIM), NULL, x + 6 * N,
                                      q, k, v, NULL, y, lse, SEQ, &one);
    }
    KernelConstView q = kernel_const_view_bshd(in, SEQ, HEADS, DIM);
    KernelConstView k = kernel_const_view_bshd(in + 2 * N, SEQ, HEADS, DIM);
    KernelConstView v = kernel_const_view_bshd(in + 4 * N, SEQ, HEADS, DIM);
    kernel_attention_forward_f32(out, lse, SEQ, q, k, v, mask, &masked);
    kernel_attention_backward_f32(kernel_view_bshd(out + 2 * N, SEQ, HEADS, DIM),
                                  kernel_view_bshd(out + 4 * N, SEQ, HEADS, DIM),
                                  kernel_view_bshd(out + 6 * N, SEQ, HEADS, DIM), NULL, in + 6 * N,
                                  q, k, v, mask, out, lse, SEQ, &masked);
    g_autofree double *wide = check_doubles(want, 2 * 4 * N);
    check_close("attention, masks", out, wide, 2 * 4 * N, 1e-5, 1e-5);
}

/* The backward in double, from formulas; itself held against central differences below. */
static void plain_backward(const Case *test, const double *in, const float *d_o, double *d_in) {
    const KernelAttentionShape *s = &test->shape;
    size_t n_out = s->batch * s->seq_q * s->heads * value_width(s);
    g_autofree double *out = g_new(double, n_out + s->batch * s->heads * s->seq_q);
    float *base = test->array;
    KernelView q, k, v;

    plain(in, out, (gpointer)test);
    views(test, base, &q, &k, &v);
    memset(d_in, 0, test->size * sizeof *d_in);
    for (size_t b = 0; b < s->batch; b++) {
        for (size_t h = 0; h < s->heads; h++) {
            size_t kv = h / (s->heads / s->kv_heads);

            for (size_t i = 0; i < s->seq_q; i++) {
                size_t at_q = offset(q, base, b, i, h);
                size_t at_o = ((b * s->seq_q + i) * s->heads + h) * value_width(s);
                double lse = out[n_out + (b * s->heads + h) * s->seq_q + i];
                size_t seen = s->causal && i + 1 < s->seq_kv ? i + 1 : s->seq_kv;
                double dot = 0.0;

                for (size_t d = 0; d < value_width(s); d++) {
                    dot += (double)d_o[at_o + d] * out[at_o + d];
                }
                for (size_t j = first_seen(s, i); j < seen; j++) {
                    size_t at_k = offset(k, base, b, j, kv);
                    size_t at_v = offset(v, base, b, j, kv);
                    double score = added(test, in, h, i, j), dp = 0.0;

                    for (size_t d = 0; d < s->head_dim; d++) {
                        score += (double)s->scale * in[at_q + d] * in[at_k + d];
                    }
                    for (size_t d = 0; d < value_width(s); d++) {
                        dp += (double)d_o[at_o + d] * in[at_v + d];
                    }

                    double p = exp(score - lse);
                    double ds = (double)s->scale * p * (dp - dot);

                    if (test->has_bias) {
                        d_in[test->bias_at + (i * s->seq_kv + j) * s->heads + h] += p * (dp - dot);
                    }

                    for (size_t d = 0; d < value_width(s); d++) {
                        d_in[at_v + d] += p * (double)d_o[at_o + d];
                    }
                    for (size_t d = 0; d < s->head_dim; d++) {
                        d_in[at_q + d] += ds * in[at_k + d];
                        d_in[at_k + d] += ds * in[at_q + d];
                    }
                }
            }
        }
    }
}

typedef enum {
    AGAINST_FORMULAS,
    AGAINST_DIFFERENCES,
} Reference;

/* The bias's gradient of each batch element, summed and turned as the bias lies. */
static void gather_bias_gradient(const KernelAttentionShape *s, const float *d_bias, float *sum) {
    size_t pairs = s->seq_q * s->seq_kv;

    for (size_t i = 0; i < pairs * s->heads; i++) {
        sum[i] = 0.0f;
        for (size_t b = 0; b < s->batch; b++) {
            sum[i] += d_bias[(b * s->heads + i % s->heads) * pairs + i / s->heads];
        }
    }
}

static void try_backward_of(KernelAttentionShape shape, Layout layout, Reference reference,
                            bool has_bias) {
    Case test = new_case(shape, layout, has_bias);
    size_t n_out = shape.batch * shape.seq_q * shape.heads * value_width(&shape);
    size_t n_lse = shape.batch * shape.heads * shape.seq_q;
    g_autofree float *in = check_random(test.size, -2, 2, 1);
    g_autofree float *d_in = check_poisoned(test.size);
    g_autofree float *d_out = check_random(n_out + n_lse, -1, 1, 2);
    g_autofree float *o = check_poisoned(n_out);
    g_autofree float *lse = check_poisoned(n_lse);
    g_autofree double *wide = check_doubles(in, test.size);
    g_autofree double *want = g_new(double, test.size);
    g_autofree float *d_bias =
        has_bias ? check_poisoned(shape.batch * bias_elements(&shape)) : NULL;
    KernelView q, k, v, dq, dk, dv;

    for (size_t i = 0; i < n_lse; i++) {
        d_out[n_out + i] = 0.0f; /* nothing depends on the logsumexp */
    }
    test.array = in;
    views(&test, in, &q, &k, &v);
    views(&test, d_in, &dq, &dk, &dv);
    kernel_attention_forward_f32(o, lse, shape.seq_q, kernel_view_const(q), kernel_view_const(k),
                                 kernel_view_const(v), bias_of(&test, in), &shape);
    kernel_attention_backward_f32(dq, dk, dv, d_bias, d_out, kernel_view_const(q),
                                  kernel_view_const(k), kernel_view_const(v), bias_of(&test, in), o,
                                  lse, shape.seq_q, &shape);
    if (has_bias) {
        check_guard("attention_backward, bias", d_bias, shape.batch * bias_elements(&shape));
        gather_bias_gradient(&shape, d_bias, d_in + test.bias_at);
    }
    switch (reference) {
    case AGAINST_FORMULAS:
        plain_backward(&test, wide, d_out, want);
        check_close("attention_backward", d_in, want, test.size, 1e-5, 5e-5);
        break;
    case AGAINST_DIFFERENCES:
        check_gradient("attention_backward", d_in, plain, &test, wide, test.size, d_out,
                       n_out + n_lse, 1e-5, 1e-5);
        break;
    }
}

static void try_backward(KernelAttentionShape shape, Layout layout, Reference reference) {
    try_backward_of(shape, layout, reference, false);
    try_backward_of(shape, layout, reference, true);
}

static void test_backward_differences(void) {
    for (int causal = 0; causal < 2; causal++) {
        KernelAttentionShape shape = {2, 4, 2, 7, 7, 3, 0.6f, causal != 0};

        try_backward(shape, LAYOUT_BSHD, AGAINST_DIFFERENCES);
        try_backward(shape, LAYOUT_PACKED, AGAINST_DIFFERENCES);
        shape.v_dim = 5;
        try_backward(shape, LAYOUT_BSHD, AGAINST_DIFFERENCES);
        shape.v_dim = 2;
        try_backward(shape, LAYOUT_BHSD, AGAINST_DIFFERENCES);
        shape.v_dim = 0;
        shape.seq_q = 1;
        try_backward(shape, LAYOUT_BHSD, AGAINST_DIFFERENCES);
        shape.seq_q = 9;
        try_backward(shape, LAYOUT_BHSD, AGAINST_DIFFERENCES);
        shape = (KernelAttentionShape){1, 6, 2, 7, 7, 3, 0.6f, causal != 0, 8};
        try_backward(shape, LAYOUT_PACKED, AGAINST_DIFFERENCES);
    }
    try_backward((KernelAttentionShape){2, 4, 2, 7, 7, 3, 0.6f, true, 0, 3}, LAYOUT_PACKED,
                 AGAINST_DIFFERENCES);
}

static void test_backward_blocks(void) {
    for (int causal = 0; causal < 2; causal++) {
        KernelAttentionShape shape = {1, 4, 2, 300, 300, 9, 0.3f, causal != 0};

        try_backward(shape, LAYOUT_PACKED, AGAINST_FORMULAS);
        shape.alibi = 8;
        try_backward(shape, LAYOUT_PACKED, AGAINST_FORMULAS);
        shape.alibi = 0;
        shape.seq_kv = 129;
        try_backward(shape, LAYOUT_BHSD, AGAINST_FORMULAS);
        shape.seq_q = 33;
        try_backward(shape, LAYOUT_BSHD, AGAINST_FORMULAS);
    }
    const size_t windows[] = {1, 127, 128, 129, 299};
    for (size_t i = 0; i < G_N_ELEMENTS(windows); i++) {
        try_backward((KernelAttentionShape){1, 4, 2, 300, 300, 9, 0.3f, true, 0, windows[i]},
                     LAYOUT_PACKED, AGAINST_FORMULAS);
    }
}

/* Scores in the thousands overflow exp() unless the maximum is taken out first. */
static void test_large_scores(void) {
    KernelAttentionShape shape = {1, 1, 1, 2, 2, 1, 1.0f, false};
    float q[2] = {100.0f, -100.0f}, k[2] = {50.0f, -50.0f}, v[2] = {1.0f, 2.0f};
    float o[2], lse[2];

    kernel_attention_forward_f32(o, lse, 2, kernel_const_view_bshd(q, 2, 1, 1),
                                 kernel_const_view_bshd(k, 2, 1, 1),
                                 kernel_const_view_bshd(v, 2, 1, 1), NULL, &shape);
    g_assert_cmpfloat(o[0], ==, 1.0f);
    g_assert_cmpfloat(o[1], ==, 2.0f);
    g_assert_cmpfloat(lse[0], ==, 5000.0f);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/attention/forward", test_forward);
    g_test_add_func("/kernels/attention/hidden-keys", test_hidden_keys);
    g_test_add_func("/kernels/attention/nan", test_nan);
    g_test_add_func("/kernels/attention/masks", test_masks);
    g_test_add_func("/kernels/attention/backward-differences", test_backward_differences);
    g_test_add_func("/kernels/attention/backward-blocks", test_backward_blocks);
    g_test_add_func("/kernels/attention/large-scores", test_large_scores);
    return g_test_run();
}
