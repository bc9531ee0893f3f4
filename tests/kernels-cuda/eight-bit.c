/* tests/kernels-cuda/eight-bit.c - AdamW with states in 8 bits, against the host's. A GPU fuses
 * products with sums, so that a number halfway between two places may have either.
 */
#include "kernels/cuda/lists/eight-bit.h"
#include "kernels/host/lists/eight-bit.h"
#include "kernels/host/products/four-bit.h"
#include "tests/kernels-cuda/device.h"

#include <string.h>

enum {
    BLOCKS = 5,
    N = BLOCKS * KERNEL_BYTE_BLOCK
};

static const float LEAST = 1e-12f;

static KernelAdamOne one(void) {
    return kernel_adam_one_of(1e-2, 0.9, 0.99, 1e-8, 0.1, 3);
}

static void codes_close(const char *what, const guint8 *got, const guint8 *want, size_t n) {
    g_autofree guint8 *codes = device_get_bytes(got, n);
    for (size_t i = 0; i < n; i++) {
        if (ABS((int)codes[i] - (int)want[i]) > 1) {
            g_test_message("%s %zu: %u, not %u", what, i, codes[i], want[i]);
            g_test_fail();
        }
    }
}

/* A state on the host and the same on the device. */
typedef struct {
    guint8 codes[N];
    float absmax[BLOCKS], map[KERNEL_BYTE_MAP], most[BLOCKS], scaled[N];
    KernelState8bit host, device;
} State;

static void begin(State *s, unsigned parts, guint32 seed) {
    GRand *random = g_rand_new_with_seed(seed);
    kernel_state_map(s->map, parts);
    for (unsigned i = 0; i < N; i++) {
        s->codes[i] = (guint8)g_rand_int_range(random, 0, 256);
    }
    for (unsigned b = 0; b < BLOCKS; b++) {
        s->absmax[b] = b == 2 ? 0 : (float)g_rand_double_range(random, 1e-3, 2);
    }
    g_rand_free(random);
    s->host = (KernelState8bit){s->codes, s->absmax, s->map, s->most, s->scaled};
    s->device =
        (KernelState8bit){device_put_elements(s->codes, N, 1), device_put_floats(s->absmax, BLOCKS),
                          device_put_floats(s->map, KERNEL_BYTE_MAP), device_new_floats(BLOCKS),
                          device_new_floats(N)};
}

static void state_close(const State *s) {
    codes_close("codes", s->device.codes, s->codes, N);
    device_close_floats("absmax", s->device.absmax, s->absmax, BLOCKS, 1e-6, 0);
}

static void scaled_close(const State *s) {
    device_close_floats("most", s->device.most, s->most, BLOCKS, 1e-6, 0);
    device_close_floats("scaled", s->device.scaled, s->scaled, N, 2e-6, 1e-7);
}

/* The device rounds the new parameter to its type. */
static void test_in_one(const DeviceCase *c) {
    g_autofree State *m = g_new(State, 1), *v = g_new(State, 1);
    g_autofree float *param = device_random(c, N, -1, 1, 1), *grad = device_random(c, N, -2, 2, 2);
    KernelAdamOne step = one();
    void *there = device_put(c, param, N);
    grad[N - 5] = NAN; /* and so are its block's new states */
    begin(m, 1, 3);
    begin(v, 2, 4);
    DEVICE_OK(kernel_cuda_adam_8bit(device_lane, there, device_put(c, grad, N), &m->device,
                                    &v->device, N, LEAST, &step, c->type));
    kernel_adam_8bit(param, grad, &m->host, &v->host, N, LEAST, &step);
    device_close("param", c, there, param, N, 1e-5, 1e-6);
    state_close(m);
    state_close(v);
}

static void test_in_two(const DeviceCase *c) {
    for (unsigned first = 0; first < 2; first++) {
        g_autofree State *m = g_new(State, 1), *v = g_new(State, 1);
        g_autofree float *param = device_random(c, N, -1, 1, 5);
        g_autofree float *grad = device_random(c, N, -2, 2, 6);
        KernelAdamOne step = one();
        grad[N - 5] = NAN;
        void *there = device_put(c, param, N), *grad_there = device_put(c, grad, N);
        begin(m, 1, 7);
        begin(v, 2, 8);
        DEVICE_OK(kernel_cuda_adam_8bit_scaled(device_lane, first ? there : NULL, grad_there,
                                               &m->device, &v->device, N, LEAST, &step, c->type));
        kernel_adam_8bit_scaled(first ? param : NULL, grad, &m->host, &v->host, N, LEAST, &step);
        scaled_close(m);
        scaled_close(v);
        if (first) {
            DEVICE_OK(kernel_cuda_put_codes(device_lane, m->device.codes, m->device.scaled,
                                            m->device.map, N));
            kernel_put_codes(m->codes, m->scaled, m->map, N);
        } else {
            DEVICE_OK(kernel_cuda_adam_8bit_update(device_lane, there, grad_there, &m->device,
                                                   &v->device, N, &step, c->type));
            kernel_adam_8bit_update(param, grad, &m->host, &v->host, N, &step);
        }
        device_close("param", c, there, param, N, 1e-5, 1e-6);
        state_close(m);
        state_close(v);
    }
}

static void test_as_they_are(const DeviceCase *c) {
    static const size_t sizes[] = {1, 31, 257, 4000};
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        size_t n = sizes[i];
        g_autofree float *param = device_random(c, n, -1, 1, i);
        g_autofree float *grad = device_random(c, n, -2, 2, i + 10);
        g_autofree float *m = device_random(c, n, -1, 1, i + 20);
        g_autofree float *v = device_random(c, n, 0, 1, i + 30);
        void *of_param = device_put(c, param, n), *of_m = device_put(c, m, n),
             *of_v = device_put(c, v, n);
        KernelAdamOne step = one();
        DEVICE_OK(kernel_cuda_adam_one(device_lane, of_param, of_m, of_v, device_put(c, grad, n), n,
                                       &step, c->type));
        kernel_adam_one(param, m, v, grad, n, &step);
        device_close("param", c, of_param, param, n, 1e-5, 1e-6);
        device_close("exp_avg", c, of_m, m, n, 1e-6, 1e-6);
        device_close("exp_avg_sq", c, of_v, v, n, 1e-6, 1e-6);
    }
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/eight-bit/in one", test_in_one);
    DEVICE_TEST("/kernels-cuda/eight-bit/in two", test_in_two);
    DEVICE_TEST("/kernels-cuda/eight-bit/states as they are", test_as_they_are);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
