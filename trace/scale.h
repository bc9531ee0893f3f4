/* trace/scale.h - the unit in which a time or a size is shown: chosen by the largest of a table or
 * an axis, so that all of it shares one unit. Bytes are binary, as PyTorch and drivers print them:
 * MiB is 2^20, GiB is 2^30.
 */
#pragma once

#include <glib.h>

typedef struct {
    const char *unit;
    double per_unit; /* ns or bytes */
} TraceScale;

TraceScale trace_scale_time(double largest_ns);
TraceScale trace_scale_bytes(double largest_bytes);
/* "12.34 GiB": a size by itself. */
char *trace_bytes_text(double bytes);
/* "3 allocation retries in 20 steps". */
char *trace_retries_text(guint64 n, guint steps);
