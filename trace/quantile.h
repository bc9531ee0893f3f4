/* trace/quantile.h - the middle and the edge of many measurements, for whoever compares plays.
 * All sort the numbers; of none they give 0. */
#pragma once

#include <glib.h>

/* Of an even count the mean of the middle two. */
double trace_median(double *numbers, gsize n);
/* The least of the numbers that `share` of them (0 to 1) do not exceed: one that was measured. */
double trace_quantile(double *numbers, gsize n, double share);

static inline double trace_median_of(GArray *numbers) {
    return trace_median((double *)(gpointer)numbers->data, numbers->len);
}
