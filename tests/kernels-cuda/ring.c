/* tests/kernels-cuda/ring.c - attention of some rows to some keys, and what merges the turns of a
 * ring, against the host's kernels and exec/host/ring.c's formulas.
 */
#include <math.h>
#include <string.h>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/ranks/ring.h"
#include "kernels/host/attention/attention.h"
#include "tests/kernels-cuda/device.h"
#include "tests/kernels-cuda/slack.h"

/* ---- attention ------------------------------------------------------------------------------ */

/* The last seq of each sequence's rows of queries, the first `keys` of its keys, head by head. */
typedef struct {
    size_t batch, heads, kv_heads, rows, head_dim, seq, keys;
    bool causal;
} Case;

static const Case cases[] = {
    {2, 4, 2, 34, 32, 34, 34, true},    {2, 4, 2, 34, 32, 34, 17, false},
    {2, 4, 2, 34, 32, 17, 34, false},   {1, 2, 2, 2, 8, 2, 1, false},
    {1, 3, 1, 70, 64, 35, 70, false},   {3, 2, 2, 40, 128, 40, 20, false},
    {1, 1, 1, 24, 160, 12, 24, false},  {2, 2, 1, 18, 10, 18, 18, true},
    {1, 6, 2, 128, 64, 128, 64, false},
};

typedef struct {
    const Case *c;
    float *q, *k, *v, *d_o, *saved, *lse; /* d_o and saved of all rows */
    size_t q_row, skipped, n_all, n_q, n_kv, n_keys, n_lse;
    float scale;
} Host;

static void host_clear(Host *h) {
    float **all[] = {&h->q, &h->k, &h->v, &h->d_o, &h->saved, &h->lse};
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        g_clear_pointer(all[i], g_free);
    }
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Host, host_clear)

static Host new_host(const DeviceCase *d, const Case *c) {
    size_t q_row = c->heads * c->head_dim, kv_row = c->kv_heads * c->head_dim;
    Host h = {.c = c,
              .q_row = q_row,
              .skipped = (c->rows - c->seq) * q_row,
              .n_all = c->batch * c->rows * q_row,
              .n_q = c->batch * c->seq * q_row,
              .n_kv = c->batch * c->rows * kv_row,
              .n_keys = c->batch * c->keys * kv_row,
              .n_lse = c->batch * c->heads * c->seq,
              .scale = 1 / sqrtf((float)c->head_dim)};
    h.q = device_random(d, h.n_all, -2, 2, 1);
    h.k = device_random(d, h.n_kv, -2, 2, 2);
    h.v = device_random(d, h.n_kv, -2, 2, 3);
    h.d_o = device_random(d, h.n_all, -1, 1, 4);
    h.saved = device_random(d, h.n_all, -1, 1, 5);
    h.lse = g_new(float, h.n_lse);
    return h;
}

/* Of one sequence, as exec/host/ring.c takes them one by one. */
static KernelAttentionShape shape_of(const Host *h) {
    const Case *c = h->c;
    return (KernelAttentionShape){.batch = 1,
                                  .heads = c->heads,
                                  .kv_heads = c->kv_heads,
                                  .seq_q = c->seq,
                                  .seq_kv = c->keys,
                                  .head_dim = c->head_dim,
                                  .scale = h->scale,
                                  .causal = c->causal};
}

static KernelConstView queries(const Host *h, size_t b) {
    return (KernelConstView){h->q + b * h->c->rows * h->q_row + h->skipped, 0, h->q_row,
                             h->c->head_dim};
}

static KernelConstView keys(const Host *h, const float *x, size_t b) {
    size_t head = h->c->rows * h->c->head_dim;
    return (KernelConstView){x + b * h->c->kv_heads * head, 0, h->c->head_dim, head};
}

static void host_forward(const Host *h, float *o) {
    KernelAttentionShape shape = shape_of(h);
    size_t part = h->n_q / h->c->batch, lse_part = h->n_lse / h->c->batch;
    for (size_t b = 0; b < h->c->batch; b++) {
        kernel_attention_forward_f32(o + b * part, h->lse + b * lse_part, h->c->seq, queries(h, b),
                                     keys(h, h->k, b), keys(h, h->v, b), NULL, &shape);
    }
}

static KernelView key_gradients(const Host *h, float *x, size_t b) {
    size_t head = h->c->keys * h->c->head_dim;
    return (KernelView){x + b * h->c->kv_heads * head, 0, h->c->head_dim, head};
}

static void host_backward(const Host *h, float *dq, float *dk, float *dv) {
    KernelAttentionShape shape = shape_of(h);
    size_t part = h->n_q / h->c->batch, lse_part = h->n_lse / h->c->batch;
    for (size_t b = 0; b < h->c->batch; b++) {
        size_t first = b * h->c->rows * h->q_row + h->skipped;
        KernelView of_queries = {dq + b * part, 0, h->q_row, h->c->head_dim};
        kernel_attention_backward_f32(of_queries, key_gradients(h, dk, b), key_gradients(h, dv, b),
                                      NULL, h->d_o + first, queries(h, b), keys(h, h->k, b),
                                      keys(h, h->v, b), NULL, h->saved + first,
                                      h->lse + b * lse_part, h->c->seq, &shape);
    }
}

static void add_query(Slack *s, double rounding, const Host *h, size_t b, size_t head,
                      size_t query) {
    const Case *c = h->c;
    size_t dim = c->head_dim, kv_head = b * c->kv_heads + head / (c->heads / c->kv_heads);
    size_t shared = c->heads > c->kv_heads;
    size_t all = b * c->rows * h->q_row + h->skipped + query * h->q_row + head * dim;
    size_t at = (b * c->seq + query) * h->q_row + head * dim;
    float lse = h->lse[(b * c->heads + head) * c->seq + query];
    float row_dot = slack_dot(h->d_o + all, h->saved + all, dim);
    for (size_t key = 0; key < c->keys && (!c->causal || key <= query); key++) {
        size_t from = (kv_head * c->rows + key) * dim, kv_at = (kv_head * c->keys + key) * dim;
        SlackPair pair = {h->q + all, h->k + from, h->v + from, h->d_o + all,
                          lse,        row_dot,     at,          kv_at};
        slack_add(s, rounding, h->scale, shared, dim, &pair);
    }
}

static Slack slack_of(double rounding, const Host *h) {
    const Case *c = h->c;
    Slack slack = {g_new0(float, h->n_q), g_new0(float, h->n_q), g_new0(float, h->n_keys),
                   g_new0(float, h->n_keys)};
    for (size_t i = 0; i < c->batch * c->heads * c->seq; i++) {
        add_query(&slack, rounding, h, i / c->seq / c->heads, i / c->seq % c->heads, i % c->seq);
    }
    return slack;
}

static KernelCudaAttention on_device(const DeviceCase *d, const Host *h) {
    const Case *c = h->c;
    return (KernelCudaAttention){.batch = c->batch,
                                 .heads = c->heads,
                                 .kv_heads = c->kv_heads,
                                 .seq = c->seq,
                                 .head_dim = c->head_dim,
                                 .q_stride = h->q_row,
                                 .k_stride = c->head_dim,
                                 .v_stride = c->head_dim,
                                 .lse_stride = c->seq,
                                 .scale = h->scale,
                                 .causal = c->causal,
                                 .type = d->type,
                                 .keys = c->keys,
                                 .rows = c->rows,
                                 .by_head = true};
}

static void check_attention(const DeviceCase *d, const Case *c) {
    g_auto(Host) h = new_host(d, c);
    g_autofree float *o = g_new(float, h.n_q), *dq = g_new(float, h.n_q);
    g_autofree float *dk = g_new(float, h.n_keys), *dv = g_new(float, h.n_keys);
    KernelCudaAttention shape = on_device(d, &h);
    size_t skipped = h.skipped * kernel_cuda_type_bytes(d->type);
    char *q = device_put(d, h.q, h.n_all), *d_o = device_put(d, h.d_o, h.n_all);
    char *saved = device_put(d, h.saved, h.n_all);
    void *k = device_put(d, h.k, h.n_kv), *v = device_put(d, h.v, h.n_kv);
    void *got_o = device_new(d, h.n_q), *got_dq = device_new(d, h.n_q);
    void *got_dk = device_new(d, h.n_keys), *got_dv = device_new(d, h.n_keys);
    float *got_lse = device_new_floats(h.n_lse);
    uint64_t calls = kernel_cuda_attention_calls(device_lane, KERNEL_CUDA_ATTENTION_CUDNN);
    DEVICE_OK(kernel_cuda_attention_forward(device_lane, got_o, got_lse, q + skipped, k, v, NULL,
                                            &shape));
    bool rounds = kernel_cuda_attention_calls(device_lane, KERNEL_CUDA_ATTENTION_CUDNN) > calls;
    host_forward(&h, o);
    g_auto(Slack) slack = slack_of(rounds ? d->rounding : 0, &h);
    device_close_within("o", d, got_o, o, slack.o, h.n_q, 1e-5, 1e-5);
    device_close_floats("lse", got_lse, h.lse, h.n_lse, 2e-6, 2e-6);

    /* From sums that are right and an o that is any: as of a turn, whose o is not the whole's. */
    calls = kernel_cuda_attention_calls(device_lane, KERNEL_CUDA_ATTENTION_CUDNN);
    DEVICE_OK(kernel_cuda_attention_backward(
        device_lane, got_dq, got_dk, got_dv, NULL, d_o + skipped, q + skipped, k, v, NULL,
        saved + skipped, device_put_floats(h.lse, h.n_lse), &shape));
    rounds = kernel_cuda_attention_calls(device_lane, KERNEL_CUDA_ATTENTION_CUDNN) > calls;
    host_backward(&h, dq, dk, dv);
    g_auto(Slack) back = slack_of(rounds ? d->rounding : 0, &h);
    device_close_within("dq", d, got_dq, dq, back.dq, h.n_q, 2e-5, 2e-5);
    device_close_within("dk", d, got_dk, dk, back.dk, h.n_keys, 2e-5, 2e-5);
    device_close_within("dv", d, got_dv, dv, back.dv, h.n_keys, 2e-5, 2e-5);
}

static void test_attention_own(const DeviceCase *d) {
    kernel_cuda_attention_own_only(device_lane, true);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        check_attention(d, &cases[i]);
    }
    kernel_cuda_attention_own_only(device_lane, false);
}

/* By whichever way the machine has. On a GPU cuDNN makes a kernel for each, which takes a second or
 * so: of fp16, where it is the same graph, some suffice. */
static void test_attention(const DeviceCase *d) {
    size_t step = 1;
#ifndef KERNEL_EMULATED
    step = d->type == KERNEL_CUDA_F16 ? 4 : 1;
#endif
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i += step) {
        check_attention(d, &cases[i]);
    }
}

/* ---- sums of rows --------------------------------------------------------------------------- */

/* In fp32 beside the case's type, as gradients are added up. */
static DeviceCase in_floats(const DeviceCase *d) {
    return (DeviceCase){KERNEL_CUDA_F32, d->shift, 0};
}

/* Of y's row (of `rows` that are written) term t's element; 0 where it has none. */
static float term_at(const float *x, const KernelCudaRows *term, size_t rows, bool ahead, size_t o,
                     size_t row, size_t inner, size_t column) {
    size_t before = ahead ? 0 : rows - term->n;
    bool has = row >= before && row - before < term->n;
    return has ? x[(o * term->rows + term->first + row - before) * inner + column] : 0;
}

typedef struct {
    size_t outer, inner, y_rows, y_first, n; /* n of y's rows are written, from y_first on */
    size_t rows[3], first[3], rows_of[3];    /* of terms; rows of 0: no term */
    bool ahead, less, wide;                  /* wide: y and the first term are fp32 */
} Sum;

static const Sum sums[] = {
    {2, 6, 5, 0, 5, {5, 3, 0}, {0, 0, 0}, {5, 3, 0}, false, false, true},
    {3, 8, 8, 0, 8, {8, 4, 8}, {0, 0, 0}, {8, 4, 8}, false, false, true},
    {2, 8, 4, 0, 4, {8, 4, 0}, {4, 0, 0}, {4, 4, 0}, false, true, false},
    {3, 1, 7, 0, 7, {14, 7, 0}, {7, 0, 0}, {7, 7, 0}, false, true, false},
    {4, 16, 6, 0, 6, {6, 3, 0}, {0, 0, 0}, {6, 3, 0}, true, false, true},
    {1, 300, 2, 0, 2, {1, 2, 0}, {0, 0, 0}, {1, 2, 0}, false, false, false},
};

static void check_sum(const DeviceCase *d, const Sum *s) {
    DeviceCase wide = s->wide ? in_floats(d) : *d;
    KernelCudaRows terms[3];
    float *x[3] = {NULL};
    size_t n_terms = 0, n_y = s->outer * s->y_rows * s->inner;
    for (; n_terms < 3 && s->rows[n_terms]; n_terms++) {
        const DeviceCase *of = n_terms ? d : &wide;
        size_t n = s->outer * s->rows[n_terms] * s->inner;
        x[n_terms] = device_random(of, n, -2, 2, (guint32)n_terms);
        terms[n_terms] = (KernelCudaRows){device_put(of, x[n_terms], n), of->type, s->rows[n_terms],
                                          s->first[n_terms], s->rows_of[n_terms]};
    }
    g_autofree float *want = g_new(float, n_y);
    for (size_t i = 0; i < n_y; i++) {
        size_t column = i % s->inner, row = i / s->inner % s->y_rows, o = i / s->inner / s->y_rows;
        float sum = 0;
        for (size_t t = 0; t < n_terms; t++) {
            float term = term_at(x[t], &terms[t], s->n, s->ahead, o, row, s->inner, column);
            sum += s->less && t ? -term : term;
        }
        want[i] = sum;
    }
    KernelCudaRows y = {device_new(&wide, n_y), wide.type, s->y_rows, s->y_first, s->n};
    DEVICE_OK(kernel_cuda_sum_of_rows(device_lane, &y, terms, n_terms, s->ahead, s->less, s->outer,
                                      s->inner));
    device_equal("sum of rows", &wide, y.data, want, n_y);
    for (size_t t = 0; t < n_terms; t++) {
        g_free(x[t]);
    }
}

/* To some of y's rows, in place; the others are not touched. */
static void check_added(const DeviceCase *d, size_t outer, size_t inner, size_t n, size_t rows,
                        size_t from) {
    DeviceCase wide = in_floats(d);
    size_t n_x = outer * n * inner, n_y = outer * rows * inner;
    g_autofree float *x = device_random(d, n_x, -2, 2, 1);
    g_autofree float *y = device_random(&wide, n_y, -2, 2, 2);
    KernelCudaRows sum = {device_put(&wide, y, n_y), KERNEL_CUDA_F32, rows, from, n};
    KernelCudaRows terms[] = {sum, {device_put(d, x, n_x), d->type, n, 0, n}};
    for (size_t i = 0; i < n_x; i++) {
        size_t column = i % inner, row = i / inner % n, o = i / inner / n;
        y[(o * rows + from + row) * inner + column] += x[i];
    }
    DEVICE_OK(kernel_cuda_sum_of_rows(device_lane, &sum, terms, 2, false, false, outer, inner));
    device_equal("rows added", &wide, sum.data, y, n_y);
}

static void test_sums(const DeviceCase *d) {
    for (size_t i = 0; i < G_N_ELEMENTS(sums); i++) {
        check_sum(d, &sums[i]);
    }
    check_added(d, 3, 8, 4, 8, 4);
    check_added(d, 2, 5, 3, 7, 0);
    check_added(d, 1, 600, 1, 1, 0);
}

/* ---- merging -------------------------------------------------------------------------------- */

static const size_t shapes[][5] = {/* batch rows heads dim block_rows */
                                   {1, 1, 1, 1, 1},
                                   {2, 6, 3, 8, 3},
                                   {3, 4, 2, 5, 2},
                                   {1, 34, 4, 32, 17},
                                   {2, 9, 2, 64, 9}};

static void check_merge(const DeviceCase *d, const size_t *shape, bool first, bool last) {
    size_t batch = shape[0], rows = shape[1], heads = shape[2], dim = shape[3], n = shape[4];
    DeviceCase wide = in_floats(d);
    const DeviceCase *of_out = first ? d : &wide, *of_y = last ? d : &wide;
    size_t n_out = batch * rows * heads * dim, n_block = batch * n * heads * dim;
    size_t n_lse = n_out / dim, n_block_lse = n_block / dim;
    g_autofree float *out = device_random(of_out, n_out, -2, 2, 1);
    g_autofree float *block = device_random(d, n_block, -2, 2, 2);
    g_autofree float *out_lse = device_random(&wide, n_lse, -40, 40, 3);
    g_autofree float *block_lse = device_random(&wide, n_block_lse, -40, 40, 4);
    void *y = device_new(of_y, n_out), *in = device_put(of_out, out, n_out);
    float *lse = device_new_floats(n_lse), *in_lse = device_put_floats(out_lse, n_lse);
    for (size_t i = 0; i < n_block_lse * dim; i++) {
        size_t head = i / dim % heads, row = i / dim / heads % n, b = i / dim / heads / n;
        size_t at = ((b * rows + rows - n + row) * heads + head) * dim + i % dim;
        double less = (double)block_lse[(b * heads + head) * n + row] -
                      out_lse[(b * heads + head) * rows + rows - n + row];
        out[at] -= (float)((out[at] - (double)block[i]) / (1 + exp(-less)));
    }
    for (size_t i = 0; i < n_block_lse; i++) {
        size_t at = i / n * rows + rows - n + i % n;
        double most = fmax(out_lse[at], block_lse[i]);
        out_lse[at] = (float)(most + log(exp(out_lse[at] - most) + exp(block_lse[i] - most)));
    }
    KernelCudaMerge merge = {batch, rows, heads, dim, n, of_out->type, d->type, of_y->type};
    DEVICE_OK(kernel_cuda_merge_turn(device_lane, y, lse, in, in_lse, device_put(d, block, n_block),
                                     device_put_floats(block_lse, n_block_lse), &merge));
    device_close("merged", of_y, y, out, n_out, 2e-6, 2e-6);
    /* As in PyTorch, numbers that are up to 80 apart are subtracted in fp32: 2^-24 of that may be
     * lost, also where what is left is small. */
    device_close_floats("merged lse", lse, out_lse, n_lse, 80 * 0x1p-24, 1e-6);
}

static void test_merge(const DeviceCase *d) {
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        check_merge(d, shapes[s], true, false);
        check_merge(d, shapes[s], false, false);
        check_merge(d, shapes[s], false, true);
    }
}

static void test_heads(const DeviceCase *d) {
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t batch = shapes[s][0], rows = shapes[s][1], heads = shapes[s][2], dim = shapes[s][3];
        size_t n = batch * rows * heads * dim;
        DeviceCase wide = in_floats(d);
        g_autofree float *x = device_random(d, n, -2, 2, 1), *want = g_new(float, n);
        g_autofree float *column = device_random(d, n / dim, -2, 2, 2);
        g_autofree float *apart = device_random(&wide, n, -2, 2, 3), *cast = g_new(float, n);
        for (size_t i = 0; i < n; i++) {
            size_t head = i / dim % heads, row = i / dim / heads % rows, b = i / dim / heads / rows;
            size_t number = (b * heads + head) * rows + row;
            want[i] = x[i] * column[number];
            cast[i] = apart[number * dim + i % dim];
        }
        void *y = device_new(d, n), *in = device_put(d, x, n);
        DEVICE_OK(kernel_cuda_mul_heads(device_lane, y, in, device_put(d, column, n / dim), batch,
                                        rows, heads, dim, d->type));
        device_equal("rows times numbers", d, y, want, n);
        DEVICE_OK(kernel_cuda_cast_heads(device_lane, y, d->type, device_put(&wide, apart, n),
                                         KERNEL_CUDA_F32, batch, heads, rows, dim));
        device_equal("heads cast", d, y, cast, n);
    }
}

static void test_log_sigmoid(const DeviceCase *d) {
    enum {
        N = 1000
    };
    g_autofree float *x = device_random(d, N, -90, 90, 1), *want = g_new(float, N);
    for (size_t i = 0; i < N; i++) {
        x[i] = i % 2 ? x[i] : x[i] / 32;
    }
    void *y = device_new(d, N), *in = device_put(d, x, N);
    g_autofree float *stored = device_get(d, in, N);
    for (size_t i = 0; i < N; i++) {
        want[i] = (float)(fmin(stored[i], 0) - log1p(exp(-fabs((double)stored[i]))));
    }
    DEVICE_OK(kernel_cuda_log_sigmoid(device_lane, y, in, N, d->type));
    device_close("log of sigmoid", d, y, want, N, 1e-6, 1e-37);
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/ring/attention-own", test_attention_own);
    DEVICE_TEST("/kernels-cuda/ring/attention", test_attention);
    DEVICE_TEST("/kernels-cuda/ring/sums", test_sums);
    DEVICE_TEST("/kernels-cuda/ring/merge", test_merge);
    DEVICE_TEST("/kernels-cuda/ring/heads", test_heads);
    DEVICE_TEST("/kernels-cuda/ring/log-sigmoid", test_log_sigmoid);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
