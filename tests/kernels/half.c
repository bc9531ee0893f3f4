/* tests/kernels/half.c - bf16 and fp16 against their definitions in double: every stored number,
 * every tie between two of them, and sums and products to half a unit in the last place. */
#include "kernels/host/half.h"
#include "tests/kernels/check.h"

typedef struct {
    const char *name;
    unsigned fraction_bits;
    int bias;
    uint16_t infinity;
    double unit_roundoff;
    double least; /* the smallest positive number */
    void (*widen)(float *, const uint16_t *, size_t);
    void (*narrow)(uint16_t *, const float *, size_t);
    void (*add)(uint16_t *, const uint16_t *, size_t);
    void (*scale)(uint16_t *, float, size_t);
} Half;

static const Half halves[] = {
    {"bf16", 7, 127, 0x7f80, 0x1p-8, 0x1p-133, kernel_widen_bf16, kernel_narrow_bf16,
     kernel_add_inplace_bf16, kernel_scale_inplace_bf16},
    {"f16", 10, 15, 0x7c00, 0x1p-11, 0x1p-24, kernel_widen_f16, kernel_narrow_f16,
     kernel_add_inplace_f16, kernel_scale_inplace_f16},
};

enum {
    ALL = 1 << 16,
    SIGN = 1 << 15
};

static double meaning(const Half *half, uint16_t x) {
    unsigned exponent = (x & 0x7fffu) >> half->fraction_bits;
    double fraction = x & ((1u << half->fraction_bits) - 1);
    double value =
        exponent ? ldexp(1 + fraction / (1u << half->fraction_bits), (int)exponent - half->bias)
                 : ldexp(fraction / (1u << half->fraction_bits), 1 - half->bias);
    return x & SIGN ? -value : value;
}

static uint16_t narrow_one(const Half *half, float x) {
    uint16_t result;
    half->narrow(&result, &x, 1);
    return result;
}

static void test_every_number(gconstpointer data) {
    const Half *half = data;
    g_autofree uint16_t *x = g_new(uint16_t, ALL), *back = g_new(uint16_t, ALL);
    g_autofree float *wide = check_poisoned(ALL);

    for (unsigned i = 0; i < ALL; i++) {
        x[i] = (uint16_t)i;
    }
    half->widen(wide, x, ALL);
    check_guard(half->name, wide, ALL);
    half->narrow(back, wide, ALL);
    for (unsigned i = 0; i < ALL; i++) {
        uint16_t magnitude = x[i] & 0x7fff;
        if (magnitude > half->infinity) {
            g_assert_true(isnan(wide[i]));
            g_assert_cmphex(back[i] & 0x7fff, >, half->infinity);
            continue;
        }
        double want = magnitude == half->infinity ? (x[i] & SIGN ? -INFINITY : INFINITY)
                                                  : meaning(half, x[i]);
        g_assert_true((double)wide[i] == want && !signbit(wide[i]) == !(x[i] & SIGN));
        g_assert_cmphex(back[i], ==, x[i]);
    }
}

/* Between two neighbours: half way goes to the even one, else to the nearer. Beyond the largest
 * number its neighbour would be the power of two that became infinity. */
static void test_every_tie(gconstpointer data) {
    const Half *half = data;

    for (unsigned i = 0; i < half->infinity; i++) {
        double low = meaning(half, (uint16_t)i), high = meaning(half, (uint16_t)(i + 1));
        float middle = (float)((low + high) / 2);
        uint16_t even = (uint16_t)(i + (i & 1));
        g_assert_true((double)middle == (low + high) / 2);
        g_assert_cmphex(narrow_one(half, middle), ==, even);
        g_assert_cmphex(narrow_one(half, -middle), ==, even | SIGN);
        g_assert_cmphex(narrow_one(half, nextafterf(middle, 0)), ==, i);
        g_assert_cmphex(narrow_one(half, nextafterf(middle, INFINITY)), ==, i + 1);
    }
}

static void test_extremes(gconstpointer data) {
    const Half *half = data;

    g_assert_cmphex(narrow_one(half, 3.4028235e38f), ==, half->infinity);
    g_assert_cmphex(narrow_one(half, -3.4028235e38f), ==, half->infinity | SIGN);
    g_assert_cmphex(narrow_one(half, INFINITY), ==, half->infinity);
    g_assert_cmphex(narrow_one(half, 0x1p-149f), ==, 0);
    g_assert_cmphex(narrow_one(half, -0.0f), ==, SIGN);
    g_assert_cmphex(narrow_one(half, NAN) & 0x7fff, >, half->infinity);
}

static void test_sums_and_products(gconstpointer data) {
    enum {
        N = 1003
    };
    const Half *half = data;
    g_autofree float *a = check_random(N, -3, 3, 1), *b = check_random(N, -3, 3, 2);
    g_autofree uint16_t *x = g_new(uint16_t, N), *y = g_new(uint16_t, N), *z = g_new(uint16_t, N);
    g_autofree float *got = check_poisoned(N);
    g_autofree double *sum = g_new(double, N), *product = g_new(double, N);

    half->narrow(x, a, N);
    half->narrow(y, b, N);
    half->narrow(z, a, N);
    for (unsigned i = 0; i < N; i++) {
        sum[i] = meaning(half, x[i]) + meaning(half, y[i]);
        product[i] = meaning(half, x[i]) * (double)0.3f;
    }
    half->add(x, y, N);
    half->widen(got, x, N);
    check_close("add_inplace", got, sum, N, half->unit_roundoff * (1 + 1e-6), half->least / 2);
    half->scale(z, 0.3f, N);
    half->widen(got, z, N);
    check_close("scale_inplace", got, product, N, half->unit_roundoff * (1 + 1e-6),
                half->least / 2);
}

static void add_tests(const Half *half, const char *test, GTestDataFunc run) {
    g_autofree char *path = g_strdup_printf("/kernels/half/%s/%s", half->name, test);
    g_test_add_data_func(path, half, run);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(halves); i++) {
        add_tests(&halves[i], "every-number", test_every_number);
        add_tests(&halves[i], "every-tie", test_every_tie);
        add_tests(&halves[i], "extremes", test_extremes);
        add_tests(&halves[i], "sums-and-products", test_sums_and_products);
    }
    return g_test_run();
}
