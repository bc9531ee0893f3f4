/* trace/scale.h - the unit in which a time or a size is shown: chosen by the largest of a table or
 * an axis, so that all of it shares one unit. Bytes are decimal: MB is 1e6, GB is 1e9.
 */
#pragma once

#include <glib.h>

typedef struct {
    const char *unit;
    double per_unit; /* ns or bytes */
} TraceScale;

TraceScale trace_scale_time(double largest_ns);
TraceScale trace_scale_bytes(double largest_bytes);
