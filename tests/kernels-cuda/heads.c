/* tests/kernels-cuda/heads.c - heads that are repeated and copied, masks, and relative bias;
 * against the host's, or loops written here. */
#include <math.h>
#include <string.h>

#include "kernels/cuda/attention/heads.h"
#include "kernels/cuda/attention/positions.h"
#include "kernels/cuda/rows/embedding.h"
#include "tests/kernels-cuda/device.h"

static size_t place(const KernelCudaHeads *h, size_t heads, bool apart, size_t b, size_t t,
                    size_t head, size_t j) {
    return (apart ? ((b * heads + head) * h->seq + t) : ((b * h->seq + t) * heads + head)) *
               h->dim +
           j;
}

static void check_heads(const DeviceCase *c, size_t dim, size_t repeats, bool apart) {
    KernelCudaHeads h = {2, 3, 2, dim, c->type};
    size_t n = h.batch * h.seq * h.heads * dim, many = n * repeats, row = h.heads * dim + 8;
    g_autofree float *x = device_random(c, n, -1, 1, 1), *dy = device_random(c, many, -1, 1, 2);
    g_autofree float *strided = device_random(c, h.batch * h.seq * row, -1, 1, 3);
    g_autofree float *lent = g_new(float, many), *lent_rows = g_new(float, many),
                     *sums = g_new0(float, n), *elsewhere = g_new0(float, n);
    g_autofree float *taken = g_new(float, n), *back = g_new(float, n);
    void *dlent = device_new(c, many), *dsums = device_new(c, n), *dtaken = device_new(c, n);
    for (size_t i = 0; i < h.batch * h.seq * h.heads * repeats * dim; i++) {
        size_t j = i % dim, head = i / dim % (h.heads * repeats);
        size_t token = i / dim / (h.heads * repeats), b = token / h.seq, t = token % h.seq;
        size_t from = place(&h, h.heads * repeats, apart, b, t, head, j);
        lent[from] = x[place(&h, h.heads, false, b, t, head / repeats, j)];
        lent_rows[from] = strided[token * row + head / repeats * dim + j];
        sums[place(&h, h.heads, apart, b, t, head / repeats, j)] += dy[from];
        elsewhere[place(&h, h.heads, !apart, b, t, head / repeats, j)] += dy[from];
        if (head % repeats == 0) {
            size_t own = head / repeats;
            taken[place(&h, h.heads, true, b, t, own, j)] = strided[token * row + own * dim + j];
            back[place(&h, h.heads, false, b, t, own, j)] =
                x[place(&h, h.heads, true, b, t, own, j)];
        }
    }
    void *in = device_put(c, x, n);
    DEVICE_OK(kernel_cuda_repeat_heads(device_lane, dlent, in, &h, h.heads * dim, repeats, apart));
    device_equal("repeat heads", c, dlent, lent, many);
    DEVICE_OK(kernel_cuda_repeat_heads(device_lane, dlent,
                                       device_put(c, strided, h.batch * h.seq * row), &h, row,
                                       repeats, apart));
    device_equal("repeat heads of long rows", c, dlent, lent_rows, many);
    void *ddy = device_put(c, dy, many);
    DEVICE_OK(kernel_cuda_sum_heads(device_lane, dsums, ddy, &h, repeats, apart, apart));
    device_close("sum heads", c, dsums, sums, n, 1e-6, 1e-6);
    DEVICE_OK(kernel_cuda_sum_heads(device_lane, dsums, ddy, &h, repeats, apart, !apart));
    device_close("sum heads to another place", c, dsums, elsewhere, n, 1e-6, 1e-6);
    DEVICE_OK(kernel_cuda_heads_copy(
        device_lane, dtaken, device_put(c, strided, h.batch * h.seq * row), &h, row, false));
    device_equal("heads copy", c, dtaken, taken, n);
    DEVICE_OK(kernel_cuda_heads_copy(device_lane, dtaken, in, &h, 0, true));
    device_equal("heads copy back", c, dtaken, back, n);
}

static void test_heads(const DeviceCase *c) {
    check_heads(c, 8, 1, true);
    check_heads(c, 8, 3, false);
    check_heads(c, 5, 2, true);
    check_heads(c, 16, 2, false);
}

static void check_masks(const DeviceCase *c, size_t rows, size_t cols) {
    enum {
        OUTER = 2
    };
    size_t n = rows * cols;
    g_autofree guint8 *all = g_new(guint8, n), *want_mask = g_new(guint8, n);
    g_autofree float *want = g_new(float, OUTER *n * 3);
    g_autofree float *x = device_random(c, OUTER * n * 3, -1, 1, 1);
    for (size_t i = 0; i < n; i++) {
        all[i] = i % 4 != 0;
        want_mask[i] = i % cols > i / cols ? all[i] : 0;
    }
    guint8 *mask = device_new_bytes(n), *ones = device_new_bytes(n);
    DEVICE_OK(kernel_cuda_upper_mask(device_lane, mask, device_put_bytes(all, n), rows, cols));
    device_equal_bytes("upper mask", mask, want_mask, n);
    for (size_t inner = 1; inner <= 3; inner += 2) {
        void *y = device_new(c, OUTER * n * inner);
        for (size_t i = 0; i < OUTER * n * inner; i++) {
            want[i] = want_mask[i / inner % n] ? -INFINITY : x[i];
        }
        DEVICE_OK(kernel_cuda_masked_fill(device_lane, y, device_put(c, x, OUTER * n * inner), mask,
                                          OUTER, n, inner, -INFINITY, c->type));
        device_equal("masked fill", c, y, want, OUTER * n * inner);
    }
    memset(all, 1, n);
    DEVICE_OK(kernel_cuda_ones_mask(device_lane, ones, n));
    device_equal_bytes("ones mask", ones, all, n);
}

/* In single elements, and in pieces of 16 bytes. */
static void test_masks(const DeviceCase *c) {
    check_masks(c, 5, 7);
    check_masks(c, 6, 8);
}

static void test_relative(const DeviceCase *c) {
    enum {
        SEQ = 5,
        PAIRS = SEQ * SEQ,
        BATCH = 2,
        HEADS = 3
    };
    gint64 position[SEQ], distance[PAIRS], away[PAIRS], limited[PAIRS];
    guint8 positive[PAIRS];
    float want[BATCH * HEADS * PAIRS];
    g_autofree float *x = device_random(c, BATCH * HEADS * PAIRS, -1, 1, 1);
    g_autofree float *bias = device_random(c, PAIRS * HEADS, -1, 1, 2);
    for (size_t i = 0; i < SEQ; i++) {
        position[i] = (gint64)(2 * i);
    }
    for (size_t i = 0; i < PAIRS; i++) {
        distance[i] = position[i % SEQ] - position[i / SEQ];
        away[i] = ABS(distance[i]);
        limited[i] = MIN(away[i], 5);
        positive[i] = distance[i] > 0;
    }
    for (size_t i = 0; i < BATCH * HEADS * PAIRS; i++) {
        want[i] = x[i] + bias[i % PAIRS * HEADS + i / PAIRS % HEADS];
    }
    gint64 *d = device_new_bytes(sizeof distance), *a = device_new_bytes(sizeof away);
    gint64 *l = device_new_bytes(sizeof limited);
    guint8 *p = device_new_bytes(sizeof positive);
    void *y = device_put(c, x, BATCH * HEADS * PAIRS);
    DEVICE_OK(kernel_cuda_distances(device_lane, d, device_put_i64(position, SEQ), SEQ));
    DEVICE_OK(kernel_cuda_absolute_i64(device_lane, a, d, PAIRS));
    DEVICE_OK(kernel_cuda_at_most_i64(device_lane, l, a, PAIRS, 5));
    DEVICE_OK(kernel_cuda_positive_mask(device_lane, p, d, PAIRS));
    DEVICE_OK(kernel_cuda_bias_add(device_lane, y, y, c->type, device_put(c, bias, PAIRS * HEADS),
                                   BATCH, HEADS, PAIRS, c->type));
    device_equal_bytes("distances", d, distance, sizeof distance);
    device_equal_bytes("absolute", a, away, sizeof away);
    device_equal_bytes("clamp", l, limited, sizeof limited);
    device_equal_bytes("positive", p, positive, sizeof positive);
    device_equal("bias add", c, y, want, BATCH * HEADS * PAIRS);
}

/* More positions than a block has threads, and more heads than a thread takes at once; what a bias
 * in fp32 is added to may be of 16 bits. */
static void test_bias_of_many_heads(const DeviceCase *c) {
    enum {
        BATCH = 2,
        HEADS = 18,
        PAIRS = 300,
        N = BATCH * HEADS * PAIRS
    };
    g_autofree float *x = device_random(c, N, -2, 2, 1), *want = g_new(float, N);
    DeviceCase wide = {KERNEL_CUDA_F32, c->shift, 0};
    const DeviceCase *types[] = {c, &wide};
    for (unsigned i = 0; i < G_N_ELEMENTS(types); i++) {
        const DeviceCase *of_bias = types[i];
        g_autofree float *bias = device_random(of_bias, PAIRS * HEADS, -1, 1, 2);
        void *y = device_new(of_bias, N);
        for (size_t j = 0; j < N; j++) {
            want[j] = x[j] + bias[j % PAIRS * HEADS + j / PAIRS % HEADS];
        }
        DEVICE_OK(kernel_cuda_bias_add(device_lane, y, device_put(c, x, N), c->type,
                                       device_put(of_bias, bias, PAIRS * HEADS), BATCH, HEADS,
                                       PAIRS, of_bias->type));
        device_equal("bias of many heads", of_bias, y, want, N);
    }
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/heads/copies", test_heads);
    DEVICE_TEST("/kernels-cuda/heads/masks", test_masks);
    DEVICE_TEST("/kernels-cuda/heads/relative", test_relative);
    DEVICE_TEST("/kernels-cuda/heads/bias-of-many-heads", test_bias_of_many_heads);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
