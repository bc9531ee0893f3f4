/* tests/kernels-cuda/standin.c - the kernel that stands in for NCCL's: what it leaves, and how long
 * it takes. */
#include <string.h>

#include "kernels/cuda/ranks/standin.h"
#include "tests/kernels-cuda/device.h"

#define NUMBERS KERNEL_CUDA_STAND_IN_NUMBERS

/* (elements, ranks): within a tile and a vector, over tiles, slices that begin anywhere. */
static const size_t shapes[][2] = {{6, 2}, {40, 8}, {1001, 7}, {4096, 4}, {150003, 3}, {160000, 2}};
static const unsigned some_blocks[] = {1, 5, 32};

typedef struct {
    float *host;
    void *device;
} Numbers;

/* They begin at 16 bytes, whatever the case's other arrays do. */
static Numbers numbers_of(const DeviceCase *c) {
    DeviceCase plain = {c->type, 0, c->rounding};
    float *host = device_random(c, NUMBERS, -0.03, 0.03, 9);
    return (Numbers){host, device_put(&plain, host, NUMBERS)};
}

static KernelCudaStandIn call_of(const DeviceCase *c, size_t shape, const Numbers *numbers) {
    size_t elements = shapes[shape][0], slice = elements / shapes[shape][1];
    return (KernelCudaStandIn){.type = c->type,
                               .elements = elements,
                               .first = shape % 2 * slice,
                               .slice = slice,
                               .numbers = numbers->device,
                               .from = NUMBERS - 24, /* it goes round */
                               .blocks = some_blocks[shape % G_N_ELEMENTS(some_blocks)]};
}

static float number_at(const Numbers *numbers, const KernelCudaStandIn *call, size_t i) {
    return numbers->host[(call->from + i) % NUMBERS];
}

static void test_gather(const DeviceCase *c) {
    Numbers numbers = numbers_of(c);
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        KernelCudaStandIn call = call_of(c, s, &numbers);
        size_t n = call.elements;
        g_autofree float *own = device_random(c, n, -1, 1, 3), *want = g_new(float, n + 1);
        for (size_t i = 0; i < n; i++) {
            bool mine = i >= call.first && i < call.first + call.slice;
            want[i] = mine ? own[i] : number_at(&numbers, &call, i);
        }
        call.kind = KERNEL_CUDA_STAND_IN_GATHER;
        call.out = device_put(c, own, n);
        DEVICE_OK(kernel_cuda_stand_in(device_lane, &call));
        device_equal("in place", c, call.out, want, n);
        call.in = device_put(c, own + call.first, call.slice);
        call.out = device_new(c, n);
        DEVICE_OK(kernel_cuda_stand_in(device_lane, &call));
        device_equal("from a shard", c, call.out, want, n);
    }
    g_free(numbers.host);
}

static void test_gather_of_bytes(void) {
    g_autofree guint8 *numbers = g_malloc(NUMBERS);
    for (size_t i = 0; i < NUMBERS; i++) {
        numbers[i] = (guint8)g_test_rand_int();
    }
    const guint8 *on_device = device_put_bytes(numbers, NUMBERS);
    const DeviceCase any = {.type = KERNEL_CUDA_F32};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        KernelCudaStandIn call = call_of(&any, s, &(Numbers){.device = (void *)on_device});
        size_t n = call.elements;
        g_autofree guint8 *own = g_malloc(call.slice), *want = g_malloc(n);
        memset(own, 0x11, call.slice);
        call.from = NUMBERS - 32;
        for (size_t i = 0; i < n; i++) {
            bool mine = i >= call.first && i < call.first + call.slice;
            want[i] = mine ? 0x11 : numbers[(call.from + i) % NUMBERS];
        }
        call.kind = KERNEL_CUDA_STAND_IN_GATHER;
        call.is_bytes = true;
        call.in = device_put_bytes(own, call.slice);
        call.out = device_new_bytes(n);
        DEVICE_OK(kernel_cuda_stand_in(device_lane, &call));
        device_equal_bytes("bytes", call.out, want, n);
    }
}

static void test_scatter(const DeviceCase *c) {
    Numbers numbers = numbers_of(c);
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        KernelCudaStandIn call = call_of(c, s, &numbers);
        g_autofree float *in = device_random(c, call.elements, -1, 1, 3);
        g_autofree float *want = g_new(float, call.slice + 1);
        for (size_t i = 0; i < call.slice; i++) {
            want[i] = number_at(&numbers, &call, i);
        }
        call.kind = KERNEL_CUDA_STAND_IN_SCATTER;
        call.in = device_put(c, in, call.elements);
        call.out = device_new(c, call.slice);
        DEVICE_OK(kernel_cuda_stand_in(device_lane, &call));
        device_equal("a slice", c, call.out, want, call.slice);
        device_equal("what is read", c, call.in, in, call.elements);
    }
    g_free(numbers.host);
}

static void test_reduce(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        Numbers none = {0};
        KernelCudaStandIn call = call_of(c, s, &none);
        size_t n = call.elements;
        g_autofree float *x = device_random(c, n, -1, 1, 3), *want = g_new(float, n + 1);
        for (size_t i = 0; i < n; i++) {
            want[i] = x[i] * 7;
        }
        call.kind = KERNEL_CUDA_STAND_IN_REDUCE;
        call.factor = 7;
        call.out = device_put(c, x, n);
        DEVICE_OK(kernel_cuda_stand_in(device_lane, &call));
        device_equal("all", c, call.out, want, n);
    }
}

/* Each of several calls in a row lasts so long, however many blocks it has. */
static void test_lasts(void) {
    enum {
        CALLS = 3
    };
    const gint64 least_us = 4000;
    KernelCudaStandIn call = {.kind = KERNEL_CUDA_STAND_IN_NOTHING,
                              .type = KERNEL_CUDA_BF16,
                              .least_ns = least_us * 1000};
    void *array = device_new_bytes(1);
    for (size_t b = 0; b < G_N_ELEMENTS(some_blocks); b++) {
        call.blocks = some_blocks[b];
        gint64 begun_us = g_get_monotonic_time();
        for (unsigned i = 0; i < CALLS; i++) {
            DEVICE_OK(kernel_cuda_stand_in(device_lane, &call));
        }
        g_free(device_get_bytes(array, 1)); /* after all of them */
        gint64 took_us = g_get_monotonic_time() - begun_us;
        g_test_message("%u blocks: %.2f ms a call", call.blocks, (double)took_us / 1e3 / CALLS);
        g_assert_cmpint(took_us, >=, CALLS * least_us);
    }
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/standin/gather", test_gather);
    DEVICE_TEST_ONCE("/kernels-cuda/standin/gather of bytes", test_gather_of_bytes);
    DEVICE_TEST("/kernels-cuda/standin/scatter", test_scatter);
    DEVICE_TEST("/kernels-cuda/standin/reduce", test_reduce);
    DEVICE_TEST_ONCE("/kernels-cuda/standin/each call lasts", test_lasts);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
