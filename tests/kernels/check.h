/* tests/kernels/check.h - what the kernel tests share: data, poison, bounds and gradients.
 *
 * Every output starts as NaN with a guard of NaN behind it, so that an element left out or written
 * past the end fails. Every reference is a function in double written in the test itself, and a
 * backward kernel is held against central differences of that function, whose own error (step 1e-4
 * in double) is below 1e-7 for what is tested here.
 */
#pragma once
#include <glib.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* transfer full: g_free(). Uniform in [low, high], the same for the same seed. */
float *check_random(size_t n, double low, double high, guint32 seed);

/* transfer full: g_free(). n elements of NaN, and a guard. */
float *check_poisoned(size_t n);

/* Whether the guard behind check_poisoned()'s n elements is whole. */
void check_guard(const char *what, const float *array, size_t n);

/* transfer full: g_free(). */
double *check_doubles(const float *x, size_t n);

/* Asserts |got[i] - want[i]| <= relative |want[i]| + absolute, and that got's guard is whole. */
void check_close(const char *what, const float *got, const double *want, size_t n, double relative,
                 double absolute);

/* Asserts that the n elements are the same bits, and that got's guard is whole. */
void check_same(const char *what, const float *got, const float *want, size_t n);

/* out[n_out] from in[n_in]. */
typedef void (*CheckFunction)(const double *in, double *out, gpointer data);

/* Asserts that got[n_in] is the gradient with respect to in of the sum over out of dout * out. */
void check_gradient(const char *what, const float *got, CheckFunction function, gpointer data,
                    const double *in, size_t n_in, const float *dout, size_t n_out, double relative,
                    double absolute);
