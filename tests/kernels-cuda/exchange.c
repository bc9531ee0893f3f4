/* tests/kernels-cuda/exchange.c - how many rows ranks send each other, and where they go. */
#include <string.h>

#include "kernels/cuda/experts/exchange.h"
#include "tests/kernels-cuda/device.h"

static gint64 *new_numbers(size_t n, gint32 below) {
    gint64 *x = g_new(gint64, MAX(n, 1));
    for (size_t i = 0; i < n; i++) {
        x[i] = g_test_rand_int_range(0, below);
    }
    return x;
}

static gint64 *new_i64(size_t n) {
    return device_new_bytes(n * sizeof(gint64));
}

static void is_equal(const char *what, const gint64 *got, const gint64 *want, size_t n) {
    device_equal_bytes(what, got, want, n * sizeof *want);
}

static void tells_of(bool bad) {
    uint32_t op;
    cudaStreamSynchronize(kernel_cuda_stream(device_lane));
    g_assert_cmpint(kernel_cuda_bad_index(device_lane, &op), ==, bad);
}

/* ---- how many -------------------------------------------------------------------------------- */

static void test_counts(void) {
    static const size_t shapes[][2] = {{1, 1}, {2, 4}, {8, 16}, {64, 8}, {3, 300}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t ranks = shapes[s][0], experts = shapes[s][1], n = ranks * experts;
        g_autofree gint64 *counts = new_numbers(n, 1000), *turned = g_new(gint64, n);
        g_autofree gint64 *sums = g_new0(gint64, ranks), *own = g_new0(gint64, experts);
        g_autofree gint64 *running = g_new(gint64, n);
        gint64 so_far = 0;
        for (size_t i = 0; i < n; i++) {
            sums[i / experts] += counts[i];
            own[i % experts] += counts[i];
            turned[i % experts * ranks + i / experts] = counts[i];
            running[i] = so_far += counts[i];
        }
        gint64 *x = device_put_i64(counts, n), *of_ranks = new_i64(ranks);
        gint64 *of_experts = new_i64(experts), *other = new_i64(n), *before = new_i64(n);
        DEVICE_OK(kernel_cuda_splits(device_lane, of_ranks, x, ranks, experts));
        DEVICE_OK(kernel_cuda_own_counts(device_lane, of_experts, x, ranks, experts));
        DEVICE_OK(kernel_cuda_by_expert(device_lane, other, x, ranks, experts));
        DEVICE_OK(kernel_cuda_running_sum(device_lane, before, x, n));
        is_equal("splits", of_ranks, sums, ranks);
        is_equal("own counts", of_experts, own, experts);
        is_equal("by expert", other, turned, n);
        is_equal("running sums", before, running, n);
        for (int sign = -1; sign <= 1; sign += 2) {
            for (size_t i = 0; i < n; i++) {
                turned[i] = running[i] + sign * counts[i];
            }
            DEVICE_OK(kernel_cuda_combine_i64(device_lane, other, before, x, n, sign));
            is_equal("combined", other, turned, n);
        }
    }
}

static void test_alike(void) {
    gint64 same[] = {7, 7, 7, 7};
    DEVICE_OK(kernel_cuda_check_alike(device_lane, device_put_i64(same, 4), 4));
    tells_of(false);
    same[3] = 8;
    DEVICE_OK(kernel_cuda_check_alike(device_lane, device_put_i64(same, 4), 4));
    tells_of(true);
    DEVICE_OK(kernel_cuda_check_alike(device_lane, device_put_i64(same, 4), 3));
    tells_of(false);
}

/* ---- where ----------------------------------------------------------------------------------- */

/* Places before, within and behind segments, some of which are empty. */
static void test_segments(void) {
    static const size_t shapes[][2] = {{1, 1}, {40, 2}, {700, 9}, {3000, 64}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t n = shapes[s][0], segments = shapes[s][1];
        g_autofree gint64 *end = new_numbers(segments, 60), *place = g_new(gint64, n);
        g_autofree gint64 *index = g_new(gint64, n), *found = g_new(gint64, n);
        for (size_t i = 0; i < segments; i++) {
            end[i] = (i ? end[i - 1] : 0) + (end[i] < 20 ? 0 : end[i]);
        }
        for (size_t i = 0; i < n; i++) {
            place[i] = g_test_rand_int_range(0, (gint32)end[segments - 1] + 5);
            index[i] = 0;
            while (index[i] + 1 < (gint64)segments && end[index[i]] <= place[i]) {
                index[i]++;
            }
            found[i] = end[index[i]];
        }
        gint64 *ends = device_put_i64(end, segments), *of_place = new_i64(n), *y = new_i64(n);
        DEVICE_OK(kernel_cuda_segment(device_lane, of_place, ends, device_put_i64(place, n), n,
                                      segments));
        is_equal("segments", of_place, index, n);
        DEVICE_OK(kernel_cuda_of_segment(device_lane, y, ends, of_place, n, segments));
        is_equal("of segments", y, found, n);
        tells_of(false);
        DEVICE_OK(kernel_cuda_of_segment(device_lane, y, ends, device_put_i64(&(gint64){-1}, 1), 1,
                                         segments));
        tells_of(true);
    }
}

static void test_place_rows(const DeviceCase *c) {
    static const size_t shapes[][2] = {{1, 1}, {7, 5}, {33, 64}, {260, 24}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t n = shapes[s][0], width = shapes[s][1];
        g_autofree float *x = device_random(c, n * width, -1, 1, 1), *want = g_new(float, n *width);
        g_autofree gint64 *to = g_new(gint64, n);
        for (size_t i = 0; i < n; i++) { /* shuffled */
            size_t j = (size_t)g_test_rand_int_range(0, (gint32)i + 1);
            to[i] = to[j];
            to[j] = (gint64)i;
        }
        for (size_t i = 0; i < n; i++) {
            memcpy(want + (size_t)to[i] * width, x + i * width, width * sizeof *x);
        }
        void *y = device_new(c, n * width), *from = device_put(c, x, n * width);
        DEVICE_OK(
            kernel_cuda_place_rows(device_lane, y, from, device_put_i64(to, n), n, width, c->type));
        device_equal("placed rows", c, y, want, n * width);
        tells_of(false);
        to[n - 1] = (gint64)n;
        DEVICE_OK(
            kernel_cuda_place_rows(device_lane, y, from, device_put_i64(to, n), n, width, c->type));
        tells_of(true);
    }
}

static void test_nothing(void) {
    gint64 *x = new_i64(1);
    DEVICE_OK(kernel_cuda_splits(device_lane, x, x, 0, 0));
    DEVICE_OK(kernel_cuda_running_sum(device_lane, x, x, 0));
    DEVICE_OK(kernel_cuda_segment(device_lane, x, x, x, 0, 0));
    DEVICE_OK(kernel_cuda_place_rows(device_lane, x, x, x, 0, 8, KERNEL_CUDA_BF16));
    DEVICE_OK(kernel_cuda_check_alike(device_lane, x, 0));
}

static void add_tests(void) {
    DEVICE_TEST_ONCE("/kernels-cuda/exchange/counts", test_counts);
    DEVICE_TEST_ONCE("/kernels-cuda/exchange/alike", test_alike);
    DEVICE_TEST_ONCE("/kernels-cuda/exchange/segments", test_segments);
    DEVICE_TEST("/kernels-cuda/exchange/place-rows", test_place_rows);
    DEVICE_TEST_ONCE("/kernels-cuda/exchange/nothing", test_nothing);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
