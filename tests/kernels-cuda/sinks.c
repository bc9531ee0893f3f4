/* tests/kernels-cuda/sinks.c - sinks behind rows of scores, and numbers held within limits, against
 * kernels/host/sinks.h.
 */
#include "kernels/cuda/sinks.h"

#include "kernels/host/sinks.h"
#include "tests/kernels-cuda/device.h"

enum {
    BATCH = 2,
    HEADS = 3,
    ROWS = 37, /* of a head, of both sequences more than a block has threads */
    COLS = 5,
    MANY = 200,
};

static void check_sinks(const DeviceCase *c, size_t rows) {
    size_t n = BATCH * HEADS * rows * COLS, joined = BATCH * HEADS * rows * (COLS + 1);
    KernelCudaSinks shape = {BATCH, HEADS, rows, COLS, c->type};
    g_autofree float *x = device_random(c, n, -1, 1, 1), *sink = device_random(c, HEADS, -1, 1, 2);
    g_autofree float *both = g_new(float, joined), *sums = g_new(float, HEADS);
    kernel_join_sinks_f32(both, x, sink, BATCH, HEADS, rows, COLS);
    void *y = device_new(c, joined), *sum = device_new(c, HEADS);
    DEVICE_OK(kernel_cuda_join_sinks(device_lane, y, device_put(c, x, n),
                                     device_put(c, sink, HEADS), &shape));
    device_equal("join sinks", c, y, both, joined);
    g_autofree float *dy = device_random(c, joined, 0, 1, 3);
    kernel_sum_sinks_f32(sums, dy, BATCH, HEADS, rows, COLS);
    DEVICE_OK(kernel_cuda_sum_sinks(device_lane, sum, device_put(c, dy, joined), &shape));
    device_close("sum sinks", c, sum, sums, HEADS, 1e-6, 0);
}

static void test_sinks(const DeviceCase *c) {
    check_sinks(c, 1);
    check_sinks(c, ROWS);
    check_sinks(c, MANY);
}

/* `cols` numbers from `from` on in rows of `width`, some of which are at a limit. */
static void check_chosen(const DeviceCase *c, size_t cols, size_t width, size_t from) {
    size_t all = ROWS * width, n = ROWS * cols;
    KernelCudaChosen chosen = {ROWS, cols, width, from, c->type};
    g_autofree float *x = device_random(c, all, -3, 3, 1), *dy = device_random(c, n, -1, 1, 2);
    g_autofree float *want = g_new(float, n), *kept = g_new(float, n);
    g_autofree uint8_t *mask = g_new(uint8_t, n);
    const float zero = 0;
    x[from] = 1;
    x[width + from] = -1;
    void *in = device_put(c, x, all), *y = device_new(c, n), *inside = device_new_bytes(n);
    kernel_clamp_columns_f32(want, x, ROWS, cols, width, from, -1, 1);
    DEVICE_OK(kernel_cuda_clamp_columns(device_lane, y, in, &chosen, -1, 1));
    device_equal("clamp columns", c, y, want, n);
    for (int sign = -1; sign <= 1; sign += 2) {
        kernel_limit_mask_f32(mask, x, ROWS, cols, width, from, (float)sign, 1);
        DEVICE_OK(kernel_cuda_limit_mask(device_lane, inside, in, &chosen, (float)sign, 1));
        device_equal_bytes("limit mask", inside, mask, n);
    }
    kernel_where_mask_f32(kept, mask, dy, 0, n);
    DEVICE_OK(kernel_cuda_where_mask(device_lane, y, inside, device_put(c, dy, n),
                                     device_put(c, &zero, 1), n, c->type));
    device_equal("where mask", c, y, kept, n);
    for (size_t i = 0; i < n; i++) {
        want[i] = 0.5f * x[i / cols * width + from + i % cols];
    }
    DEVICE_OK(kernel_cuda_times_columns(device_lane, y, in, &chosen, 0.5f));
    device_equal("times columns", c, y, want, n);
}

static void test_chosen(const DeviceCase *c) {
    check_chosen(c, 1, 2, 0);
    check_chosen(c, 1, 2, 1);
    check_chosen(c, 4, 9, 3);
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/sinks/joined", test_sinks);
    DEVICE_TEST("/kernels-cuda/sinks/chosen", test_chosen);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
