/* tests/kernels-cuda/products.c - matrix products against the host's. */
#include <math.h>
#include <string.h>

#include "kernels/cuda/products/matmul.h"
#include "kernels/host/activation.h"
#include "kernels/host/attention/view.h"
#include "kernels/host/products/matmul.h"
#include "kernels/host/reduce.h"
#include "tests/emulator/emulator.h"
#include "tests/kernels-cuda/device.h"

static const size_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {16, 24, 40}, {33, 64, 17}};

/* A bias that lies anyhow may be added by a kernel of its own: the product was rounded before. */
static float *slack_of_bias(const DeviceCase *c, const float *x, const float *w, size_t m, size_t n,
                            size_t k) {
    float *slack = g_new(float, m *n);
    kernel_linear_forward_f32(slack, x, w, NULL, m, n, k);
    for (size_t i = 0; i < m * n; i++) {
        slack[i] = c->shift ? (float)c->rounding * fabsf(slack[i]) : 0;
    }
    return slack;
}

static void test_linear(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        g_autofree float *x = device_random(c, m * k, -1, 1, 1),
                         *w = device_random(c, n * k, -1, 1, 2);
        g_autofree float *bias = device_random(c, n, -1, 1, 3),
                         *dy = device_random(c, m * n, -1, 1, 4);
        g_autofree float *want = g_new(float, MAX(m * n, MAX(m * k, n * k)));
        void *dx = device_put(c, x, m * k), *dw = device_put(c, w, n * k),
             *y = device_new(c, m * n);
        void *db = device_put(c, bias, n), *d = device_put(c, dy, m * n);
        g_autofree float *slack = slack_of_bias(c, x, w, m, n, k);
        kernel_linear_forward_f32(want, x, w, bias, m, n, k);
        DEVICE_OK(kernel_cuda_linear_forward(device_lane, y, dx, dw, db, m, n, k, c->type));
        device_close_within("linear", c, y, want, slack, m * n, 1e-6, 1e-5);
        kernel_linear_forward_f32(want, x, w, NULL, m, n, k);
        DEVICE_OK(kernel_cuda_linear_forward(device_lane, y, dx, dw, NULL, m, n, k, c->type));
        device_close("linear without bias", c, y, want, m * n, 1e-6, 1e-5);
        void *gx = device_new(c, m * k), *gw = device_new(c, n * k);
        kernel_linear_backward_input_f32(want, dy, w, m, n, k);
        DEVICE_OK(kernel_cuda_linear_backward_input(device_lane, gx, d, dw, m, n, k, c->type));
        device_close("dx", c, gx, want, m * k, 1e-6, 1e-5);
        kernel_linear_backward_weight_f32(want, dy, x, m, n, k);
        DEVICE_OK(kernel_cuda_linear_backward_weight(device_lane, gw, d, dx, m, n, k, c->type));
        device_close("dw", c, gw, want, n * k, 1e-6, 1e-5);
        g_autofree float *before = device_get(c, gw, n * k);
        for (size_t i = 0; i < n * k; i++) {
            want[i] += before[i];
        }
        DEVICE_OK(kernel_cuda_linear_backward_weight_add(device_lane, gw, d, dx, m, n, k, c->type));
        device_close("dw added to", c, gw, want, n * k, 2e-6, 2e-5);
    }
}

/* Lying either way, times numbers, beside what was there or in its place. */
static void test_product(const DeviceCase *c) {
    for (size_t i = 0; i < G_N_ELEMENTS(shapes) * 8; i++) {
        size_t m = shapes[i / 8][0], n = shapes[i / 8][1], k = shapes[i / 8][2];
        bool a_turned = i & 1, b_turned = i & 2;
        double alpha = i & 4 ? 2.0315 : 1, beta = i & 4 ? -4.775 : 0;
        g_autofree float *a = device_random(c, m * k, -1, 1, 1);
        g_autofree float *b = device_random(c, k * n, -1, 1, 2);
        g_autofree float *y = device_random(c, m * n, -1, 1, 3);
        void *got = beta != 0 ? device_put(c, y, m * n) : device_new(c, m * n);
        DEVICE_OK(kernel_cuda_product(device_lane, got, device_put(c, a, m * k), a_turned,
                                      device_put(c, b, k * n), b_turned, m, n, k, alpha, beta,
                                      c->type));
        kernel_gemm_f32(a_turned ? KERNEL_TRANSPOSE : KERNEL_NO_TRANSPOSE,
                        b_turned ? KERNEL_TRANSPOSE : KERNEL_NO_TRANSPOSE, m, n, k, (float)alpha, a,
                        a_turned ? m : k, b, b_turned ? k : n, (float)beta, y, n);
        device_close("product", c, got, y, m * n, 1e-6, 3e-5);
    }
}

/* Logits in rows that are no whole 16 bytes, so large that they go by way of scratch memory, in
 * several parts; first what wants least of it, so that more would be seen. */
static void test_odd_width(const DeviceCase *c) {
    enum {
        M = 600,
        N = 1739,
        K = 256
    };
    g_autofree float *x = device_random(c, M * K, -1, 1, 1), *w = device_random(c, N * K, -1, 1, 2);
    g_autofree float *dy = device_random(c, M * N, -1, 1, 3), *want = g_new(float, M *N);
    void *in = device_put(c, x, M * K), *on_w = device_put(c, w, N * K), *y = device_new(c, M * N);
    void *d = device_put(c, dy, M * N), *dx = device_new(c, M * K), *dw = device_new(c, N * K);
    kernel_linear_backward_weight_f32(want, dy, x, M, N, K);
    DEVICE_OK(kernel_cuda_linear_backward_weight(device_lane, dw, d, in, M, N, K, c->type));
    device_close("dw of an odd width", c, dw, want, N * K, 1e-6, 2e-4);
    kernel_linear_forward_f32(want, x, w, NULL, M, N, K);
    DEVICE_OK(kernel_cuda_linear_forward(device_lane, y, in, on_w, NULL, M, N, K, c->type));
    device_close("odd width", c, y, want, M * N, 1e-6, 1e-4);
    kernel_linear_backward_input_f32(want, dy, w, M, N, K);
    DEVICE_OK(kernel_cuda_linear_backward_input(device_lane, dx, d, on_w, M, N, K, c->type));
    device_close("dx of an odd width", c, dx, want, M * K, 1e-6, 1e-3);
}

#ifdef KERNEL_EMULATED
/* What cuBLASLt proposes first and cannot run is done by what it has next. */
static void test_refused_algorithm(void) {
    enum {
        N = 24
    };
    DeviceCase c = {KERNEL_CUDA_F32, 0, 0};
    g_autofree float *x = device_random(&c, N * N, -1, 1, 1);
    g_autofree float *w = device_random(&c, N * N, -1, 1, 2), *want = g_new(float, N *N);
    void *in = device_put(&c, x, N * N), *on_w = device_put(&c, w, N * N);
    void *out = device_new(&c, N * N);
    kernel_linear_forward_f32(want, x, w, NULL, N, N, N);
    for (unsigned n = 0; n < 2; n++) {
        emulator_refuse_algorithms(n);
        DEVICE_OK(kernel_cuda_linear_forward(device_lane, out, in, on_w, NULL, N, N, N, c.type));
        device_close("y", &c, out, want, N * N, 1e-6, 1e-5);
    }
    emulator_refuse_algorithms(2);
    KernelCudaFault fault =
        kernel_cuda_linear_forward(device_lane, out, in, on_w, NULL, N, N, N, c.type);
    g_assert_cmpstr(fault, ==, "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED");
    emulator_refuse_algorithms(0);
    cudaGetLastError();
}

/* An ending that cuBLASLt's heuristics know and its call refuses, as of a wrong argument, is
 * another kernel's. */
static void test_refused_endings(void) {
    enum {
        N = 24
    };
    DeviceCase c = {KERNEL_CUDA_BF16, 0, 1.0 / 256};
    g_autofree float *x = device_random(&c, N * N, -1, 1, 1);
    g_autofree float *w = device_random(&c, N * N, -1, 1, 2), *want = g_new(float, N *N);
    g_autofree float *bias = device_random(&c, N, -1, 1, 3), *sums = g_new0(float, N);
    void *in = device_put(&c, x, N * N), *on_w = device_put(&c, w, N * N);
    void *on_bias = device_put(&c, bias, N), *out = device_new(&c, N * N);
    void *before = device_new(&c, N * N), *db = device_new(&c, N);
    KernelCuda *k = device_lane;
    emulator_refuse_endings(true);
    kernel_linear_forward_f32(want, x, w, bias, N, N, N);
    DEVICE_OK(kernel_cuda_linear_forward(k, out, in, on_w, on_bias, N, N, N, c.type));
    device_close("y", &c, out, want, N * N, 1.0 / 256, 1e-2);
    DEVICE_OK(kernel_cuda_linear_gelu_forward(k, out, before, in, on_w, on_bias, N, N, N,
                                              KERNEL_CUDA_GELU_TANH, c.type));
    device_close("before", &c, before, want, N * N, 1.0 / 256, 1e-2);
    kernel_linear_backward_weight_f32(want, x, w, N, N, N);
    DEVICE_OK(kernel_cuda_linear_backward_weight_bias(k, out, db, in, on_w, N, N, N, c.type));
    device_close("dw", &c, out, want, N * N, 1.0 / 256, 1e-2);
    for (unsigned i = 0; i < N * N; i++) {
        sums[i % N] += x[i];
    }
    device_close("db", &c, db, sums, N, 1.0 / 256, 1e-2);
    emulator_refuse_endings(false);
    cudaGetLastError();
}

/* Where there is no room for that, they are made as they lie. */
static void test_odd_width_without_room(void) {
    enum {
        M = 256,
        N = 1025,
        K = 256
    };
    size_t free_bytes, total_bytes;
    DeviceCase c = {KERNEL_CUDA_BF16, 0, 1.0 / 256};
    g_autofree float *x = device_random(&c, M * K, -1, 1, 1);
    g_autofree float *w = device_random(&c, N * K, -1, 1, 2), *want = g_new(float, M *N);
    void *in = device_put(&c, x, M * K), *on_w = device_put(&c, w, N * K);
    void *y = device_new(&c, M * N);
    /* cuBLAS has its workspace from the first product on. */
    DEVICE_OK(kernel_cuda_linear_forward(device_lane, y, in, on_w, NULL, M, N - 1, K, c.type));
    g_assert_cmpint(cudaMemGetInfo(&free_bytes, &total_bytes), ==, cudaSuccess);
    device_new_bytes(free_bytes - (1 << 19));
    size_t held = kernel_cuda_scratch_bytes(device_lane);
    kernel_linear_forward_f32(want, x, w, NULL, M, N, K);
    for (unsigned again = 0; again < 2; again++) {
        DEVICE_OK(kernel_cuda_linear_forward(device_lane, y, in, on_w, NULL, M, N, K, c.type));
        device_close("odd width, no room", &c, y, want, M * N, 1e-6, 1e-4);
    }
    g_assert_cmpuint(kernel_cuda_scratch_bytes(device_lane), ==, held);
}
#endif

/* Backward, what the epilogues want is a k of whole 16 bytes of halves. */
static const size_t gelu_shapes[][3] = {
    {1, 1, 1}, {3, 5, 7}, {16, 24, 40}, {33, 17, 64}, {40, 33, 24}};

/* In the epilogue (n whole 16 bytes of halves, tanh) and by a second kernel (all others). */
static void test_linear_gelu(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        g_autofree float *x = device_random(c, m * k, -1, 1, 1),
                         *w = device_random(c, n * k, -1, 1, 2);
        g_autofree float *bias = device_random(c, n, -1, 1, 3), *want = g_new(float, m *n);
        g_autofree float *want_y = g_new(float, m *n), *slack = slack_of_bias(c, x, w, m, n, k);
        void *dx = device_put(c, x, m * k), *dw = device_put(c, w, n * k),
             *db = device_put(c, bias, n);
        for (int erf = 0; erf < 2; erf++) {
            void *y = device_new(c, m * n), *before = device_new(c, m * n);
            kernel_linear_forward_f32(want, x, w, bias, m, n, k);
            (erf ? kernel_gelu_erf_forward_f32 : kernel_gelu_tanh_forward_f32)(want_y, want, m * n);
            DEVICE_OK(kernel_cuda_linear_gelu_forward(
                device_lane, y, before, dx, dw, db, m, n, k,
                erf ? KERNEL_CUDA_GELU_ERF : KERNEL_CUDA_GELU_TANH, c->type));
            device_close_within("before", c, before, want, slack, m * n, 1e-6, 1e-5);
            /* GELU of what was rounded may be off by as much again (its slope is below 1.13). */
            device_close_within("gelu", c, y, want_y, slack, m * n, 1e-6 + 2 * c->rounding,
                                1e-5 + 2 * c->rounding);
        }
    }
}

/* What the sum of rows may be off by where each number was rounded before it was added. */
static float *slack_of_sums(double rounding, const float *x, size_t rows, size_t cols) {
    float *slack = g_new0(float, cols);
    for (size_t i = 0; i < rows * cols; i++) {
        slack[i % cols] += (float)rounding * fabsf(x[i]);
    }
    return slack;
}

/* Both gradients of a linear layer that another's GELU stands before, as host kernels make them one
 * by one; with the sums of what they are, and without. */
static void test_linear_gelu_backward(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(gelu_shapes); s++) {
        size_t m = gelu_shapes[s][0], n = gelu_shapes[s][1], k = gelu_shapes[s][2];
        g_autofree float *dy = device_random(c, m * n, -1, 1, 1),
                         *w = device_random(c, n * k, -1, 1, 2);
        g_autofree float *before = device_random(c, m * k, -3, 3, 3);
        g_autofree float *product = g_new(float, m *k), *want = g_new(float, m *k);
        g_autofree float *sums = g_new(float, k), *slack = g_new(float, m *k);
        void *d = device_put(c, dy, m * n), *dw = device_put(c, w, n * k),
             *in = device_put(c, before, m * k);
        kernel_linear_backward_input_f32(product, dy, w, m, n, k);
        kernel_gelu_tanh_backward_f32(want, product, before, m * k);
        kernel_column_sum_f32(sums, want, m, k);
        for (size_t i = 0; i < m * k; i++) { /* apart, the product was rounded; the slope is 1.13 */
            slack[i] = 1.13f * (float)c->rounding * fabsf(product[i]);
        }
        g_autofree float *of_sums = slack_of_sums(c->rounding, want, m, k);
        for (size_t i = 0; i < m * k; i++) {
            of_sums[i % k] += slack[i];
        }
        for (int adds = 0; adds < 2; adds++) {
            void *dx = device_new(c, m * k), *db = adds ? device_new(c, k) : NULL;
            DEVICE_OK(kernel_cuda_linear_gelu_backward_input(device_lane, dx, db, d, dw, in, m, n,
                                                             k, c->type));
            device_close_within("dx through gelu", c, dx, want, slack, m * k, 1e-5, 1e-5);
            if (adds) {
                device_close_within("its sums", c, db, sums, of_sums, k, 1e-5, 1e-5 * (double)m);
            }
        }
    }
}

static void test_weight_and_bias(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(gelu_shapes); s++) {
        size_t m = gelu_shapes[s][0], n = gelu_shapes[s][1], k = gelu_shapes[s][2];
        g_autofree float *dy = device_random(c, m * n, -1, 1, 1),
                         *x = device_random(c, m * k, -1, 1, 2);
        g_autofree float *want = g_new(float, n *k), *sums = g_new(float, n);
        void *d = device_put(c, dy, m * n), *in = device_put(c, x, m * k);
        void *dw = device_new(c, n * k), *db = device_new(c, n);
        kernel_linear_backward_weight_f32(want, dy, x, m, n, k);
        kernel_column_sum_f32(sums, dy, m, n);
        DEVICE_OK(
            kernel_cuda_linear_backward_weight_bias(device_lane, dw, db, d, in, m, n, k, c->type));
        device_close("dw beside db", c, dw, want, n * k, 1e-6, 1e-5);
        device_close("db", c, db, sums, n, 1e-5, 1e-5);
    }
}

/* One shape again and again, its bias and what goes into GELU each lying otherwise: what was chosen
 * for one of them need not do for another. Views into a flat parameter lie so. */
static void test_bias_anywhere(const DeviceCase *c) {
    enum {
        M = 16,
        N = 24,
        K = 40,
        PLACES = 9
    };
    g_autofree float *x = device_random(c, M * K, -1, 1, 1), *w = device_random(c, N * K, -1, 1, 2);
    g_autofree float *biases = device_random(c, N + PLACES, -1, 1, 3), *want = g_new(float, M *N);
    g_autofree float *want_y = g_new(float, M *N);
    size_t bytes = kernel_cuda_type_bytes(c->type);
    void *dx = device_put(c, x, M * K), *dw = device_put(c, w, N * K);
    char *db = device_put(c, biases, N + PLACES);
    for (unsigned at = 0; at < PLACES; at++) {
        void *y = device_new(c, M * N);
        char *before = device_new(c, M * N + PLACES);
        kernel_linear_forward_f32(want, x, w, biases + at, M, N, K);
        DEVICE_OK(
            kernel_cuda_linear_forward(device_lane, y, dx, dw, db + at * bytes, M, N, K, c->type));
        /* A product of 40 numbers below 1 may be 40, and is rounded before the bias comes. */
        device_close("bias anywhere", c, y, want, M * N, 1e-6, 1e-5 + 40 * c->rounding);
        kernel_gelu_tanh_forward_f32(want_y, want, M * N);
        DEVICE_OK(kernel_cuda_linear_gelu_forward(device_lane, y, before + at * bytes, dx, dw,
                                                  db + at * bytes, M, N, K, KERNEL_CUDA_GELU_TANH,
                                                  c->type));
        device_close("before, anywhere", c, before + at * bytes, want, M * N, 1e-6,
                     1e-5 + 40 * c->rounding);
        device_close("gelu, anywhere", c, y, want_y, M * N, 1e-6, 1e-5 + 80 * c->rounding);
    }
}

/* Backward likewise: where db and what went into GELU lie. */
static void test_gradient_anywhere(const DeviceCase *c) {
    enum {
        M = 16,
        N = 24,
        K = 40,
        PLACES = 9
    };
    g_autofree float *dy = device_random(c, M * N, -1, 1, 1),
                     *w = device_random(c, N * K, -1, 1, 2);
    g_autofree float *x = device_random(c, M * K, -1, 1, 3);
    g_autofree float *before = device_random(c, M * K + PLACES, -3, 3, 4);
    g_autofree float *want = g_new(float, M *K), *sums = g_new(float, K),
                     *want_w = g_new(float, N *K);
    size_t bytes = kernel_cuda_type_bytes(c->type);
    void *d = device_put(c, dy, M * N), *dw = device_put(c, w, N * K),
         *in = device_put(c, x, M * K);
    char *at_before = device_put(c, before, M * K + PLACES);
    for (unsigned at = 0; at < PLACES; at++) {
        void *dx = device_new(c, M * K), *out = device_new(c, N * K);
        char *db = device_new(c, MAX(N, K) + PLACES);
        kernel_linear_backward_input_f32(want, dy, w, M, N, K);
        kernel_gelu_tanh_backward_f32(want, want, before + at, M * K);
        kernel_column_sum_f32(sums, want, M, K);
        DEVICE_OK(kernel_cuda_linear_gelu_backward_input(device_lane, dx, db + at * bytes, d, dw,
                                                         at_before + at * bytes, M, N, K, c->type));
        /* A product of 24 numbers below 1 may be 24, and is rounded before GELU's slope comes. */
        device_close("dx, anywhere", c, dx, want, M * K, 1e-5, 1e-5 + 28 * c->rounding);
        device_close("sums, anywhere", c, db + at * bytes, sums, K, 1e-5,
                     M * (1e-5 + 56 * c->rounding));
        kernel_linear_backward_weight_f32(want_w, dy, x, M, N, K);
        kernel_column_sum_f32(sums, dy, M, N);
        DEVICE_OK(kernel_cuda_linear_backward_weight_bias(device_lane, out, db + at * bytes, d, in,
                                                          M, N, K, c->type));
        device_close("dw, anywhere", c, out, want_w, N * K, 1e-6, 1e-5);
        device_close("db, anywhere", c, db + at * bytes, sums, N, 1e-5, 1e-5);
    }
}

/* ops.def's layouts: 0 [batch, heads, r, c], 1 its transpose, 2 inside rows, 3 its transpose. */
static KernelCudaMatrices matrices(void *data, size_t heads, size_t r, size_t c, unsigned layout,
                                   size_t stride) {
    size_t rows = layout & 1 ? c : r, cols = layout & 1 ? r : c;
    return layout & 2
               ? (KernelCudaMatrices){data, rows * stride, cols, stride, layout & 1}
               : (KernelCudaMatrices){data, heads * rows * cols, rows * cols, cols, layout & 1};
}

static float element(const float *x, const KernelCudaMatrices *l, size_t b, size_t h, size_t r,
                     size_t c) {
    const float *at = x + b * l->batch_stride + h * l->head_stride;
    return l->transposed ? at[c * l->row_stride + r] : at[r * l->row_stride + c];
}

static void check_heads_matmul(const DeviceCase *c, unsigned la, unsigned lb, unsigned ly) {
    enum {
        BATCH = 2,
        HEADS = 3,
        M = 5,
        N = 4,
        K = 6,
        ROW = HEADS * 6 + 2, /* of a and b inside */
        MOST = BATCH * ROW * 6
    };
    g_autofree float *a = device_random(c, MOST, -1, 1, 1), *b = device_random(c, MOST, -1, 1, 2);
    float want[BATCH * HEADS * M * N];
    void *out = device_new(c, G_N_ELEMENTS(want));
    KernelCudaMatrices ma = matrices(device_put(c, a, MOST), HEADS, M, K, la, ROW);
    KernelCudaMatrices mb = matrices(device_put(c, b, MOST), HEADS, K, N, lb, ROW);
    KernelCudaMatrices my = matrices(out, HEADS, M, N, ly, HEADS * N);
    for (size_t i = 0; i < G_N_ELEMENTS(want); i++) {
        size_t batch = i / (HEADS * M * N), head = i / (M * N) % HEADS, row = i / N % M,
               col = i % N;
        double sum = 0;
        for (size_t k = 0; k < K; k++) {
            sum += (double)element(a, &ma, batch, head, row, k) *
                   (double)element(b, &mb, batch, head, k, col);
        }
        want[batch * my.batch_stride + head * my.head_stride + row * my.row_stride + col] =
            (float)sum;
    }
    DEVICE_OK(kernel_cuda_heads_matmul(device_lane, my, ma, mb, BATCH, HEADS, M, N, K, c->type));
    device_close("heads matmul", c, out, want, G_N_ELEMENTS(want), 1e-6, 1e-6);
}

static void test_heads_matmul(const DeviceCase *c) {
    for (unsigned i = 0; i < 32; i++) {
        check_heads_matmul(c, i % 4, i / 4 % 4, i / 16 * 2);
    }
}

#ifdef KERNEL_EMULATED
/* As on an A100, where other ends are asked for. */
static void run_cases_as_a100(gconstpointer test) {
    emulator_set_capability(80);
    device_run_cases(test);
    emulator_set_capability(90);
}
#endif

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/matmul/linear", test_linear);
    DEVICE_TEST("/kernels-cuda/matmul/product", test_product);
    DEVICE_TEST("/kernels-cuda/matmul/odd-width", test_odd_width);
#ifdef KERNEL_EMULATED
    DEVICE_TEST_ONCE("/kernels-cuda/matmul/odd-width-without-room", test_odd_width_without_room);
    DEVICE_TEST_ONCE("/kernels-cuda/matmul/refused-algorithm", test_refused_algorithm);
    DEVICE_TEST_ONCE("/kernels-cuda/matmul/refused-endings", test_refused_endings);
#endif
    DEVICE_TEST("/kernels-cuda/matmul/linear-gelu", test_linear_gelu);
    DEVICE_TEST("/kernels-cuda/matmul/bias-anywhere", test_bias_anywhere);
    DEVICE_TEST("/kernels-cuda/matmul/linear-gelu-backward", test_linear_gelu_backward);
#ifdef KERNEL_EMULATED
    g_test_add_data_func("/kernels-cuda/matmul/linear-gelu-backward-a100",
                         (gconstpointer)test_linear_gelu_backward, run_cases_as_a100);
    g_test_add_data_func("/kernels-cuda/matmul/gradient-anywhere-a100",
                         (gconstpointer)test_gradient_anywhere, run_cases_as_a100);
#endif
    DEVICE_TEST("/kernels-cuda/matmul/weight-and-bias", test_weight_and_bias);
    DEVICE_TEST("/kernels-cuda/matmul/gradient-anywhere", test_gradient_anywhere);
    DEVICE_TEST("/kernels-cuda/matmul/heads", test_heads_matmul);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
