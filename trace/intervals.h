/* trace/intervals.h - intervals of time as a sorted union, which answers in O(log n) how much of it
 * lies in any other interval.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct {
    int64_t start_ns, end_ns;
    int64_t before_ns; /* covered by the intervals before this one, once united */
} TraceInterval;

GArray *trace_intervals_new(void);
void trace_intervals_add(GArray *intervals, int64_t start_ns, int64_t end_ns);
void trace_intervals_unite(GArray *intervals);
/* How much of [start, end) they cover; united before. */
int64_t trace_intervals_covered(const GArray *intervals, int64_t start_ns, int64_t end_ns);
