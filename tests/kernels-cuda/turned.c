/* tests/kernels-cuda/turned.c - matrices whose rows become columns, against the host's. */
#include <string.h>

#include "kernels/cuda/products/turned.h"
#include "kernels/host/lists/optimizer.h"
#include "tests/kernels-cuda/device.h"

static const size_t shapes[][2] = {{1, 1}, {1, 70}, {33, 7}, {64, 32}, {130, 65}, {80, 208}};

/* Numbers of 1, 2 and 4 bytes, which begin on 16 bytes, or one number behind. */
static void test_exchanged(void) {
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes) * 6; i++) {
        size_t rows = shapes[i / 6][0], cols = shapes[i / 6][1], bytes = (size_t)1 << i % 3;
        size_t n = rows * cols, first = i / 3 % 2;
        g_autofree guint8 *x = g_malloc((n + 1) * bytes), *want = g_malloc(n * bytes);
        for (size_t byte = 0; byte < (n + 1) * bytes; byte++) {
            x[byte] = (guint8)g_test_rand_int();
        }
        guint8 *in = device_put_bytes(x, (n + 1) * bytes), *out = device_new_bytes(n * bytes);
        for (size_t e = 0; e < n; e++) {
            memcpy(want + (e % cols * rows + e / cols) * bytes, x + (e + first) * bytes, bytes);
        }
        DEVICE_OK(
            kernel_cuda_exchange_sides(device_lane, out, in + first * bytes, rows, cols, bytes));
        device_equal_bytes("exchanged", out, want, n * bytes);
    }
}

/* From the case's type to each. */
static void test_added(const DeviceCase *c) {
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes) * 3; i++) {
        size_t rows = shapes[i / 3][0], cols = shapes[i / 3][1], n = rows * cols;
        DeviceCase to = {(KernelCudaType)(i % 3), i % 2 ? c->shift : 0, 0};
        static const double roundings[] = {0, 0x1p-8, 0x1p-11};
        to.rounding = roundings[to.type];
        g_autofree float *x = device_random(c, n, -3, 3, 1), *y = device_random(&to, n, -3, 3, 2);
        void *on_device = device_put(&to, y, n);
        DEVICE_OK(kernel_cuda_add_turned(device_lane, on_device, to.type, device_put(c, x, n),
                                         c->type, rows, cols, -0.37));
        kernel_lower_by_matrix_f32(y, x, 0.37, cols, rows, 1, cols);
        device_close("added", &to, on_device, y, n, 0, 6e-7);
    }
}

static void test_nothing(const DeviceCase *c) {
    float one = 1;
    void *x = device_put(c, &one, 1), *y = device_put(c, &one, 1);
    size_t bytes = kernel_cuda_type_bytes(c->type);
    DEVICE_OK(kernel_cuda_exchange_sides(device_lane, y, x, 0, 5, bytes));
    DEVICE_OK(kernel_cuda_add_turned(device_lane, y, c->type, x, c->type, 5, 0, 1));
    device_equal("nothing", c, y, &one, 1);
}

static void add_tests(void) {
    DEVICE_TEST_ONCE("/kernels-cuda/turned/exchanged", test_exchanged);
    DEVICE_TEST("/kernels-cuda/turned/added", test_added);
    DEVICE_TEST("/kernels-cuda/turned/nothing", test_nothing);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
