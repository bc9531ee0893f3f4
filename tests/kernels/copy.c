/* tests/kernels/copy.c - bytes arrive where they should and nowhere else. */
#include "kernels/host/copy.h"
#include "tests/kernels/check.h"

static void test_bytes(void) {
    unsigned char in[40], out[40];

    for (size_t i = 0; i < sizeof in; i++) {
        in[i] = (unsigned char)(i + 1);
    }
    for (size_t n = 0; n < 33; n++) {
        memset(out, 0xee, sizeof out);
        kernel_copy_bytes(out + 3, in + 1, n);
        for (size_t i = 0; i < sizeof out; i++) {
            g_assert_cmpint(out[i], ==, i >= 3 && i < 3 + n ? in[i - 2] : 0xee);
        }
        memset(out, 0xee, sizeof out);
        kernel_zero_bytes(out + 3, n);
        for (size_t i = 0; i < sizeof out; i++) {
            g_assert_cmpint(out[i], ==, i >= 3 && i < 3 + n ? 0 : 0xee);
        }
    }
    kernel_copy_bytes(NULL, NULL, 0);
}

static void test_2d(void) {
    const size_t cases[][4] = {
        /* out_stride, in_stride, rows, row_bytes */
        {7, 9, 5, 3}, {3, 9, 5, 3}, {9, 3, 5, 3}, {3, 3, 5, 3},
        {4, 0, 5, 3}, {7, 9, 1, 7}, {7, 9, 5, 0}, {7, 9, 0, 3},
    };

    for (size_t c = 0; c < G_N_ELEMENTS(cases); c++) {
        size_t out_stride = cases[c][0], in_stride = cases[c][1], rows = cases[c][2];
        size_t row_bytes = cases[c][3];
        unsigned char in[64], out[64];

        for (size_t i = 0; i < sizeof in; i++) {
            in[i] = (unsigned char)(i + 1);
        }
        memset(out, 0xee, sizeof out);
        kernel_copy_2d_bytes(out, out_stride, in, in_stride, rows, row_bytes);
        for (size_t i = 0; i < sizeof out; i++) {
            size_t r = i / out_stride, at = i % out_stride;

            g_assert_cmpint(out[i], ==, r < rows && at < row_bytes ? in[r * in_stride + at] : 0xee);
        }
    }
}

/* Two parameters of 5 and 3 rows of 2 floats on 2 ranks, gathered and taken apart, as FSDP2 does.
 * */
static void test_fsdp2_round_trip(void) {
    const size_t rank_bytes[2] = {3 * 2 * 4, 2 * 2 * 4}; /* padded shards */
    const size_t slice = rank_bytes[0] + rank_bytes[1];
    g_autofree float *first = check_random(6 * 2, -1, 1, 1); /* padded to 2 x 3 rows */
    g_autofree float *second = check_random(4 * 2, -1, 1, 2);
    g_autofree float *gathered = check_poisoned(20);
    g_autofree float *first_back = check_poisoned(12);
    g_autofree float *second_back = check_poisoned(8);

    kernel_copy_2d_bytes(gathered, slice, first, rank_bytes[0], 2, rank_bytes[0]);
    kernel_copy_2d_bytes((char *)gathered + rank_bytes[0], slice, second, rank_bytes[1], 2,
                         rank_bytes[1]);
    g_assert_cmpfloat(gathered[6], ==, second[0]);
    g_assert_cmpfloat(gathered[10], ==, first[6]);
    kernel_copy_2d_bytes(first_back, rank_bytes[0], gathered, slice, 2, rank_bytes[0]);
    kernel_copy_2d_bytes(second_back, rank_bytes[1], (const char *)gathered + rank_bytes[0], slice,
                         2, rank_bytes[1]);
    check_same("first", first_back, first, 12);
    check_same("second", second_back, second, 8);
}

static void test_4d(void) {
    enum {
        A = 2,
        B = 3,
        C = 5,
        D = 7,
        N = A * B * C * D
    };
    const size_t size[4] = {A, B, C, D};
    const size_t dense[4] = {B * C * D, C * D, D, 1};
    const size_t swapped[4] = {B * C * D, D, B * D, 1}; /* b and c change places */
    const size_t reversed[4] = {1, A, A * B, A * B * C};
    const size_t expanded[4] = {C * D, 0, D, 1}; /* b is repeated */
    g_autofree float *in = check_random(N, -1, 1, 1);
    g_autofree float *out = check_poisoned(N);

    kernel_copy_4d_f32(out, swapped, in, dense, size);
    for (size_t i = 0; i < N; i++) {
        size_t d = i % D, c = i / D % C, b = i / (D * C) % B, a = i / (D * C * B);

        g_assert_cmpfloat(out[((a * C + c) * B + b) * D + d], ==, in[i]);
    }
    check_guard("copy_4d", out, N);
    kernel_copy_4d_f32(out, dense, in, reversed, size);
    for (size_t i = 0; i < N; i++) {
        size_t d = i % D, c = i / D % C, b = i / (D * C) % B, a = i / (D * C * B);

        g_assert_cmpfloat(out[i], ==, in[a + A * (b + B * (c + C * d))]);
    }
    kernel_copy_4d_f32(out, dense, in, expanded, size);
    for (size_t i = 0; i < N; i++) {
        g_assert_cmpfloat(out[i], ==, in[i / (D * C * B) * C * D + i % (C * D)]);
    }
    check_guard("copy_4d", out, N);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/copy/bytes", test_bytes);
    g_test_add_func("/kernels/copy/2d", test_2d);
    g_test_add_func("/kernels/copy/fsdp2-round-trip", test_fsdp2_round_trip);
    g_test_add_func("/kernels/copy/4d", test_4d);
    return g_test_run();
}
