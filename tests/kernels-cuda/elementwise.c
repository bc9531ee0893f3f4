/* tests/kernels-cuda/elementwise.c - element by element, and nonlinearities, against the host's. */
#include <math.h>

#include "kernels/cuda/activation.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/host/activation.h"
#include "kernels/host/elementwise.h"
#include "tests/kernels-cuda/device.h"

static const size_t sizes[] = {1, 7, 257, 5000};

/* ---- plain ---------------------------------------------------------------------------------- */

static void test_fill(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s];
        g_autofree float *want = g_new(float, n + 1);
        void *out = device_new(c, n);
        kernel_fill_f32(want, 1.3f, n);
        DEVICE_OK(kernel_cuda_fill(device_lane, out, n, 1.3, c->type));
        device_equal("fill", c, out, want, n);
    }
}

static void test_arange(void) {
    enum {
        N = 1000
    };
    gint64 want[N];
    gint64 *out = device_new_bytes(sizeof want);
    kernel_arange_i64(want, 5, 3, N);
    DEVICE_OK(kernel_cuda_arange_i64(device_lane, out, N, 5, 3));
    device_equal_bytes("arange", out, want, sizeof want);
}

static void test_add_mul(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s];
        g_autofree float *a = device_random(c, n, -3, 3, 1), *b = device_random(c, n, -3, 3, 2);
        g_autofree float *want = g_new(float, n);
        void *da = device_put(c, a, n), *db = device_put(c, b, n), *out = device_new(c, n);
        kernel_add_f32(want, a, b, n);
        DEVICE_OK(kernel_cuda_add(device_lane, out, da, db, n, n, c->type));
        device_equal("add", c, out, want, n);
        kernel_mul_f32(want, a, b, n);
        DEVICE_OK(kernel_cuda_mul(device_lane, da, da, db, n, c->type)); /* in place */
        device_equal("mul", c, da, want, n);
        void *sum = device_put(c, a, n);
        kernel_add_scaled_f32(want, a, b, -1.75f, n);
        DEVICE_OK(kernel_cuda_add_scaled(device_lane, sum, sum, db, n, -1.75, c->type));
        device_equal("add scaled", c, sum, want, n);
    }
}

static void test_add_rows(const DeviceCase *c) {
    static const size_t shapes[][2] = {{3, 64}, {5, 7}, {2, 1000}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], nb = shapes[s][1], n = rows * nb;
        g_autofree float *a = device_random(c, n, -3, 3, 1), *b = device_random(c, nb, -3, 3, 2);
        g_autofree float *want = g_new(float, n);
        void *out = device_new(c, n);
        kernel_add_rows_f32(want, a, b, rows, nb);
        DEVICE_OK(kernel_cuda_add(device_lane, out, device_put(c, a, n), device_put(c, b, nb), n,
                                  nb, c->type));
        device_equal("add rows", c, out, want, n);
    }
}

static KernelCudaFault (*const by_columns[])(KernelCuda *lane, void *out, const void *x,
                                             const void *column, size_t rows, size_t cols,
                                             KernelCudaType type) = {
    kernel_cuda_add_column, kernel_cuda_sub_column, kernel_cuda_divide_column};

static void test_broadcast_products(const DeviceCase *c) {
    static const size_t shapes[][2] = {{3, 64}, {5, 7}, {2, 1000}, {9, 1}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], cols = shapes[s][1], n = rows * cols;
        g_autofree float *x = device_random(c, n, -3, 3, 1), *want = g_new(float, n);
        g_autofree float *row = device_random(c, cols, -3, 3, 2);
        g_autofree float *column = device_random(c, rows, -3, 3, 3);
        void *in = device_put(c, x, n), *out = device_new(c, n);
        void *by_row = device_put(c, row, cols), *by_column = device_put(c, column, rows);
        kernel_mul_rows_f32(want, x, row, rows, cols);
        DEVICE_OK(kernel_cuda_mul_row(device_lane, out, in, by_row, rows, cols, c->type, c->type));
        device_equal("mul row", c, out, want, n);
        kernel_spread_f32(want, column, 0.25f, rows, cols);
        DEVICE_OK(kernel_cuda_spread(device_lane, out, by_column, rows, cols, 0.25, c->type));
        device_equal("spread", c, out, want, n);
        for (unsigned op = 0; op < G_N_ELEMENTS(by_columns); op++) {
            for (size_t i = 0; i < n; i++) {
                want[i] = op == 0   ? x[i] + column[i / cols]
                          : op == 1 ? x[i] - column[i / cols]
                                    : x[i] / column[i / cols];
            }
            DEVICE_OK(by_columns[op](device_lane, out, in, by_column, rows, cols, c->type));
            device_equal("by a column", c, out, want, n);
        }
        kernel_mul_columns_f32(want, x, column, rows, cols);
        DEVICE_OK(kernel_cuda_mul_column(device_lane, in, in, by_column, rows, cols, c->type));
        device_equal("mul column", c, in, want, n);
    }
}

/* A row of the case's type scales rows in fp32, or is added to them, and the other way round; the
 * arrays begin at different borders where c shifts. */
static void test_wide_rows(const DeviceCase *c) {
    static const size_t shapes[][2] = {{3, 64}, {5, 7}, {2, 1000}, {9, 1}, {4, 12}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], cols = shapes[s][1], n = rows * cols;
        DeviceCase wide = {KERNEL_CUDA_F32, s % 2 ? c->shift : 0, 0};
        for (unsigned way = 0; way < 4; way++) {
            const DeviceCase *of_x = way & 1 ? &wide : c, *of_row = way & 1 ? c : &wide;
            bool is_sum = way & 2;
            g_autofree float *x = device_random(of_x, n, -3, 3, 1), *want = g_new(float, n);
            g_autofree float *row = device_random(of_row, cols, -3, 3, 2);
            void *in = device_put(of_x, x, n), *out = device_new(&wide, n);
            void *by_row = device_put(of_row, row, cols);
            (is_sum ? kernel_add_rows_f32 : kernel_mul_rows_f32)(want, x, row, rows, cols);
            DEVICE_OK(is_sum ? kernel_cuda_add_row(device_lane, out, in, by_row, n, cols,
                                                   of_x->type, of_row->type)
                             : kernel_cuda_mul_row(device_lane, out, in, by_row, rows, cols,
                                                   of_x->type, of_row->type));
            device_equal("by a row, wide", &wide, out, want, n);
        }
    }
}

static void test_power(const DeviceCase *c) {
    static const double exponents[] = {1, 2, 3, 0.5, -0.5, 1.7};
    for (size_t e = 0; e < G_N_ELEMENTS(exponents); e++) {
        for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
            size_t n = sizes[s];
            g_autofree float *x = device_random(c, n, 0.1, 3, 1), *want = g_new(float, n);
            void *out = device_new(c, n);
            kernel_power_f32(want, x, exponents[e], n);
            DEVICE_OK(kernel_cuda_number(device_lane, out, device_put(c, x, n), n,
                                         KERNEL_CUDA_POWER, exponents[e], c->type));
            device_close("power", c, out, want, n, 2e-7, 0);
        }
    }
}

/* To each type, from the case's; the arrays begin at different borders where c shifts. */
static void test_between_types(const DeviceCase *c) {
    for (int to = KERNEL_CUDA_F32; to <= KERNEL_CUDA_F16; to++) {
        for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
            size_t n = sizes[s];
            DeviceCase other = {(KernelCudaType)to, s % 2 ? c->shift : 0, 0};
            g_autofree float *x = device_random(c, n, -3, 3, 1);
            g_autofree float *sum = device_random(&other, n, -3, 3, 2), *want = g_new(float, n);
            void *dx = device_put(c, x, n), *out = device_new(&other, n);
            void *dsum = device_put(&other, sum, n);
            DEVICE_OK(kernel_cuda_cast(device_lane, out, other.type, dx, c->type, n));
            device_equal("cast", &other, out, x, n);
            kernel_scale_f32(want, x, 0.37f, n);
            DEVICE_OK(kernel_cuda_scale(device_lane, out, other.type, dx, c->type, n, 0.37));
            device_equal("scale", &other, out, want, n);
            kernel_add_f32(want, sum, x, n);
            DEVICE_OK(kernel_cuda_accumulate(device_lane, dsum, other.type, dx, c->type, n));
            device_equal("accumulate", &other, dsum, want, n);
        }
    }
}

static void test_number(const DeviceCase *c) {
    enum {
        N = 300
    };
    g_autofree float *x = device_random(c, N, 0.1, 3, 1);
    float want[N];
    x[N / 2] = NAN;
    for (int op = KERNEL_CUDA_POWER; op <= KERNEL_CUDA_AT_LEAST; op++) {
        void *out = device_new(c, N);
        for (size_t i = 0; i < N; i++) {
            double v = (double)x[i];
            want[i] = (float)(op == KERNEL_CUDA_POWER          ? pow(v, 0.5)
                              : op == KERNEL_CUDA_ADD_NUMBER   ? v + 0.5
                              : op == KERNEL_CUDA_TIMES_NUMBER ? v * 0.5
                              : isnan(v)                       ? v
                              : op == KERNEL_CUDA_AT_MOST      ? fmin(v, 0.5)
                                                               : fmax(v, 0.5));
        }
        DEVICE_OK(kernel_cuda_number(device_lane, out, device_put(c, x, N), N, (KernelCudaNumber)op,
                                     0.5, c->type));
        device_close("number", c, out, want, N, 2e-7, 0);
    }
}

/* ---- nonlinearities ------------------------------------------------------------------------- */

typedef void (*HostForward)(float *, const float *, size_t);
typedef void (*HostBackward)(float *, const float *, const float *, size_t);

static void relu_backward(float *dx, const float *dy, const float *y, size_t n) {
    kernel_threshold_backward_f32(dx, dy, y, 0, n);
}

static void test_activations(const DeviceCase *c) {
    static const struct {
        KernelCudaActivation kind;
        HostForward forward;
        HostBackward backward;
    } all[] = {
        {KERNEL_CUDA_GELU_TANH, kernel_gelu_tanh_forward_f32, kernel_gelu_tanh_backward_f32},
        {KERNEL_CUDA_GELU_ERF, kernel_gelu_erf_forward_f32, kernel_gelu_erf_backward_f32},
        {KERNEL_CUDA_TANH, kernel_tanh_forward_f32, kernel_tanh_backward_f32},
        {KERNEL_CUDA_RELU, kernel_relu_forward_f32, relu_backward},
        {KERNEL_CUDA_SILU, kernel_silu_forward_f32, kernel_silu_backward_f32},
    };
    for (size_t k = 0; k < G_N_ELEMENTS(all); k++) {
        for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
            size_t n = sizes[s];
            g_autofree float *x = device_random(c, n, -8, 8, 1), *want = g_new(float, n);
            g_autofree float *dy = device_random(c, n, -2, 2, 2);
            void *in = device_put(c, x, n), *out = device_new(c, n);
            void *din = device_put(c, dy, n);
            all[k].forward(want, x, n);
            DEVICE_OK(
                kernel_cuda_activation_forward(device_lane, out, in, n, all[k].kind, c->type));
            device_close("forward", c, out, want, n, 1e-6, 1e-6);
            all[k].backward(want, dy, x, n);
            DEVICE_OK(kernel_cuda_activation_backward(device_lane, din, din, in, n, all[k].kind,
                                                      c->type));
            device_close("backward", c, din, want, n, 2e-6, 2e-6);
        }
    }
}

static void test_swiglu(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s];
        g_autofree float *gate = device_random(c, n, -8, 8, 1), *up = device_random(c, n, -3, 3, 2);
        g_autofree float *dy = device_random(c, n, -2, 2, 3);
        g_autofree float *want = g_new(float, n), *other = g_new(float, n);
        void *dgate = device_new(c, n), *dup = device_new(c, n), *y = device_new(c, n);
        void *g = device_put(c, gate, n), *u = device_put(c, up, n), *d = device_put(c, dy, n);
        kernel_silu_forward_f32(want, gate, n);
        kernel_mul_f32(want, want, up, n);
        DEVICE_OK(kernel_cuda_swiglu_forward(device_lane, y, g, u, n, c->type));
        device_close("swiglu", c, y, want, n, 2e-6, 2e-6);
        DEVICE_OK(kernel_cuda_swiglu_backward(device_lane, dgate, dup, d, g, u, n, c->type));
        kernel_mul_f32(other, dy, up, n);
        kernel_silu_backward_f32(want, other, gate, n);
        device_close("dgate", c, dgate, want, n, 4e-6, 4e-6);
        kernel_silu_forward_f32(want, gate, n);
        kernel_mul_f32(want, want, dy, n);
        device_close("dup", c, dup, want, n, 2e-6, 2e-6);
    }
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/elementwise/fill", test_fill);
    DEVICE_TEST_ONCE("/kernels-cuda/elementwise/arange", test_arange);
    DEVICE_TEST("/kernels-cuda/elementwise/add-mul", test_add_mul);
    DEVICE_TEST("/kernels-cuda/elementwise/add-rows", test_add_rows);
    DEVICE_TEST("/kernels-cuda/elementwise/broadcast-products", test_broadcast_products);
    DEVICE_TEST("/kernels-cuda/elementwise/wide-rows", test_wide_rows);
    DEVICE_TEST("/kernels-cuda/elementwise/power", test_power);
    DEVICE_TEST("/kernels-cuda/elementwise/between-types", test_between_types);
    DEVICE_TEST("/kernels-cuda/elementwise/number", test_number);
    DEVICE_TEST("/kernels-cuda/activation/all", test_activations);
    DEVICE_TEST("/kernels-cuda/activation/swiglu", test_swiglu);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
