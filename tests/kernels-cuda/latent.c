/* tests/kernels-cuda/latent.c - attention with windows, masks and values of another length, and
 * what else latent attention and its routing need, against the host's kernels or loops written
 * here. */
#include <math.h>
#include <string.h>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/columns.h"
#include "kernels/cuda/attention/heads.h"
#include "kernels/cuda/attention/rope.h"
#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/experts/latent.h"
#include "kernels/cuda/rows/norm.h"
#include "kernels/host/attention/attention.h"
#include "kernels/host/rows/norm.h"
#include "tests/kernels-cuda/device.h"

/* ---- attention ------------------------------------------------------------------------------ */

typedef struct {
    size_t batch, heads, kv_heads, seq, head_dim, v_dim, v_head, from, window;
    bool masked;
} Case;

/* Windows of one, of less than a tile and of more, of all; masks; values shorter and longer than
 * keys, side by side or with others between them. */
static const Case cases[] = {
    {1, 2, 1, 70, 32, 0, 0, 0, 1, false},   {2, 2, 2, 100, 16, 0, 0, 0, 7, false},
    {1, 4, 2, 130, 64, 0, 0, 0, 40, false}, {1, 1, 1, 90, 160, 0, 0, 0, 33, false},
    {1, 2, 2, 33, 24, 0, 0, 0, 500, false}, {2, 4, 2, 37, 32, 0, 0, 0, 0, true},
    {2, 3, 3, 70, 24, 32, 32, 0, 0, false}, {1, 2, 2, 40, 192, 128, 256, 128, 0, false},
    {2, 2, 2, 35, 10, 6, 11, 3, 0, false},
};

/* 0 where a key is seen, -inf where not; some are hidden, none its own. */
static float *new_mask(const Case *k) {
    float *mask = g_new(float, k->batch * k->seq * k->seq);
    for (size_t i = 0; i < k->batch * k->seq * k->seq; i++) {
        size_t query = i / k->seq % k->seq, key = i % k->seq;
        bool hides = key != query && (key > query || g_test_rand_int_range(0, 3) == 0);
        mask[i] = hides ? -INFINITY : 0;
    }
    return mask;
}

static void check_attention(const DeviceCase *c, const Case *k) {
    size_t tokens = k->batch * k->seq, v_dim = k->v_dim ? k->v_dim : k->head_dim;
    size_t v_head = k->v_head ? k->v_head : v_dim, q_row = k->heads * k->head_dim;
    size_t k_row = k->kv_heads * k->head_dim, v_row = k->kv_heads * v_head;
    size_t n_o = tokens * k->heads * v_dim, n_lse = k->batch * k->heads * k->seq;
    size_t n_dv = tokens * k->kv_heads * v_dim;
    float scale = 1 / sqrtf((float)k->head_dim);
    g_autofree float *q = device_random(c, tokens * q_row, -2, 2, 1);
    g_autofree float *kk = device_random(c, tokens * k_row, -2, 2, 2);
    g_autofree float *v = device_random(c, tokens * v_row, -2, 2, 3);
    g_autofree float *d_o = device_random(c, n_o, -1, 1, 4), *mask = NULL;
    g_autofree float *o = g_new(float, n_o), *lse = g_new(float, n_lse);
    g_autofree float *dq = g_new(float, tokens *q_row), *dk = g_new(float, tokens *k_row);
    g_autofree float *dv = g_new(float, n_dv);
    if (k->masked) {
        mask = new_mask(k);
    }
    KernelAttentionShape host = {.batch = k->batch,
                                 .heads = k->heads,
                                 .kv_heads = k->kv_heads,
                                 .seq_q = k->seq,
                                 .seq_kv = k->seq,
                                 .head_dim = k->head_dim,
                                 .scale = scale,
                                 .causal = !k->masked,
                                 .window = k->window,
                                 .masked = k->masked,
                                 .v_dim = k->v_dim};
    KernelCudaAttention shape = {.batch = k->batch,
                                 .heads = k->heads,
                                 .kv_heads = k->kv_heads,
                                 .seq = k->seq,
                                 .head_dim = k->head_dim,
                                 .q_stride = q_row,
                                 .k_stride = k_row,
                                 .v_stride = v_row,
                                 .lse_stride = k->seq,
                                 .scale = scale,
                                 .causal = !k->masked,
                                 .type = c->type,
                                 .window = k->window,
                                 .masked = k->masked,
                                 .v_dim = k->v_dim,
                                 .v_head = k->v_head};
    KernelConstView q_view = {q, k->seq * q_row, q_row, k->head_dim};
    KernelConstView k_view = {kk, k->seq * k_row, k_row, k->head_dim};
    KernelConstView v_view = {v + k->from, k->seq * v_row, v_row, v_head};
    kernel_attention_forward_f32(o, lse, k->seq, q_view, k_view, v_view, mask, &host);
    char *on_v = device_put(c, v, tokens * v_row);
    void *on_q = device_put(c, q, tokens * q_row), *on_k = device_put(c, kk, tokens * k_row);
    void *on_mask = mask ? device_put(c, mask, tokens * k->seq) : NULL, *got_o = device_new(c, n_o);
    float *got_lse = device_new_floats(n_lse);
    on_v += k->from * kernel_cuda_type_bytes(c->type);
    g_assert_true(mask ||
                  kernel_cuda_attention_way(device_lane, &shape) == KERNEL_CUDA_ATTENTION_OWN);
    DEVICE_OK(kernel_cuda_attention_forward(device_lane, got_o, got_lse, on_q, on_k, on_v, on_mask,
                                            &shape));
    device_close("o", c, got_o, o, n_o, 1e-5, 1e-5);
    device_close_floats("lse", got_lse, lse, n_lse, 2e-6, 2e-6);
    void *again = device_new(c, n_o);
    DEVICE_OK(
        kernel_cuda_attention_forward(device_lane, again, NULL, on_q, on_k, on_v, on_mask, &shape));
    device_close("o without lse", c, again, o, n_o, 1e-5, 1e-5);

    g_autofree float *stored_o = device_get(c, got_o, n_o);
    kernel_attention_backward_f32(kernel_view_bshd(dq, k->seq, k->heads, k->head_dim),
                                  kernel_view_bshd(dk, k->seq, k->kv_heads, k->head_dim),
                                  kernel_view_bshd(dv, k->seq, k->kv_heads, v_dim), NULL, d_o,
                                  q_view, k_view, v_view, mask, stored_o, lse, k->seq, &host);
    void *got_dq = device_new(c, tokens * q_row), *got_dk = device_new(c, tokens * k_row);
    void *got_dv = device_new(c, n_dv);
    DEVICE_OK(kernel_cuda_attention_backward(device_lane, got_dq, got_dk, got_dv, NULL,
                                             device_put(c, d_o, n_o), on_q, on_k, on_v, on_mask,
                                             got_o, got_lse, &shape));
    double bound = 2e-5; /* of fp32's sums, relative and absolute */
    device_close("dq", c, got_dq, dq, tokens * q_row, bound, bound);
    device_close("dk", c, got_dk, dk, tokens * k_row, bound, bound);
    device_close("dv", c, got_dv, dv, n_dv, bound, bound);
}

static void test_attention(const DeviceCase *c) {
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        check_attention(c, &cases[i]);
    }
}

/* A window's masks: keys above a query's place less the window, and up to it; both; as numbers. */
static void test_masks(const DeviceCase *c) {
    enum {
        QUERIES = 9,
        KEYS = 40,
        SEQUENCES = 3,
        N = QUERIES * KEYS
    };
    gint64 position[KEYS], index[QUERIES];
    guint8 want[3][N];
    g_autofree float *numbers = device_random(c, 2, -9, 9, 1);
    float bias[SEQUENCES * N];
    for (size_t i = 0; i < KEYS; i++) {
        position[i] = (gint64)i;
    }
    for (size_t i = 0; i < QUERIES; i++) {
        index[i] = g_test_rand_int_range(-5, KEYS + 5);
    }
    for (size_t i = 0; i < SEQUENCES * N; i++) {
        size_t at = i % N;
        want[0][at] = position[at % KEYS] > index[at / KEYS];
        want[1][at] = !want[0][at];
        want[2][at] = want[0][at % KEYS] & want[1][at]; /* one row for all */
        bias[i] = numbers[want[2][at] ? 0 : 1];
    }
    gint64 *at = device_put_i64(position, KEYS), *by = device_put_i64(index, QUERIES);
    guint8 *later = device_new_bytes(N), *upto = device_new_bytes(N), *both = device_new_bytes(N);
    void *y = device_new(c, SEQUENCES * N), *shown = device_put(c, numbers, 1);
    void *hidden = device_put(c, numbers + 1, 1);
    DEVICE_OK(kernel_cuda_compare_mask(device_lane, later, at, by, QUERIES, KEYS, true));
    DEVICE_OK(kernel_cuda_compare_mask(device_lane, upto, at, by, QUERIES, KEYS, false));
    DEVICE_OK(kernel_cuda_both_mask(device_lane, both, later, upto, N, KEYS));
    DEVICE_OK(kernel_cuda_mask_to_bias(device_lane, y, both, shown, hidden, N, SEQUENCES, c->type));
    device_equal_bytes("later", later, want[0], N);
    device_equal_bytes("up to", upto, want[1], N);
    device_equal_bytes("both", both, want[2], N);
    device_equal("as numbers", c, y, bias, SEQUENCES * N);
}

/* ---- norms of columns ------------------------------------------------------------------------ */

static void test_norms(const DeviceCase *c) {
    static const size_t shapes[][3] = {{1, 1, 1},       {5, 48, 56},     {70, 33, 40},
                                       {300, 130, 130}, {300, 136, 136}, {7, 512, 576}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], width = shapes[s][1], row = shapes[s][2], n = rows * width;
        g_autofree float *x = device_random(c, rows * row, -2, 2, 1), *dense = g_new(float, n);
        g_autofree float *w = device_random(c, width, 0.5, 2, 2);
        g_autofree float *dy = device_random(c, n, -1, 1, 3), *y = g_new(float, n);
        g_autofree float *rstd = g_new(float, rows), *dx = g_new(float, n);
        g_autofree float *dw = g_new(float, width);
        for (size_t i = 0; i < n; i++) {
            dense[i] = x[i / width * row + i % width];
        }
        kernel_rmsnorm_forward_f32(y, rstd, dense, w, rows, width, 1e-5f);
        kernel_rmsnorm_backward_f32(dx, dw, dy, dense, rstd, w, rows, width);
        KernelCudaNorm norm = {rows, width, 1e-5f, c->type, row};
        void *in = device_put(c, x, rows * row), *weight = device_put(c, w, width);
        void *got_y = device_new(c, n), *got_dx = device_new(c, n), *got_dw = device_new(c, width);
        float *got_rstd = device_new_floats(rows);
        DEVICE_OK(kernel_cuda_rmsnorm_forward(device_lane, NULL, got_y, got_rstd, in, NULL, weight,
                                              &norm));
        device_close("y", c, got_y, y, n, 2e-6, 1e-6);
        device_close_floats("rstd", got_rstd, rstd, rows, 2e-6, 0);
        DEVICE_OK(kernel_cuda_rmsnorm_backward(device_lane, got_dx, got_dw, NULL,
                                               device_put(c, dy, n), in, got_rstd, weight, &norm));
        device_close("dx", c, got_dx, dx, n, 1e-5, 1e-5);
        device_close("dw", c, got_dw, dw, width, 1e-5, 1e-4);
    }
}

/* ---- heads ---------------------------------------------------------------------------------- */

enum {
    BATCH = 2,
    SEQ = 5,
    HEADS = 3,
    TOKENS = BATCH * SEQ,
    ROWS = TOKENS * HEADS,
};

/* Of a head's `row` numbers `a` are joined with `b` that its token's heads share; and those from
 * `at` on are added up over heads, or turned. The second lets 16 bytes go at a time. */
typedef struct {
    size_t a, b, at, row;
} Head;
static const Head heads[] = {{4, 6, 7, 14}, {16, 8, 16, 32}};

static void check_heads(const DeviceCase *c, const Head *h) {
    size_t cols = h->a + h->b, n = TOKENS * h->b;
    g_autofree float *x = device_random(c, ROWS * h->row, -2, 2, 1);
    g_autofree float *b = device_random(c, n, -2, 2, 2);
    g_autofree float *joined = g_new(float, ROWS *cols), *sums = g_new0(float, n);
    for (size_t i = 0; i < ROWS * cols; i++) {
        size_t row = i / cols, j = i % cols;
        joined[i] = j < h->a ? x[row * h->row + j] : b[row / HEADS * h->b + j - h->a];
    }
    for (size_t i = 0; i < HEADS * n; i++) {
        sums[i / h->b / HEADS * h->b + i % h->b] += x[i / h->b * h->row + h->at + i % h->b];
    }
    char *in = device_put(c, x, ROWS * h->row);
    void *all = device_new(c, ROWS * cols), *added = device_new(c, n);
    KernelCudaPart own = {in, h->a, h->row, 1}, shared = {device_put(c, b, n), h->b, h->b, HEADS};
    DEVICE_OK(kernel_cuda_join_columns(device_lane, all, &own, &shared, c->type, ROWS, c->type));
    device_equal("joined", c, all, joined, ROWS * cols);
    DEVICE_OK(kernel_cuda_sum_each(device_lane, added, in + h->at * kernel_cuda_type_bytes(c->type),
                                   TOKENS, HEADS, h->b, h->row, c->type));
    device_close("added up", c, added, sums, n, 1e-6, 1e-6);
}

static void test_heads(const DeviceCase *c) {
    for (size_t i = 0; i < G_N_ELEMENTS(heads); i++) {
        check_heads(c, &heads[i]);
    }
}

static void check_turned(const Head *h) {
    DeviceCase c = {KERNEL_CUDA_F32, 0, 0};
    size_t n = ROWS * h->b;
    g_autofree float *x = device_random(&c, ROWS * h->row, -2, 2, 1);
    g_autofree float *turns = device_random(&c, SEQ * h->b, -1, 1, 2), *want = g_new(float, n);
    float *y = device_new_floats(n);
    KernelCudaRope rope = {.tokens = TOKENS,
                           .heads = HEADS,
                           .dim = h->b,
                           .seq = SEQ,
                           .stride = HEADS * h->row,
                           .head = h->row};
    for (size_t i = 0; i < n; i += 2) {
        size_t row = i / h->b, j = i % h->b;
        const float *in = x + row * h->row + h->at + j, *by = turns + row / HEADS % SEQ * h->b + j;
        want[i] = in[0] * by[0] - in[1] * by[1];
        want[i + 1] = in[0] * by[1] + in[1] * by[0];
    }
    DEVICE_OK(kernel_cuda_turn(device_lane, y, device_put_floats(x, ROWS * h->row) + h->at,
                               device_put_floats(turns, SEQ * h->b), &rope));
    device_close_floats("turned", y, want, n, 1e-6, 1e-6);
}

static void test_turned(void) {
    for (size_t i = 0; i < G_N_ELEMENTS(heads); i++) {
        check_turned(&heads[i]);
    }
}

/* ---- routing -------------------------------------------------------------------------------- */

static void test_sigmoid(const DeviceCase *c) {
    static const size_t sizes[] = {1, 7, 300, 2500};
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s];
        g_autofree float *x = device_random(c, n, -20, 20, 1), *dy = device_random(c, n, -1, 1, 2);
        g_autofree float *y = g_new(float, n), *dx = g_new(float, n);
        for (size_t i = 0; i < n; i++) {
            y[i] = 1.0f / (1.0f + expf(-x[i]));
        }
        void *got = device_new(c, n), *got_dx = device_new(c, n);
        DEVICE_OK(kernel_cuda_sigmoid(device_lane, got, device_put(c, x, n), n, c->type));
        device_close("sigmoid", c, got, y, n, 1e-6, 1e-6);
        g_autofree float *stored = device_get(c, got, n);
        for (size_t i = 0; i < n; i++) {
            dx[i] = dy[i] * stored[i] * (1.0f - stored[i]);
        }
        DEVICE_OK(kernel_cuda_sigmoid_backward(device_lane, got_dx, device_put(c, dy, n), got, n,
                                               c->type));
        device_close("its gradient", c, got_dx, dx, n, 1e-6, 1e-7);
    }
}

static void test_unset(void) {
    enum {
        MASK_ROWS = 40,
        COLS = 9,
        K = 2,
        N = MASK_ROWS * COLS
    };
    guint8 want[N];
    gint64 index[MASK_ROWS * K];
    uint32_t op;
    memset(want, 1, sizeof want);
    guint8 *mask = device_put_bytes(want, N);
    for (size_t i = 0; i < G_N_ELEMENTS(index); i++) {
        gint64 before = i % K ? index[i - 1] : COLS; /* a row's are different, as top-k's */
        index[i] = g_test_rand_int_range(0, COLS - 1);
        index[i] += index[i] >= before;
        want[i / K * COLS + (size_t)index[i]] = 0;
    }
    DEVICE_OK(kernel_cuda_unset_columns(
        device_lane, mask, device_put_i64(index, G_N_ELEMENTS(index)), MASK_ROWS, COLS, K));
    device_equal_bytes("mask", mask, want, N);
    g_assert_false(kernel_cuda_bad_index(device_lane, &op));
    index[5] = COLS;
    kernel_cuda_tag(device_lane, 4);
    DEVICE_OK(kernel_cuda_unset_columns(device_lane, mask, device_put_i64(index, 6), 3, COLS, K));
    cudaStreamSynchronize(kernel_cuda_stream(device_lane));
    g_assert_true(kernel_cuda_bad_index(device_lane, &op) && op == 4);
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/latent/attention", test_attention);
    DEVICE_TEST("/kernels-cuda/latent/masks", test_masks);
    DEVICE_TEST("/kernels-cuda/latent/norms-of-columns", test_norms);
    DEVICE_TEST("/kernels-cuda/latent/heads", test_heads);
    DEVICE_TEST_ONCE("/kernels-cuda/latent/turned", test_turned);
    DEVICE_TEST("/kernels-cuda/latent/sigmoid", test_sigmoid);
    DEVICE_TEST_ONCE("/kernels-cuda/latent/unset-columns", test_unset);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
