/* tests/kernels/vector.c - the polynomials of kernels/host/vector.h, in units of the last place. */
#include "kernels/host/vector.h"
#include "tests/kernels/check.h"

/* |got - want| in units of the last place of a float of want's size. */
static double ulps(float got, double want) {
    int exponent = want == 0.0 ? -126 : MAX(ilogb(want), -126);

    return fabs((double)got - want) / ldexp(1.0, exponent - 23);
}

static void test_exp(void) {
    double worst = 0.0;

    for (double x = -110.0; x < 88.7; x += 3.1e-5) {
        worst = MAX(worst, ulps(exp_f32((float)x), exp((double)(float)x)));
    }
    g_test_message("exp: %.3f ulp at worst", worst);
    g_assert_cmpfloat(worst, <=, 2.0);
    g_assert_cmpfloat(exp_f32(0.0f), ==, 1.0f);
    g_assert_cmpfloat(exp_f32(-INFINITY), ==, 0.0f);
    g_assert_cmpfloat(exp_f32(-200.0f), ==, 0.0f);
    g_assert_true(exp_f32(INFINITY) == INFINITY);
    g_assert_true(exp_f32(89.0f) == INFINITY);
    g_assert_true(isnan(exp_f32(NAN)));
}

static void test_sigmoid(void) {
    double worst = 0.0;

    for (double x = -86.0; x < 90.0; x += 3.1e-5) {
        worst = MAX(worst, ulps(sigmoid_f32((float)x), 1.0 / (1.0 + exp(-(double)(float)x))));
    }
    g_test_message("sigmoid: %.3f ulp at worst", worst);
    g_assert_cmpfloat(worst, <=, 4.0);
    g_assert_cmpfloat(sigmoid_f32(-INFINITY), ==, 0.0f);
    g_assert_cmpfloat(sigmoid_f32(INFINITY), ==, 1.0f);
    g_assert_true(isnan(sigmoid_f32(NAN)));
}

static void test_log(void) {
    double worst = 0.0;

    for (guint32 bits = 0x00800000u; bits < 0x7f800000u; bits += 487u) {
        float x = float_from_bits(bits);

        worst = MAX(worst, ulps(log_f32(x), log((double)x)));
    }
    for (int i = 0; i < 2000000; i++) { /* near 1 the result itself is small */
        float x = 0.8f + 2e-7f * (float)i;

        worst = MAX(worst, ulps(log_f32(x), log((double)x)));
    }
    g_test_message("log: %.3f ulp at worst", worst);
    g_assert_cmpfloat(worst, <=, 2.0);
    g_assert_cmpfloat(log_f32(1.0f), ==, 0.0f);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/vector/exp", test_exp);
    g_test_add_func("/kernels/vector/sigmoid", test_sigmoid);
    g_test_add_func("/kernels/vector/log", test_log);
    return g_test_run();
}
