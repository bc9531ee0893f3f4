/* tests/kernels-cuda/embedding.c - kernels that look up rows of a table, and add to them; against
 * the host's, or loops written here. */
#include "kernels/cuda/rows/embedding.h"
#include "kernels/cuda/attention/heads.h"
#include "kernels/host/rows/embedding.h"
#include "tests/kernels-cuda/device.h"

static gint64 *new_indices(size_t n, size_t vocab, size_t step) {
    gint64 *index = g_new(gint64, n);
    for (size_t i = 0; i < n; i++) {
        index[i] = (gint64)(i % 3 ? i * step % vocab : 1 % vocab); /* one of them often */
    }
    return index;
}

/* The rows of dy, summed by their index. In double precision: a row of thousands, added up one by
 * one in fp32, strays further than a kernel that adds up in parts. */
static float *new_sums(const float *dy, size_t row_stride, size_t column_stride,
                       const gint64 *index, size_t count, size_t vocab, size_t width) {
    g_autofree double *sums = g_new0(double, vocab *width);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < width; j++) {
            sums[(size_t)index[i] * width + j] += dy[i * row_stride + j * column_stride];
        }
    }
    float *rounded = g_new(float, vocab *width);
    for (size_t i = 0; i < vocab * width; i++) {
        rounded[i] = (float)sums[i];
    }
    return rounded;
}

static void test_embedding(const DeviceCase *c) {
    static const size_t shapes[][3] = {{1, 1, 1}, {40, 7, 24}, {700, 600, 13}, {30, 5, 520}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t count = shapes[s][0], vocab = shapes[s][1], width = shapes[s][2];
        g_autofree gint64 *index = new_indices(count, vocab, 17);
        g_autofree float *w = device_random(c, vocab * width, -1, 1, 1);
        g_autofree float *dy = device_random(c, count * width, -1, 1, 2);
        g_autofree float *want = g_new(float, count *width);
        g_autofree float *sums = new_sums(dy, width, 1, index, count, vocab, width);
        gint64 *at = device_put_i64(index, count);
        void *y = device_new(c, count * width), *dw = device_new(c, vocab * width);
        g_assert_true(kernel_embedding_forward_f32(want, w, index, count, vocab, width));
        DEVICE_OK(kernel_cuda_embedding_forward(device_lane, y, device_put(c, w, vocab * width), at,
                                                count, vocab, width, c->type));
        device_equal("embedding", c, y, want, count * width);
        DEVICE_OK(kernel_cuda_embedding_backward(device_lane, dw, device_put(c, dy, count * width),
                                                 at, count, vocab, width, c->type));
        device_close("dweight", c, dw, sums, vocab * width, 1e-6, 1e-5);
    }
}

/* Rows of as many positions as a warp looks at, one more and one less; the last ends the array. */
static void test_embedding_runs(const DeviceCase *c) {
    static const size_t runs[] = {32, 33, 31, 0, 64, 1, 95, 96};
    enum {
        COUNT = 32 + 33 + 31 + 64 + 1 + 95 + 96,
        VOCAB = G_N_ELEMENTS(runs),
        WIDTH = 8
    };
    gint64 index[COUNT];
    size_t n = 0;
    for (size_t row = 0; row < VOCAB; row++) {
        for (size_t i = 0; i < runs[row]; i++) {
            index[n++ * 13 % COUNT] = (gint64)row; /* each place once: COUNT is 352 */
        }
    }
    g_autofree float *dy = device_random(c, COUNT * WIDTH, -1, 1, 2);
    g_autofree float *want = new_sums(dy, WIDTH, 1, index, COUNT, VOCAB, WIDTH);
    void *dw = device_new(c, VOCAB * WIDTH);
    DEVICE_OK(kernel_cuda_embedding_backward(device_lane, dw, device_put(c, dy, COUNT * WIDTH),
                                             device_put_i64(index, COUNT), COUNT, VOCAB, WIDTH,
                                             c->type));
    device_close("dweight", c, dw, want, VOCAB * WIDTH, 1e-6, 1e-5);
}

/* More than one digit of the sort, and twice the same bits. */
static void test_embedding_repeats(void) {
    enum {
        COUNT = 1500,
        VOCAB = 2000,
        WIDTH = 4
    };
    g_autofree gint64 *index = new_indices(COUNT, VOCAB, 1237);
    DeviceCase c = {KERNEL_CUDA_F32, 0, 0};
    g_autofree float *dy = device_random(&c, COUNT * WIDTH, -1, 1, 2);
    g_autofree float *want = new_sums(dy, WIDTH, 1, index, COUNT, VOCAB, WIDTH);
    float *d = device_put_floats(dy, COUNT * WIDTH), *dw = device_new_floats(VOCAB * WIDTH);
    float *again = device_new_floats(VOCAB * WIDTH);
    gint64 *at = device_put_i64(index, COUNT);
    DEVICE_OK(kernel_cuda_embedding_backward(device_lane, dw, d, at, COUNT, VOCAB, WIDTH,
                                             KERNEL_CUDA_F32));
    DEVICE_OK(kernel_cuda_embedding_backward(device_lane, again, d, at, COUNT, VOCAB, WIDTH,
                                             KERNEL_CUDA_F32));
    device_close_floats("dweight", dw, want, VOCAB * WIDTH, 1e-6, 2e-5);
    g_autofree float *first = device_get_bytes(dw, VOCAB * WIDTH * sizeof(float));
    device_equal_bytes("again", again, first, VOCAB * WIDTH * sizeof(float));
}

static void test_bad_index(void) {
    gint64 index[] = {0, 3, 9, -1};
    float w[4 * 2] = {1, 2, 3, 4, 5, 6, 7, 8}, want[] = {1, 2, 7, 8, 0, 0, 0, 0};
    float want_dw[] = {1, 2, 0, 0, 0, 0, 3, 4};
    uint32_t op;
    gint64 *at = device_put_i64(index, 4);
    float *weight = device_put_floats(w, 8), *y = device_new_floats(8), *dw = device_new_floats(8);
    kernel_cuda_tag(device_lane, 5);
    DEVICE_OK(kernel_cuda_embedding_forward(device_lane, y, weight, at, 4, 4, 2, KERNEL_CUDA_F32));
    device_close_floats("rows", y, want, 8, 0, 0);
    g_assert_true(kernel_cuda_bad_index(device_lane, &op));
    g_assert_cmpuint(op, ==, 5);
    kernel_cuda_tag(device_lane, 6);
    DEVICE_OK(
        kernel_cuda_embedding_backward(device_lane, dw, weight, at, 4, 4, 2, KERNEL_CUDA_F32));
    device_close_floats("gradient", dw, want_dw, 8, 0, 0);
    g_assert_true(kernel_cuda_bad_index(device_lane, &op));
    g_assert_cmpuint(op, ==, 6);
    DEVICE_OK(kernel_cuda_bias_backward(device_lane, dw, weight, at, 4, 4, 2, KERNEL_CUDA_F32));
    g_free(device_get_bytes(dw, 1));
    g_assert_true(kernel_cuda_bad_index(device_lane, &op));
}

static void test_bias_backward(const DeviceCase *c) {
    static const size_t shapes[][3] = {
        {10, 3, 2}, {900, 5, 20}, {6500, 2, 3}}; /* the last in parts */
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t n = shapes[s][0], limit = shapes[s][1], heads = shapes[s][2];
        g_autofree gint64 *index = new_indices(n, limit, 7);
        g_autofree float *dy = device_random(c, n * heads, -1, 1, 1);
        g_autofree float *want = new_sums(dy, 1, n, index, n, limit, heads);
        void *dw = device_new(c, limit * heads);
        DEVICE_OK(kernel_cuda_bias_backward(device_lane, dw, device_put(c, dy, n * heads),
                                            device_put_i64(index, n), n, limit, heads, c->type));
        device_close("bias gradient", c, dw, want, limit * heads, 1e-6, 1e-4);
    }
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/embedding/both", test_embedding);
    DEVICE_TEST("/kernels-cuda/embedding/runs", test_embedding_runs);
    DEVICE_TEST_ONCE("/kernels-cuda/embedding/repeats", test_embedding_repeats);
    DEVICE_TEST_ONCE("/kernels-cuda/embedding/bad-index", test_bad_index);
    DEVICE_TEST("/kernels-cuda/embedding/bias-backward", test_bias_backward);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
