/* tests/kernels-cuda/device.h - what the tests of the CUDA kernels share: a lane, device arrays,
 * and comparisons with numbers of the host.
 *
 * A device array is filled with NaN, lies between guards, and may begin `shift` elements past a
 * border of 16 bytes: all of a case alike, or, in one case of each type, only those that this run's
 * seed picks, so that no kernel may conclude from one array how another lies. Numbers are handed
 * over as floats, rounded to the array's type on the way there; what comes back is widened. All
 * arrays of a test are freed, and their guards looked at, when its case ends.
 *
 * The same programs run on a GPU, and on the emulated one (tests/emulator) with each of several
 * orders of its work. Without a GPU the first kind skips all of its tests.
 */
#pragma once
#include <glib.h>

#include "kernels/cuda/runtime.h"

typedef struct {
    KernelCudaType type;
    unsigned shift;  /* elements */
    double rounding; /* relative error of storing a number: 0, 2^-8 or 2^-11 */
} DeviceCase;

extern KernelCuda *device_lane;

/* Runs the tests that were added; the exit status of a main. */
int device_main(int argc, char **argv, void (*add_tests)(void));

/* Calls test once for each type and shift, and in the emulator for each order of work. */
void device_for_cases(void (*test)(const DeviceCase *c));

/* Adds a test that does so. */
#define DEVICE_TEST(path, test) g_test_add_data_func(path, (gconstpointer)(test), device_run_cases)
void device_run_cases(gconstpointer test);
/* Adds one that is called once. */
#define DEVICE_TEST_ONCE(path, test) g_test_add_data_func(path, (gconstpointer)(test), device_run)
void device_run(gconstpointer test);

/* ---- arrays; they live until the test (or its case) ends ------------------------------------- */

void *device_new(const DeviceCase *c, size_t n); /* NaN */
void *device_put(const DeviceCase *c, const float *x, size_t n);
void *device_new_bytes(size_t bytes);
void *device_put_bytes(const void *x, size_t bytes);
/* n elements, of the picked arrays one element past the border. */
void *device_new_elements(size_t n, size_t bytes_each);
void *device_put_elements(const void *x, size_t n, size_t bytes_each);
#define device_new_floats(n)    ((float *)device_new_elements(n, sizeof(float)))
#define device_put_floats(x, n) ((float *)device_put_elements(x, n, sizeof(float)))
#define device_put_i64(x, n)    ((gint64 *)device_put_elements(x, n, sizeof(gint64)))

/* transfer full: g_free(). After what was launched so far. */
float *device_get(const DeviceCase *c, const void *array, size_t n);
gpointer device_get_bytes(const void *array, size_t bytes);

/* transfer full: g_free(). n random numbers in [low, high], other ones in each run of the program,
 * rounded to the case's type, so that the host computes from the same ones. */
float *device_random(const DeviceCase *c, size_t n, double low, double high, guint32 seed);

/* ---- checks ---------------------------------------------------------------------------------
 *
 * What fails is told, fails the test, and lets it go on. Each test says at its end how near to its
 * bounds it came. */

/* A kernel's fault fails the test. */
#define DEVICE_OK(call) device_ok(#call, call)
void device_ok(const char *call, KernelCudaFault fault);

/* |got - want| <= (relative + rounding) |want| + absolute, n elements; NaN and infinities alike. */
void device_close(const char *what, const DeviceCase *c, const void *got, const float *want,
                  size_t n, double relative, double absolute);
void device_close_floats(const char *what, const void *got, const float *want, size_t n,
                         double relative, double absolute);
/* Likewise, and of each element as much more as slack has for it (NULL: none). */
void device_close_within(const char *what, const DeviceCase *c, const void *got, const float *want,
                         const float *slack, size_t n, double relative, double absolute);
/* Equal once want is rounded. */
void device_equal(const char *what, const DeviceCase *c, const void *got, const float *want,
                  size_t n);
void device_equal_bytes(const char *what, const void *got, const void *want, size_t bytes);
