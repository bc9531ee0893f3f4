/* tests/kernels/four-bit.c - weights in 4 bits against what bitsandbytes makes of the same 65536
 * numbers (0.50.2 on a CPU), and what is at the ends: blocks of zeros, a last block cut short, an
 * odd number of numbers, ties.
 */
#include "kernels/host/products/four-bit.h"
#include "tests/kernels/check.h"

enum {
    N = 1 << 16,
    N_BLOCKS = N / KERNEL_FOUR_BIT_BLOCK
};

static void assert_sha256(const void *data, gsize bytes, const char *sha256) {
    g_autofree char *got = g_compute_checksum_for_data(G_CHECKSUM_SHA256, data, bytes);
    g_assert_cmpstr(got, ==, sha256);
}

/* Cubes of even numbers from -1/2 to 1/2, a block seven times as large as another; the same in
 * Python: ((i * 2654435761 & 0xffffffff) >> 8) / 2**24 - 0.5, cubed in fp32, times 1 + i // 64 % 7.
 */
static float *numbers(void) {
    float *w = g_new(float, N);
    for (uint32_t i = 0; i < N; i++) {
        float x = (float)(i * 2654435761u >> 8) / (float)(1 << 24) - 0.5f;
        w[i] = x * x * x * (float)(1 + i / KERNEL_FOUR_BIT_BLOCK % 7);
    }
    assert_sha256(w, N * sizeof *w,
                  "be83993a28b463c2e38452bfd0905c2639f95000281b23949ff55b39a874caeb");
    return w;
}

static const struct {
    const char *name;
    KernelFourBitCode code;
    const char *packed; /* SHA-256 of bitsandbytes' quantize_4bit; NULL: not compared */
    const char *back;   /* and of dequantize_4bit */
} codes[] = {
    {"nf4", KERNEL_FOUR_BIT_NF4, "e5d2fc2c51591e52aeeb57091ff4c7177c364c041ba3fe4e3e95f494f3ef245c",
     "ca680c0ded01308be062a782397e4d2b594c81d7558ec11576bb82903d37031d"},
    /* It has two zeros, and on a CPU which of them a number gets hangs on how they were sorted; on
     * a GPU, and here, on the number's sign. */
    {"fp4", KERNEL_FOUR_BIT_FP4, NULL,
     "edfdc95cd04be3f128fe4ab0b8c561db001edc2bcc090f3f1956c37fd1f4ff22"},
};

static void as_bitsandbytes(void) {
    g_autofree float *w = numbers(), *back = check_poisoned(N), *absmax = check_poisoned(N_BLOCKS);
    g_autofree uint8_t *packed = g_new(uint8_t, N / 2);
    for (unsigned c = 0; c < G_N_ELEMENTS(codes); c++) {
        kernel_quantize_4bit(packed, absmax, w, N, codes[c].code);
        if (codes[c].packed) {
            assert_sha256(packed, N / 2, codes[c].packed);
        }
        assert_sha256(absmax, N_BLOCKS * sizeof *absmax,
                      "013a2bb35d8497c3444807bddd74e517e813a806f9d399847e0d71c1f022e147");
        check_guard(codes[c].name, absmax, N_BLOCKS);
        kernel_dequantize_4bit(back, packed, absmax, N, codes[c].code);
        check_guard(codes[c].name, back, N);
        assert_sha256(back, N * sizeof *back, codes[c].back);
    }
}

/* Of the magnitudes above, less their mean; as the kernels for GPUs and those written in PyTorch
 * (backends/default) choose: by the middle of two values. Those for CPUs compare two distances,
 * which round otherwise in three of these 1024. */
static void bytes_as_bitsandbytes(void) {
    g_autofree float *w = numbers(), *x = check_poisoned(N_BLOCKS),
                     *back = check_poisoned(N_BLOCKS);
    g_autofree uint8_t *packed = g_new(uint8_t, N / 2), *bytes = g_new(uint8_t, N_BLOCKS);
    g_autofree float *map = check_poisoned(KERNEL_BYTE_MAP);
    float absmax[N_BLOCKS / KERNEL_BYTE_BLOCK];
    kernel_quantize_4bit(packed, x, w, N, KERNEL_FOUR_BIT_NF4);
    for (unsigned i = 0; i < N_BLOCKS; i++) {
        x[i] -= 0.48672962188720703f;
    }
    kernel_byte_map(map);
    assert_sha256(map, KERNEL_BYTE_MAP * sizeof *map,
                  "e732639a65f497b4ad684bb166a4467708255edd5207757de8b8f0c7e1fda89c");
    check_guard("map", map, KERNEL_BYTE_MAP);
    kernel_quantize_bytes(bytes, absmax, x, map, N_BLOCKS);
    assert_sha256(bytes, N_BLOCKS,
                  "6e3fa8ab92c383bb45cf1d253507d92f1a5af255ba9d1f26e8c8f00d17f31afa");
    assert_sha256(absmax, sizeof absmax,
                  "f33a6309ff459b0729c895722c7ba7c0b060ffd43d9ab9110ee850dac2e8d1e5");
    kernel_dequantize_bytes(back, bytes, absmax, map, N_BLOCKS);
    assert_sha256(back, N_BLOCKS * sizeof *back,
                  "c3f68f7e953f6b23f6b9a76db0ee5237fe83b491db8df3a0d9e5db22f7eb25d3");
    check_guard("bytes", back, N_BLOCKS);
}

/* 65 numbers: a block of zeros, and one number by itself, which is its block's largest. */
static void at_the_ends(void) {
    float w[65] = {[64] = -3}, absmax[2] = {1, 1}, back[65];
    uint8_t packed[33];
    for (unsigned c = 0; c < G_N_ELEMENTS(codes); c++) {
        kernel_quantize_4bit(packed, absmax, w, 65, codes[c].code);
        g_assert_true(absmax[0] == 0 && absmax[1] == 3);
        kernel_dequantize_4bit(back, packed, absmax, 65, codes[c].code);
        for (unsigned i = 0; i < 65; i++) {
            g_assert_true(back[i] == w[i]);
        }
    }
}

/* Halfway between two values is the lower one's: of nf4's from 0 up, 0. */
static void ties_go_down(void) {
    float half = 0.07958029955625534f / 2, w[2] = {half, 1}, absmax, back[2];
    uint8_t packed;
    kernel_quantize_4bit(&packed, &absmax, w, 2, KERNEL_FOUR_BIT_NF4);
    kernel_dequantize_4bit(back, &packed, &absmax, 2, KERNEL_FOUR_BIT_NF4);
    g_assert_true(back[0] == 0 && back[1] == 1);
    w[0] = nextafterf(half, 1);
    kernel_quantize_4bit(&packed, &absmax, w, 2, KERNEL_FOUR_BIT_NF4);
    kernel_dequantize_4bit(back, &packed, &absmax, 2, KERNEL_FOUR_BIT_NF4);
    g_assert_true(back[0] > 0);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/four-bit/as bitsandbytes", as_bitsandbytes);
    g_test_add_func("/kernels/four-bit/bytes as bitsandbytes", bytes_as_bitsandbytes);
    g_test_add_func("/kernels/four-bit/at the ends", at_the_ends);
    g_test_add_func("/kernels/four-bit/ties go down", ties_go_down);
    return g_test_run();
}
