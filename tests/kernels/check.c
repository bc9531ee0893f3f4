/* tests/kernels/check.c - see check.h. */
#include "tests/kernels/check.h"
#include <string.h>

#define GUARD 8
#define STEP  1e-4

float *check_random(size_t n, double low, double high, guint32 seed) {
    float *x = g_new(float, n + GUARD);
    GRand *rand = g_rand_new_with_seed(seed);

    for (size_t i = 0; i < n; i++) {
        x[i] = (float)g_rand_double_range(rand, low, high);
    }
    for (size_t i = n; i < n + GUARD; i++) {
        x[i] = NAN;
    }
    g_rand_free(rand);
    return x;
}

float *check_poisoned(size_t n) {
    float *x = g_new(float, n + GUARD);

    for (size_t i = 0; i < n + GUARD; i++) {
        x[i] = NAN;
    }
    return x;
}

void check_guard(const char *what, const float *array, size_t n) {
    for (size_t i = n; i < n + GUARD; i++) {
        if (!isnan(array[i])) {
            g_error("%s: wrote past the end, at %zu of %zu", what, i, n);
        }
    }
}

double *check_doubles(const float *x, size_t n) {
    double *copy = g_new(double, n + 1);

    for (size_t i = 0; i < n; i++) {
        copy[i] = (double)x[i];
    }
    return copy;
}

void check_close(const char *what, const float *got, const double *want, size_t n, double relative,
                 double absolute) {
    for (size_t i = 0; i < n; i++) {
        double error = fabs((double)got[i] - want[i]);

        if (!(error <= relative * fabs(want[i]) + absolute)) {
            g_error("%s: element %zu of %zu is %.9g, should be %.9g: error %.3g, allowed %.3g",
                    what, i, n, (double)got[i], want[i], error,
                    relative * fabs(want[i]) + absolute);
        }
    }
    check_guard(what, got, n);
}

void check_same(const char *what, const float *got, const float *want, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&got[i], &want[i], sizeof got[i]) != 0) {
            g_error("%s: element %zu of %zu is %.9g, should be %.9g", what, i, n, (double)got[i],
                    (double)want[i]);
        }
    }
    check_guard(what, got, n);
}

static double weighted_sum(const double *out, const float *dout, size_t n_out) {
    double total = 0.0;

    for (size_t i = 0; i < n_out; i++) {
        total += out[i] * (double)dout[i];
    }
    return total;
}

void check_gradient(const char *what, const float *got, CheckFunction function, gpointer data,
                    const double *in, size_t n_in, const float *dout, size_t n_out, double relative,
                    double absolute) {
    g_autofree double *moved = g_memdup2(in, n_in * sizeof *in);
    g_autofree double *out = g_new(double, n_out + 1);
    g_autofree double *slope = g_new(double, n_in + 1);

    for (size_t i = 0; i < n_in; i++) {
        moved[i] = in[i] + STEP;
        function(moved, out, data);
        slope[i] = weighted_sum(out, dout, n_out);
        moved[i] = in[i] - STEP;
        function(moved, out, data);
        slope[i] = (slope[i] - weighted_sum(out, dout, n_out)) / (2.0 * STEP);
        moved[i] = in[i];
    }
    check_close(what, got, slope, n_in, relative, absolute);
}
