/* tests/kernels/float8.c - e4m3 and e5m2 against their definitions in double (every stored number,
 * every tie between two of them, what is too large), against PyTorch's casts of 131072 floats, and
 * largest magnitudes, scales, turned matrices against the plainest loops in double.
 */
#include "kernels/host/products/float8.h"
#include "kernels/host/products/mxfp8.h"
#include "tests/kernels/check.h"

typedef struct {
    const char *name;
    unsigned fraction_bits;
    int bias;
    uint8_t largest, nan; /* above the largest number and below NaN: infinity */
    void (*widen)(float *, const uint8_t *, size_t);
    void (*narrow)(uint8_t *, const float *, size_t);
    /* SHA-256 of PyTorch 2.13's casts, bounded before to what the dtype holds as torchao does: of
     * each bf16 number by its bits, and of floats whose bits are multiples of 65537. To repeat it:
     * torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(torch.bfloat16).float()
     * .clamp(-m, m).to(torch.float8_e4m3fn).view(torch.uint8). */
    const char *of_bf16, *of_floats;
} Float8;

static const Float8 kinds[] = {
    {"e4m3", 3, 7, 0x7e, 0x7f, kernel_widen_e4m3, kernel_narrow_e4m3,
     "556222ae80c3498b4da64795f283e77962f1045e2525faaededd4e0a5b1ae212",
     "4cd08c3c7fa615644c42c0d77eeb3542694b657ab8534580986eb277fb556d94"},
    {"e5m2", 2, 15, 0x7b, 0x7d, kernel_widen_e5m2, kernel_narrow_e5m2,
     "bd44828554535a84e590b2edbcf4fd86827bbc30b47efd62e4db3bc7c955dad5",
     "9c7c3db119a1fe63bd71babd53f3f44884316eee159d8934b82b36a72bc353e8"},
};

enum {
    ALL = 1 << 8,
    SIGN = 1 << 7
};

static double meaning(const Float8 *kind, unsigned x) {
    unsigned exponent = (x & 0x7fu) >> kind->fraction_bits;
    double one = 1u << kind->fraction_bits, fraction = x & ((1u << kind->fraction_bits) - 1);
    double value = exponent ? ldexp(1 + fraction / one, (int)exponent - kind->bias)
                            : ldexp(fraction / one, 1 - kind->bias);
    return x & SIGN ? -value : value;
}

static uint8_t narrow_one(const Float8 *kind, float x) {
    uint8_t result;
    kind->narrow(&result, &x, 1);
    return result;
}

static void test_every_number(gconstpointer data) {
    const Float8 *kind = data;
    uint8_t x[ALL], back[ALL];
    g_autofree float *wide = check_poisoned(ALL);
    for (unsigned i = 0; i < ALL; i++) {
        x[i] = (uint8_t)i;
    }
    kind->widen(wide, x, ALL);
    check_guard(kind->name, wide, ALL);
    kind->narrow(back, wide, ALL);
    for (unsigned i = 0; i < ALL; i++) {
        unsigned magnitude = i & 0x7f;
        if (magnitude >= kind->nan) {
            g_assert_true(isnan(wide[i]));
            g_assert_cmphex(back[i] & 0x7f, ==, 0x7f);
        } else if (magnitude > kind->largest) {
            g_assert_true(isinf(wide[i]) && !signbit(wide[i]) == !(i & SIGN));
            g_assert_cmphex(back[i] & 0x7f, ==, kind->largest);
        } else {
            g_assert_true((double)wide[i] == meaning(kind, i));
            g_assert_true(!signbit(wide[i]) == !(i & SIGN));
            g_assert_cmphex(back[i], ==, i);
        }
    }
}

/* Between two neighbours: half way goes to the even one, else to the nearer. */
static void test_every_tie(gconstpointer data) {
    const Float8 *kind = data;
    for (unsigned i = 0; i < kind->largest; i++) {
        double low = meaning(kind, i), high = meaning(kind, i + 1);
        float middle = (float)((low + high) / 2);
        unsigned even = i + (i & 1);
        g_assert_true((double)middle == (low + high) / 2);
        g_assert_cmphex(narrow_one(kind, middle), ==, even);
        g_assert_cmphex(narrow_one(kind, -middle), ==, even | SIGN);
        g_assert_cmphex(narrow_one(kind, nextafterf(middle, 0)), ==, i);
        g_assert_cmphex(narrow_one(kind, nextafterf(middle, INFINITY)), ==, i + 1);
    }
}

static void test_extremes(gconstpointer data) {
    const Float8 *kind = data;
    float largest = (float)meaning(kind, kind->largest);
    g_assert_cmphex(narrow_one(kind, nextafterf(largest, INFINITY)), ==, kind->largest);
    g_assert_cmphex(narrow_one(kind, 3.4028235e38f), ==, kind->largest);
    g_assert_cmphex(narrow_one(kind, -INFINITY), ==, kind->largest | SIGN);
    g_assert_cmphex(narrow_one(kind, 0x1p-149f), ==, 0);
    g_assert_cmphex(narrow_one(kind, -0.0f), ==, SIGN);
    g_assert_cmphex(narrow_one(kind, NAN) & 0x7f, ==, 0x7f);
}

static void assert_cast_as(const Float8 *kind, uint32_t times, const char *sha256) {
    enum {
        N = 1 << 16
    };
    g_autofree float *x = g_new(float, N);
    g_autofree uint8_t *cast = g_new(uint8_t, N);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t bits = i * times;
        memcpy(&x[i], &bits, sizeof bits);
    }
    kind->narrow(cast, x, N);
    g_autofree char *got = g_compute_checksum_for_data(G_CHECKSUM_SHA256, cast, N);
    g_assert_cmpstr(got, ==, sha256);
}

static void test_as_pytorch(gconstpointer data) {
    const Float8 *kind = data;
    assert_cast_as(kind, 65536, kind->of_bf16);
    assert_cast_as(kind, 65537, kind->of_floats);
}

enum {
    ROWS = 37,
    COLS = 131,
    N = ROWS * COLS
};

static void test_largest(void) {
    g_autofree float *x = check_random(N, -3, 2, 1);
    g_autofree float *rows = check_poisoned(ROWS), *cols = check_poisoned(COLS);
    g_autofree double *of_row = g_new0(double, ROWS), *of_col = g_new0(double, COLS);
    double of_all = 0;
    x[17] = -0.0f;
    for (unsigned i = 0; i < N; i++) {
        double magnitude = fabs((double)x[i]);
        of_row[i / COLS] = fmax(of_row[i / COLS], magnitude);
        of_col[i % COLS] = fmax(of_col[i % COLS], magnitude);
        of_all = fmax(of_all, magnitude);
    }
    kernel_magnitude_rows_f32(rows, x, ROWS, COLS);
    kernel_magnitude_columns_f32(cols, x, ROWS, COLS);
    check_close("rows", rows, of_row, ROWS, 0, 0);
    check_close("columns", cols, of_col, COLS, 0, 0);
    g_assert_true((double)kernel_magnitude_f32(x, N) == of_all);
    g_assert_true(kernel_magnitude_f32(x, 0) == 0);
    x[5 * COLS + 7] = -NAN;
    kernel_magnitude_rows_f32(rows, x, ROWS, COLS);
    kernel_magnitude_columns_f32(cols, x, ROWS, COLS);
    g_assert_true(isnan(kernel_magnitude_f32(x, N)) && isnan(rows[5]) && isnan(cols[7]));
    g_assert_false(isnan(rows[6]) || isnan(cols[8]));
}

/* The largest power of two that is no larger, and never so large that the largest number leaves
 * what float8 holds. */
static void test_scales(void) {
    g_autofree float *magnitudes = check_random(1000, 1e-4, 1e4, 3);
    for (unsigned i = 0; i < 1000; i++) {
        double magnitude = (double)magnitudes[i];
        double scale = (double)kernel_float8_scale(magnitude, 448, false);
        g_assert_true(scale == (double)(float)(448 / magnitude));
        double power = (double)kernel_float8_scale(magnitude, 448, true);
        int exponent;
        g_assert_true(frexp(power, &exponent) == 0.5);
        g_assert_true(power <= scale && scale < 2 * power);
    }
    g_assert_true(kernel_float8_scale(448, 448, true) == 1);
    g_assert_true(kernel_float8_scale(0, 448, false) == (float)448e12);
    g_assert_true(isnan(kernel_float8_scale(NAN, 448, false)));
    g_assert_true(isnan(kernel_float8_scale(NAN, 448, true)));
    g_assert_true(kernel_float8_scale(INFINITY, 448, true) == 0);
}

/* A scale is that of the largest of so many passes, of which each tensor has its own; of nothing
 * but zeros, or of what is no number, it stays what it was. */
static void test_delay(void) {
    enum {
        PASSES = 4,
        TENSORS = 3,
        ZEROS = 2 /* a tensor that has no other numbers */
    };
    static const float found[] = {3, 100, 2, 1, 0.5f, 0.25f, 0.125f, 7, NAN, 6, 6, 6, 6, 6};
    float history[PASSES * TENSORS] = {0}, scale[TENSORS] = {1, 1, 5};
    for (unsigned pass = 0; pass < G_N_ELEMENTS(found); pass++) {
        double largest = 0;
        bool has_nan = false;
        for (unsigned i = pass < PASSES ? 0 : pass - PASSES + 1; i <= pass; i++) {
            largest = MAX(largest, (double)found[i]);
            has_nan |= isnan(found[i]);
        }
        float before = scale[0];
        history[0] = found[pass];
        history[1] = 2 * found[pass];
        kernel_float8_delay(history, scale, PASSES, TENSORS, 448);
        double want = has_nan ? (double)before : exp2(-floor(log2(448 / largest)));
        g_assert_true((double)scale[0] == want);
        g_assert_true((double)scale[1] == 2 * want);
        g_assert_true(scale[ZEROS] == 5);
        g_assert_true(history[0] == 0 && history[1] == 0);
    }
}

static void test_scaled_matrix(void) {
    g_autofree float *row = check_random(ROWS, 0.5, 2, 4), *column = check_random(COLS, 0.5, 2, 5);
    for (unsigned way = 0; way < 4; way++) {
        unsigned n_row = way & 1 ? ROWS : 1, n_column = way & 2 ? COLS : 1;
        g_autofree float *x = check_random(N, -3, 3, 6), *got = check_poisoned(N);
        g_autofree double *want = check_doubles(x, N);
        memcpy(got, x, N * sizeof *x);
        for (unsigned i = 0; i < N; i++) {
            want[i] *= (double)row[n_row > 1 ? i / COLS : 0];
            want[i] *= (double)column[n_column > 1 ? i % COLS : 0];
        }
        kernel_scale_rows_columns_f32(got, row, n_row, column, n_column, ROWS, COLS);
        check_close("scaled", got, want, N, 0x1p-22, 0);
    }
}

static void test_exchange(void) {
    static const unsigned inners[] = {1, 3, 16};
    for (unsigned k = 0; k < G_N_ELEMENTS(inners); k++) {
        unsigned inner = inners[k];
        g_autofree uint8_t *x = g_new(uint8_t, N * inner), *got = g_new0(uint8_t, N * inner + 1);
        for (unsigned i = 0; i < N * inner; i++) {
            x[i] = (uint8_t)(i * 2654435761u >> 24);
        }
        got[N * inner] = 77;
        kernel_exchange_bytes(got, x, ROWS, COLS, inner);
        g_assert_cmpuint(got[N * inner], ==, 77);
        for (unsigned i = 0; i < N * inner; i++) {
            unsigned at = i / inner, row = at % ROWS, col = at / ROWS;
            g_assert_cmpuint(got[i], ==, x[(row * COLS + col) * inner + i % inner]);
        }
    }
}

/* As torchao 0.18 casts bf16's finite numbers (0 for others), by their bits, in 512 rows of 128:
 *     b = torch.arange(65536) * TIMES % 65536; b = torch.where(b & 0x7f80 == 0x7f80, 0, b)
 *     x = b.to(torch.uint16).view(torch.bfloat16).reshape(512, 128)
 *     exponents, numbers = to_mx(x, torch.float8_e4m3fn, 32, ScaleCalculationMode.RCEIL)
 * with SHA-256 of the numbers and of to_blocked(exponents). */
static const struct {
    uint32_t times;
    const char *numbers, *ordered;
} as_torchao[] = {
    {1, "5bccd554a644b4fa24f2731cbab012f682bc04f59b9e362a7a1c6f8f3a7ff075",
     "8a86f222ef5c91d0b219b92dd22cfae40ddb3b27a0187e7ccc4312591ec1a818"},
    {40503, "54b21ba32e75022301f9bf4cc9479159fbb733fe34065c01d5287d4afef012b6",
     "a11d3dddceeb5e43b89e5de461ddcf881164eec0011b34205ab1ec08645efcb7"},
};

static void test_blocks(void) {
    enum {
        BLOCK = 32,
        ROWS_OF_ALL = 512,
        COLS_OF_ALL = 128,
        OF_ALL = ROWS_OF_ALL * COLS_OF_ALL
    };
    g_autofree float *x = g_new(float, OF_ALL), *back = g_new(float, OF_ALL);
    g_autofree uint8_t *numbers = g_new(uint8_t, OF_ALL);
    uint8_t exponents[OF_ALL / BLOCK], ordered[OF_ALL / BLOCK];
    for (unsigned k = 0; k < G_N_ELEMENTS(as_torchao); k++) {
        for (uint32_t i = 0; i < OF_ALL; i++) {
            uint32_t bits = i * as_torchao[k].times % OF_ALL;
            bits = (bits & 0x7f80u) == 0x7f80u ? 0 : bits << 16;
            memcpy(&x[i], &bits, sizeof bits);
        }
        kernel_mxfp8_cast(numbers, exponents, x, ROWS_OF_ALL, COLS_OF_ALL);
        kernel_mxfp8_order(ordered, exponents, ROWS_OF_ALL, COLS_OF_ALL / BLOCK);
        g_autofree char *of_numbers =
            g_compute_checksum_for_data(G_CHECKSUM_SHA256, numbers, OF_ALL);
        g_autofree char *of_ordered =
            g_compute_checksum_for_data(G_CHECKSUM_SHA256, ordered, sizeof ordered);
        g_assert_cmpstr(of_numbers, ==, as_torchao[k].numbers);
        g_assert_cmpstr(of_ordered, ==, as_torchao[k].ordered);
        kernel_mxfp8_widen(back, numbers, ordered, ROWS_OF_ALL, COLS_OF_ALL);
        for (unsigned i = 0; i < OF_ALL; i++) {
            int exponent = exponents[i / BLOCK] - 127;
            g_assert_true(back[i] == (float)ldexp(meaning(&kinds[0], numbers[i]), exponent));
        }
    }
}

/* No number can be told of a block that has one that is none; infinity is the largest there is. */
static void test_blocks_without_numbers(void) {
    float x[64] = {[3] = NAN, [40] = -INFINITY, [41] = 1}, back[128 * 128];
    uint8_t numbers[64], exponents[2];
    kernel_mxfp8_cast(numbers, exponents, x, 1, 64);
    g_assert_cmphex(exponents[0], ==, 0xff);
    g_assert_cmphex(exponents[1], ==, 0xfe);
    g_assert_cmphex(numbers[40], ==, 0xfe);
    uint8_t ones[128 * 128] = {1}, ordered[128 * 4] = {0xff};
    kernel_mxfp8_widen(back, ones, ordered, 128, 128);
    g_assert_true(isnan(back[0]) && isnan(back[31]) && back[32] == 0);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        GTestDataFunc function;
    } tests[] = {{"every number", test_every_number},
                 {"every tie", test_every_tie},
                 {"extremes", test_extremes},
                 {"as PyTorch casts", test_as_pytorch}};
    g_test_init(&argc, &argv, NULL);
    for (unsigned k = 0; k < G_N_ELEMENTS(kinds); k++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(tests); i++) {
            g_autofree char *name =
                g_strdup_printf("/kernels/float8/%s/%s", kinds[k].name, tests[i].name);
            g_test_add_data_func(name, &kinds[k], tests[i].function);
        }
    }
    g_test_add_func("/kernels/float8/largest magnitudes", test_largest);
    g_test_add_func("/kernels/float8/scales", test_scales);
    g_test_add_func("/kernels/float8/scales of passes before", test_delay);
    g_test_add_func("/kernels/float8/a scaled matrix", test_scaled_matrix);
    g_test_add_func("/kernels/float8/exchange", test_exchange);
    g_test_add_func("/kernels/float8/blocks of 32", test_blocks);
    g_test_add_func("/kernels/float8/blocks of 32 without numbers", test_blocks_without_numbers);
    return g_test_run();
}
