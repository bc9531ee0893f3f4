/* tests/kernels-cuda/four-bit.c - numbers in 4 bits and their magnitudes in 8, against the host's
 * bytes and numbers, bit by bit.
 */
#include "kernels/cuda/products/four-bit.h"
#include "kernels/host/products/four-bit.h"
#include "tests/kernels-cuda/device.h"

/* Blocks cut short, odd numbers of numbers, more than a grid has at once. */
static const size_t sizes[] = {1, 2, 63, 64, 65, 129, 256, 1000, 4096, 20001};

static size_t parts_of(size_t n, size_t part) {
    return (n + part - 1) / part;
}

/* A block of zeros among them. */
static float *numbers(const DeviceCase *c, size_t n, guint32 seed) {
    float *x = device_random(c, n, -3, 3, seed);
    for (size_t i = KERNEL_FOUR_BIT_BLOCK; i < n && i < 2 * KERNEL_FOUR_BIT_BLOCK; i++) {
        x[i] = 0;
    }
    return x;
}

static void test_four_bits(const DeviceCase *c) {
    for (unsigned s = 0; s < G_N_ELEMENTS(sizes) * 2; s++) {
        size_t n = sizes[s / 2], n_bytes = parts_of(n, 2), n_blocks = parts_of(n, 64);
        KernelFourBitCode code = s % 2 ? KERNEL_FOUR_BIT_FP4 : KERNEL_FOUR_BIT_NF4;
        g_autofree float *w = numbers(c, n, s), *want = g_new(float, n);
        g_autofree float *want_absmax = g_new(float, n_blocks);
        g_autofree guint8 *want_packed = g_new(guint8, n_bytes);
        guint8 *packed = device_new_elements(n_bytes, 1);
        float *absmax = device_new_floats(n_blocks);
        void *back = device_new(c, n);
        kernel_quantize_4bit(want_packed, want_absmax, w, n, code);
        kernel_dequantize_4bit(want, want_packed, want_absmax, n, code);
        DEVICE_OK(kernel_cuda_quantize_4bit(device_lane, packed, absmax, device_put(c, w, n), n,
                                            code, c->type));
        DEVICE_OK(kernel_cuda_dequantize_4bit(device_lane, back, packed, absmax, n, code, c->type));
        device_equal_bytes("packed", packed, want_packed, n_bytes);
        device_equal_bytes("absmax", absmax, want_absmax, n_blocks * sizeof *absmax);
        device_equal("back", c, back, want, n);
    }
}

/* Bytes in a tensor of 16 bits begin where two of them do. */
static void test_bytes_that_begin_anywhere(const DeviceCase *c) {
    enum {
        N = 1030
    };
    for (unsigned from = 0; from < 8; from++) {
        g_autofree float *w = numbers(c, N, from), *want = g_new(float, N);
        g_autofree float *absmax = g_new(float, parts_of(N, 64));
        guint8 packed[8 + N / 2] = {0};
        void *back = device_new(c, N);
        kernel_quantize_4bit(packed + from, absmax, w, N, KERNEL_FOUR_BIT_NF4);
        kernel_dequantize_4bit(want, packed + from, absmax, N, KERNEL_FOUR_BIT_NF4);
        guint8 *there = device_put_elements(packed, sizeof packed, 1);
        DEVICE_OK(kernel_cuda_dequantize_4bit(device_lane, back, there + from,
                                              device_put_floats(absmax, parts_of(N, 64)), N,
                                              KERNEL_FOUR_BIT_NF4, c->type));
        device_equal("back", c, back, want, N);
    }
}

static void test_bytes(const DeviceCase *c) {
    float map[KERNEL_BYTE_MAP];
    float *there = device_new_floats(KERNEL_BYTE_MAP);
    kernel_byte_map(map);
    DEVICE_OK(kernel_cuda_put_byte_map(device_lane, there, map));
    device_equal_bytes("map", there, map, sizeof map);
    for (unsigned s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s], n_blocks = parts_of(n, KERNEL_BYTE_BLOCK);
        g_autofree float *x = numbers(c, n, s), *want = g_new(float, n);
        g_autofree float *want_absmax = g_new(float, n_blocks);
        g_autofree guint8 *want_bytes = g_new(guint8, n);
        guint8 *bytes = device_new_elements(n, 1);
        float *absmax = device_new_floats(n_blocks), *back = device_new_floats(n);
        kernel_quantize_bytes(want_bytes, want_absmax, x, map, n);
        kernel_dequantize_bytes(want, want_bytes, want_absmax, map, n);
        DEVICE_OK(kernel_cuda_quantize_bytes(device_lane, bytes, absmax, device_put_floats(x, n),
                                             there, n));
        DEVICE_OK(kernel_cuda_dequantize_bytes(device_lane, back, bytes, absmax, there, n));
        device_equal_bytes("bytes", bytes, want_bytes, n);
        device_equal_bytes("absmax", absmax, want_absmax, n_blocks * sizeof *absmax);
        device_equal_bytes("back", back, want, n * sizeof *back);
    }
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/four-bit/there and back", test_four_bits);
    DEVICE_TEST("/kernels-cuda/four-bit/bytes that begin anywhere", test_bytes_that_begin_anywhere);
    DEVICE_TEST("/kernels-cuda/four-bit/in bytes", test_bytes);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
