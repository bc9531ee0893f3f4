/* tests/kernels-cuda/attention.c - attention by one kernel against the host's. */
#include <math.h>
#include <string.h>

#include "kernels/cuda/attention/attention.h"
#include "kernels/host/attention/attention.h"
#include "kernels/host/attention/view.h"
#include "tests/kernels-cuda/device.h"
#include "tests/kernels-cuda/slack.h"

typedef struct {
    size_t batch, heads, kv_heads, seq, head_dim;
    bool causal;
    float alibi;
    bool has_bias;
} Case;

static const Case cases[] = {
    {1, 1, 1, 1, 4, false},           {2, 2, 2, 33, 16, false},
    {2, 4, 2, 70, 32, true},          {1, 2, 1, 40, 64, false},
    {1, 4, 4, 65, 64, true},          {1, 3, 1, 37, 128, true},
    {1, 1, 1, 20, 10, true},          {1, 2, 2, 18, 160, true},
    {1, 1, 1, 17, 256, false},        {1, 6, 2, 70, 32, true, 8},
    {2, 4, 4, 33, 64, false, 8},      {2, 3, 3, 70, 32, false, 0, true},
    {1, 4, 2, 41, 64, true, 8, true}, {1, 2, 1, 11, 257, true},
    {1, 2, 2, 7, 1000, true, 8},
};

/* What attention reads, as the host has it; rows of q, k and v are parts of one row. */
typedef struct {
    const float *qkv, *d_o, *o, *lse;
    size_t row, lse_stride;
    float scale;
} Inputs;

/* Of one query's head and all the keys it sees. */
static void add_query(Slack *s, double rounding, const Case *k, const Inputs *in, size_t token,
                      size_t head) {
    size_t dim = k->head_dim, batch = token / k->seq, query = token % k->seq;
    size_t kv_head = head / (k->heads / k->kv_heads), shared = k->heads > k->kv_heads;
    size_t at = (token * k->heads + head) * dim;
    const float *q = in->qkv + token * in->row + head * dim, *d_o = in->d_o + at;
    float lse = in->lse[(batch * k->heads + head) * in->lse_stride + query];
    float row_dot = slack_dot(d_o, in->o + at, dim);
    for (size_t key = 0; key < k->seq && (!k->causal || key <= query); key++) {
        const float *kk = in->qkv + (batch * k->seq + key) * in->row + (k->heads + kv_head) * dim;
        size_t kv_at = ((batch * k->seq + key) * k->kv_heads + kv_head) * dim;
        SlackPair pair = {q, kk, kk + k->kv_heads * dim, d_o, lse, row_dot, at, kv_at};
        slack_add(s, rounding, in->scale, shared, dim, &pair);
    }
}

static Slack slack_of(double rounding, const Case *k, const Inputs *in) {
    size_t tokens = k->batch * k->seq, n = tokens * k->heads * k->head_dim;
    size_t n_kv = tokens * k->kv_heads * k->head_dim;
    Slack slack = {g_new0(float, n), g_new0(float, n), g_new0(float, n_kv), g_new0(float, n_kv)};
    for (size_t token = 0; token < tokens; token++) {
        for (size_t head = 0; head < k->heads; head++) {
            add_query(&slack, rounding, k, in, token, head);
        }
    }
    return slack;
}

/* Rows of q's, k's and v's side by side. */
static float *side_by_side(const float *q, const float *k, const float *v, size_t tokens,
                           size_t q_row, size_t kv_row) {
    size_t row = q_row + 2 * kv_row;
    float *all = g_new(float, tokens *row);
    for (size_t i = 0; i < tokens; i++) {
        memcpy(all + i * row, q + i * q_row, q_row * sizeof *q);
        memcpy(all + i * row + q_row, k + i * kv_row, kv_row * sizeof *k);
        memcpy(all + i * row + q_row + kv_row, v + i * kv_row, kv_row * sizeof *v);
    }
    return all;
}

/* What check_attention() has put on the device, where k lies in rows of the host, and what comes
 * of it. */
typedef struct {
    const float *k;
    void *q, *v, *o, *d_o;
    float *lse;
    KernelCudaAttention shape;
    size_t row;
    const float *want_o, *want_dq, *slack_o, *slack_dq;
    bool rounds; /* slack knows of a way that rounds */
    const Inputs *inputs;
} Rows;

/* q and v are parts of rows still, and k lies by itself. Where arrays lie unlike each other, o may
 * come another way than it did before. */
static void check_dense_k(const DeviceCase *c, const Case *k, const Rows *in) {
    size_t kv_row = k->kv_heads * k->head_dim, tokens = k->batch * k->seq;
    size_t n = tokens * k->heads * k->head_dim;
    KernelCudaAttention shape = in->shape;
    shape.k_stride = kv_row;
    g_autofree float *dense = g_new(float, tokens *kv_row);
    for (size_t i = 0; i < tokens; i++) {
        memcpy(dense + i * kv_row, in->k + i * in->row, kv_row * sizeof *dense);
    }
    void *got = device_new(c, n), *dk = device_new(c, tokens * kv_row);
    void *dv = device_new(c, tokens * kv_row), *on_device = device_put(c, dense, tokens * kv_row);
    DEVICE_OK(kernel_cuda_attention_backward(device_lane, got, dk, dv, NULL, in->d_o, in->q,
                                             on_device, in->v, NULL, in->o, in->lse, &shape));
    device_close_within("dq of a dense k", c, got, in->want_dq, in->slack_dq, n, 2e-5, 2e-5);
    uint64_t calls = kernel_cuda_attention_calls(device_lane, KERNEL_CUDA_ATTENTION_CUDNN);
    DEVICE_OK(kernel_cuda_attention_forward(device_lane, got, in->lse, in->q, on_device, in->v,
                                            NULL, &shape));
    bool rounds = kernel_cuda_attention_calls(device_lane, KERNEL_CUDA_ATTENTION_CUDNN) > calls;
    g_auto(Slack) other = {NULL};
    if (rounds && !in->rounds) {
        other = slack_of(c->rounding, k, in->inputs);
    }
    const float *slack = other.o ? other.o : in->slack_o;
    device_close_within("o of a dense k", c, got, in->want_o, slack, n, 1e-5, 1e-5);
}

/* q, k and v are parts of one row, as of a packed projection; their gradients are dense, and then
 * parts of one row too. Rows of lse are so many longer than a sequence. */
static void check_attention(const DeviceCase *c, const Case *k, size_t padding) {
    size_t q_row = k->heads * k->head_dim, kv_row = k->kv_heads * k->head_dim;
    size_t row = q_row + 2 * kv_row, tokens = k->batch * k->seq, lse_stride = k->seq + padding;
    size_t n_lse = k->batch * k->heads * lse_stride, bytes = kernel_cuda_type_bytes(c->type);
    float scale = 1 / sqrtf((float)k->head_dim);
    g_autofree float *qkv = device_random(c, tokens * row, -2, 2, 1);
    g_autofree float *d_o = device_random(c, tokens * q_row, -1, 1, 2);
    g_autofree float *o = g_new(float, tokens *q_row), *lse = g_new0(float, n_lse);
    g_autofree float *dq = g_new(float, tokens *q_row), *dk = g_new(float, tokens *kv_row);
    g_autofree float *dv = g_new(float, tokens *kv_row);
    size_t n_bias = k->has_bias ? k->heads * k->seq * k->seq : 0;
    g_autofree float *bias = k->has_bias ? device_random(c, n_bias, -2, 2, 3) : NULL;
    g_autofree float *d_bias = k->has_bias ? g_new(float, k->batch *n_bias) : NULL;
    KernelAttentionShape host = {k->batch,    k->heads, k->kv_heads, k->seq,  k->seq,
                                 k->head_dim, scale,    k->causal,   k->alibi};
    KernelCudaAttention shape = {k->batch,  k->heads, k->kv_heads, k->seq,     k->head_dim,
                                 row,       row,      row,         lse_stride, scale,
                                 k->causal, c->type,  k->alibi};
    KernelConstView q = {qkv, k->seq * row, row, k->head_dim};
    KernelConstView kk = {qkv + q_row, k->seq * row, row, k->head_dim};
    KernelConstView v = {qkv + q_row + kv_row, k->seq * row, row, k->head_dim};
    kernel_attention_forward_f32(o, lse, lse_stride, q, kk, v, bias, &host);

    char *in = device_put(c, qkv, tokens * row);
    char *in_k = in + q_row * bytes, *in_v = in_k + kv_row * bytes;
    float *got_lse = device_put_floats(lse, n_lse);
    void *got_o = device_new(c, tokens * q_row);
    void *in_bias = k->has_bias ? device_put(c, bias, n_bias) : NULL;
    void *got_d_bias = k->has_bias ? device_new(c, k->batch * n_bias) : NULL;
    g_autofree float *poison = g_memdup2(lse, n_lse * sizeof *lse);
    for (size_t i = 0; i < n_lse; i++) {
        poison[i] = i % lse_stride < k->seq ? NAN : lse[i];
    }
    got_lse = device_put_floats(poison, n_lse);
    uint64_t calls = kernel_cuda_attention_calls(device_lane, KERNEL_CUDA_ATTENTION_CUDNN);
    DEVICE_OK(kernel_cuda_attention_forward(device_lane, got_o, got_lse, in, in_k, in_v, in_bias,
                                            &shape));
    bool rounds = kernel_cuda_attention_calls(device_lane, KERNEL_CUDA_ATTENTION_CUDNN) > calls;
    g_autofree float *stored_o = device_get(c, got_o, tokens * q_row);
    Inputs inputs = {qkv, d_o, stored_o, lse, row, lse_stride, scale};
    g_auto(Slack) slack = slack_of(rounds ? c->rounding : 0, k, &inputs);
    device_close_within("o", c, got_o, o, slack.o, tokens * q_row, 1e-5, 1e-5);
    device_close_floats("lse", got_lse, lse, n_lse, 2e-6, 2e-6);

    /* From the o and lse that forward left. */
    kernel_attention_backward_f32(kernel_view_bshd(dq, k->seq, k->heads, k->head_dim),
                                  kernel_view_bshd(dk, k->seq, k->kv_heads, k->head_dim),
                                  kernel_view_bshd(dv, k->seq, k->kv_heads, k->head_dim), d_bias,
                                  d_o, q, kk, v, bias, stored_o, lse, lse_stride, &host);
    void *got_dq = device_new(c, tokens * q_row), *got_dk = device_new(c, tokens * kv_row);
    void *got_dv = device_new(c, tokens * kv_row);
    DEVICE_OK(kernel_cuda_attention_backward(device_lane, got_dq, got_dk, got_dv, got_d_bias,
                                             device_put(c, d_o, tokens * q_row), in, in_k, in_v,
                                             in_bias, got_o, got_lse, &shape));
    KernelCudaAttention ordered = shape;
    ordered.ordered = true;
    g_assert_cmpint(kernel_cuda_attention_way(device_lane, &ordered), ==,
                    KERNEL_CUDA_ATTENTION_OWN);
    double bound = 2e-5; /* of fp32's sums, relative and absolute */
    device_close_within("dq", c, got_dq, dq, slack.dq, tokens * q_row, bound, bound);
    device_close_within("dk", c, got_dk, dk, slack.dk, tokens * kv_row, bound, bound);
    device_close_within("dv", c, got_dv, dv, slack.dv, tokens * kv_row, bound, bound);
    if (k->has_bias) {
        device_close("d_bias", c, got_d_bias, d_bias, k->batch * n_bias, bound, bound);
    }
    if (!k->has_bias) {
        check_dense_k(c, k,
                      &(Rows){.k = qkv + q_row,
                              .q = in,
                              .v = in_v,
                              .o = got_o,
                              .d_o = device_put(c, d_o, tokens * q_row),
                              .lse = got_lse,
                              .shape = shape,
                              .row = row,
                              .want_o = o,
                              .want_dq = dq,
                              .slack_o = slack.o,
                              .slack_dq = slack.dq,
                              .rounds = rounds,
                              .inputs = &inputs});
    }
    g_autofree float *all = side_by_side(dq, dk, dv, tokens, q_row, kv_row);
    g_autofree float *of_all = side_by_side(slack.dq, slack.dk, slack.dv, tokens, q_row, kv_row);
    char *got = device_new(c, tokens * row);
    shape.gradient_stride = row;
    DEVICE_OK(kernel_cuda_attention_backward(
        device_lane, got, got + q_row * bytes, got + (q_row + kv_row) * bytes, got_d_bias,
        device_put(c, d_o, tokens * q_row), in, in_k, in_v, in_bias, got_o, got_lse, &shape));
    device_close_within("dq, dk, dv in one", c, got, all, of_all, tokens * row, bound, bound);
}

static void test_attention_own(const DeviceCase *c) {
    kernel_cuda_attention_own_only(device_lane, true);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        check_attention(c, &cases[i], 3);
    }
}

/* By whichever way the machine has for each shape. On a GPU cuDNN makes a kernel for each, which
 * takes a second or so: of fp16, where it is the same graph, some suffice. */
G_GNUC_UNUSED static void test_attention(const DeviceCase *c) {
    size_t step = 1;
#ifndef KERNEL_EMULATED
    step = c->type == KERNEL_CUDA_F16 ? 4 : 1;
#endif
    kernel_cuda_attention_own_only(device_lane, false);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i += step) {
        check_attention(c, &cases[i], 0);
    }
    check_attention(c, &cases[1], 3); /* of which cuDNN reads others, before 9.26 */
}

/* Scores far below zero, whose logsumexp's exponential is none: a kernel that takes a row for zeros
 * which is not there finds a p beyond range, and NaN (kernel_cuda_cudnn_sees_beyond()). */
static void check_low_scores(const DeviceCase *c, size_t seq, size_t keys, bool causal) {
    enum {
        DIM = 64
    };
    const float low = -120 * 8; /* of a first element that 1 is multiplied by, and scaled by 1/8 */
    KernelCudaAttention shape = {.batch = 1,
                                 .heads = 2,
                                 .kv_heads = 2,
                                 .seq = seq,
                                 .head_dim = DIM,
                                 .q_stride = 2 * DIM,
                                 .k_stride = 2 * DIM,
                                 .v_stride = 2 * DIM,
                                 .lse_stride = seq,
                                 .scale = 0.125f,
                                 .causal = causal,
                                 .type = c->type,
                                 .keys = keys};
    size_t n = seq * 2 * DIM, n_kv = keys * 2 * DIM;
    g_autofree float *q = device_random(c, n, -0.1, 0.1, 1);
    g_autofree float *k = device_random(c, n_kv, -0.1, 0.1, 2);
    g_autofree float *v = device_random(c, n_kv, -1, 1, 3), *d_o = device_random(c, n, -1, 1, 4);
    for (size_t i = 0; i < MAX(n, n_kv); i += DIM) {
        q[MIN(i, n - DIM)] = 1;
        k[MIN(i, n_kv - DIM)] = low;
    }
    void *in[] = {device_put(c, q, n), device_put(c, k, n_kv), device_put(c, v, n_kv),
                  device_put(c, d_o, n)};
    void *out[] = {device_new(c, n), device_new(c, n), device_new(c, n_kv), device_new(c, n_kv)};
    float *lse = device_new_floats(2 * seq);
    DEVICE_OK(
        kernel_cuda_attention_forward(device_lane, out[0], lse, in[0], in[1], in[2], NULL, &shape));
    DEVICE_OK(kernel_cuda_attention_backward(device_lane, out[1], out[2], out[3], NULL, in[3],
                                             in[0], in[1], in[2], NULL, out[0], lse, &shape));
    for (unsigned i = 0; i < G_N_ELEMENTS(out); i++) {
        size_t size = i < 2 ? n : n_kv;
        g_autofree float *zeros = g_new0(float, size);
        device_close(i ? "a gradient of low scores" : "o of low scores", c, out[i], zeros, size, 0,
                     i ? 1e4 : 1); /* all that is asked of them is that they are numbers */
    }
}

static void test_low_scores(const DeviceCase *c) {
    static const size_t shapes[][3] = {
        {64, 64, true}, {70, 70, false}, {64, 192, false}, {70, 128, false}};
    for (size_t i = 0; c->type == KERNEL_CUDA_BF16 && !c->shift && i < G_N_ELEMENTS(shapes); i++) {
        check_low_scores(c, shapes[i][0], shapes[i][1], shapes[i][2]);
    }
}

static void test_head_dim_refused(void) {
    KernelCudaAttention shape = {1, 1, 1, 1, 1025, 1025, 1025, 1025, 1, 1, false, KERNEL_CUDA_F32};
    float *x = device_new_floats(1025);
    const char *fault = kernel_cuda_attention_forward(device_lane, x, x, x, x, x, NULL, &shape);
    g_assert_nonnull(strstr(fault, "1025"));
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/attention/own", test_attention_own);
#ifndef KERNEL_RACED /* these kernels again, and others' */
    DEVICE_TEST("/kernels-cuda/attention/chosen", test_attention);
#endif
    DEVICE_TEST("/kernels-cuda/attention/low-scores", test_low_scores);
    DEVICE_TEST_ONCE("/kernels-cuda/attention/head-dim-refused", test_head_dim_refused);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
