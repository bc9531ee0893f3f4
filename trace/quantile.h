/* trace/quantile.h - median and quantiles of measurements. All functions sort the numbers in place,
 * and return 0 if there are none. */
#pragma once

#include <glib.h>

/* For an even count the mean of the middle two. */
double trace_median(double *numbers, gsize n);
/* The smallest of the numbers that at least `share` of them (0 to 1) do not exceed. */
double trace_quantile(double *numbers, gsize n, double share);

static inline double trace_median_of(GArray *numbers) {
    return trace_median((double *)(gpointer)numbers->data, numbers->len);
}
