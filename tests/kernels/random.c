/* tests/kernels/random.c - Philox against its published answers; numbers by index; their laws. */
#include "kernels/host/random.h"
#include "tests/kernels/check.h"

/* The known answers of the authors' Random123 library for philox4x32-10. */
static void test_known_answers(void) {
    static const struct {
        guint32 counter[4], key[2], want[4];
    } answers[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    for (size_t a = 0; a < G_N_ELEMENTS(answers); a++) {
        guint32 out[4];

        kernel_philox_4x32(out, answers[a].counter, answers[a].key);
        for (size_t i = 0; i < 4; i++) {
            g_assert_cmphex(out[i], ==, answers[a].want[i]);
        }
    }
}

static const guint64 SEED = G_GUINT64_CONSTANT(0x123456789abcdef0);
static const guint64 STREAM = G_GUINT64_CONSTANT(0xfeedface00000007);

/* Word w of a block of the stream, the long way round. */
static guint32 word(guint64 block, guint w) {
    guint32 counter[4] = {(guint32)block, (guint32)(block >> 32), (guint32)STREAM,
                          (guint32)(STREAM >> 32)};
    guint32 key[2] = {(guint32)SEED, (guint32)(SEED >> 32)};
    guint32 out[4];

    kernel_philox_4x32(out, counter, key);
    return out[w];
}

/* Starts past 2^34, so that the counter's second word is in use. */
static const guint64 START = (G_GUINT64_CONSTANT(1) << 34) - 7;

static void test_values(void) {
    const size_t n = 1001;
    g_autofree float *normal = check_poisoned(n);
    g_autofree float *uniform = check_poisoned(n);
    g_autofree gint64 *whole = g_new(gint64, n);
    g_autofree double *want_normal = g_new(double, n);
    g_autofree double *want_uniform = g_new(double, n);

    for (size_t i = 0; i < n; i++) {
        guint64 index = START + i, block = index / 4;
        guint pair = index % 4 < 2 ? 0 : 2;
        double radius = sqrt(-2.0 * log(ldexp((double)(word(block, pair) >> 8) + 1.0, -24)));
        guint32 w = word(block, pair + 1);
        double turn = ldexp((double)(w >> 6), -26) - 0.125; /* quarters, then place in one */

        want_normal[i] =
            0.5 + 2.0 * radius * (index % 2 == 0 ? cos(2.0 * G_PI * turn) : sin(2.0 * G_PI * turn));
        want_uniform[i] = -1.0 + 3.0 * ldexp((double)(word(block, index % 4) >> 8), -24);
    }
    kernel_philox_normal_f32(normal, n, SEED, STREAM, START, 0.5f, 2.0f);
    check_close("philox_normal", normal, want_normal, n, 1e-6, 2e-6);
    kernel_philox_uniform_f32(uniform, n, SEED, STREAM, START, -1.0f, 2.0f);
    check_close("philox_uniform", uniform, want_uniform, n, 1e-7, 3e-7);

    const gint64 bound = G_GINT64_CONSTANT(1000000000007);

    kernel_philox_uniform_i64(whole, n, bound, SEED, STREAM, START);
    for (size_t i = 0; i < n; i++) {
        guint64 index = START + i, block = index / 2;
        guint first = index % 2 == 0 ? 0 : 2;
        long double share =
            ((long double)word(block, first + 1) + (long double)word(block, first) * 0x1p-32L) *
            0x1p-32L;

        g_assert_cmpint(whole[i], ==, (gint64)(share * (long double)bound));
    }
}

static void test_cuts(void) {
    const size_t n = 3001;
    g_autofree float *whole = check_poisoned(n);
    g_autofree float *pieces = check_poisoned(n);
    g_autofree float *uniform = check_poisoned(n);
    g_autofree float *uniform_pieces = check_poisoned(n);
    g_autofree gint64 *integers = g_new0(gint64, n);
    g_autofree gint64 *integer_pieces = g_new0(gint64, n);

    kernel_philox_normal_f32(whole, n, SEED, STREAM, 5, 0.0f, 1.0f);
    kernel_philox_uniform_f32(uniform, n, SEED, STREAM, 5, 0.0f, 1.0f);
    kernel_philox_uniform_i64(integers, n, 50257, SEED, STREAM, 5);
    for (size_t at = 0, piece = 1; at < n; at += piece, piece = piece * 2 + 1) {
        size_t count = MIN(piece, n - at);

        kernel_philox_normal_f32(pieces + at, count, SEED, STREAM, 5 + at, 0.0f, 1.0f);
        kernel_philox_uniform_f32(uniform_pieces + at, count, SEED, STREAM, 5 + at, 0.0f, 1.0f);
        kernel_philox_uniform_i64(integer_pieces + at, count, 50257, SEED, STREAM, 5 + at);
    }
    check_same("normal in pieces", pieces, whole, n);
    check_same("uniform in pieces", uniform_pieces, uniform, n);
    g_assert_cmpmem(integer_pieces, n * sizeof *integers, integers, n * sizeof *integers);
}

/* The bits themselves, equal on every compiler and machine: an FNV-1a hash of 10000 numbers. */
static void test_frozen(void) {
    const size_t n = 10000;
    g_autofree float *x = check_poisoned(n);
    guint64 hash = G_GUINT64_CONSTANT(0xcbf29ce484222325);

    kernel_philox_normal_f32(x, n, SEED, STREAM, 0, 0.0f, 0.02f);
    for (size_t i = 0; i < n; i++) {
        guint32 bits;

        memcpy(&bits, &x[i], sizeof bits);
        hash = (hash ^ bits) * G_GUINT64_CONSTANT(0x100000001b3);
    }
    g_assert_cmphex(hash, ==, G_GUINT64_CONSTANT(0xd5b4aa489d2a3ae3));
}

/* Moments, distribution and independence of a million normals, at six standard errors. */
static void test_normal_law(void) {
    const size_t n = 1000000;
    const double root = sqrt((double)n);
    g_autofree float *x = check_poisoned(n);
    g_autofree float *y = check_poisoned(n);
    double moment[5] = {0.0}, lag = 0.0, pair = 0.0, across = 0.0;
    size_t below[7] = {0};

    kernel_philox_normal_f32(x, n, 42, 1, 0, 0.0f, 1.0f);
    kernel_philox_normal_f32(y, n, 42, 2, 0, 0.0f, 1.0f);
    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i];

        for (size_t m = 1; m < 5; m++) {
            moment[m] += pow(v, (double)m) / (double)n;
        }
        for (int t = -3; t <= 3; t++) {
            below[t + 3] += v < (double)t ? 1 : 0;
        }
        lag += i > 0 ? v * (double)x[i - 1] / (double)n : 0.0;
        pair += v * v * (double)x[i ^ 1] * (double)x[i ^ 1] / (double)n;
        across += v * (double)y[i] / (double)n;
    }
    g_assert_cmpfloat(fabs(moment[1]), <, 6.0 * 1.0 / root);
    g_assert_cmpfloat(fabs(moment[2] - 1.0), <, 6.0 * sqrt(2.0) / root);
    g_assert_cmpfloat(fabs(moment[3]), <, 6.0 * sqrt(15.0) / root);
    g_assert_cmpfloat(fabs(moment[4] - 3.0), <, 6.0 * sqrt(96.0) / root);
    g_assert_cmpfloat(fabs(lag), <, 6.0 / root);
    g_assert_cmpfloat(fabs(pair - 1.0), <, 6.0 * sqrt(16.0) / root); /* each pair counts twice */
    g_assert_cmpfloat(fabs(across), <, 6.0 / root);
    for (int t = -3; t <= 3; t++) {
        double p = 0.5 * erfc(-(double)t / sqrt(2.0));

        g_assert_cmpfloat(fabs((double)below[t + 3] / (double)n - p), <,
                          6.0 * sqrt(p * (1.0 - p)) / root);
    }
}

static void test_integer_law(void) {
    enum {
        BOUND = 7,
        N = 700000
    };
    g_autofree gint64 *x = g_new(gint64, N);
    size_t count[BOUND] = {0};
    double chi = 0.0;

    kernel_philox_uniform_i64(x, N, BOUND, 42, 3, 0);
    for (size_t i = 0; i < N; i++) {
        g_assert_true(x[i] >= 0 && x[i] < BOUND);
        count[x[i]]++;
    }
    for (size_t i = 0; i < BOUND; i++) {
        double off = (double)count[i] - N / BOUND;

        chi += off * off / (N / BOUND);
    }
    g_assert_cmpfloat(chi, <, 33.0); /* 6 degrees of freedom: one in 100000 */
    g_assert_cmpfloat(chi, >, 0.01);
    kernel_philox_uniform_i64(x, 100, 1, 42, 3, 0);
    for (size_t i = 0; i < 100; i++) {
        g_assert_cmpint(x[i], ==, 0);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/random/known-answers", test_known_answers);
    g_test_add_func("/kernels/random/values", test_values);
    g_test_add_func("/kernels/random/cuts", test_cuts);
    g_test_add_func("/kernels/random/frozen", test_frozen);
    g_test_add_func("/kernels/random/normal-law", test_normal_law);
    g_test_add_func("/kernels/random/integer-law", test_integer_law);
    return g_test_run();
}
