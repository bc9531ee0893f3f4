/* trace/idle.h - why the compute lane of a rank stands still, in its steady steps.
 *
 * Every nanosecond between two ops of the compute lane goes to one cause, the first that holds:
 *   collective  a collective runs on some lane, or on this one
 *   copy        bytes are moved on another lane
 *   host        nothing runs, and the op that ends the gap was not issued yet
 *   other       nothing runs, though the op was issued: gaps between kernels
 * Collectives on the compute lane itself are idle time too, as trace/summary.h counts them.
 *
 * Cost: O(n log n) in the rank's rows.
 */
#pragma once

#include "trace/summary.h"

typedef enum {
    TRACE_IDLE_COLLECTIVE,
    TRACE_IDLE_COPY,
    TRACE_IDLE_HOST,
    TRACE_IDLE_OTHER,
    TRACE_N_IDLES
} TraceIdle;

typedef struct {
    guint n_steps;   /* steady ones; the rest are sums over all of them */
    guint n_ops;     /* of the compute lane, without collectives */
    int64_t busy_ns; /* what those take */
    int64_t idle_ns[TRACE_N_IDLES];
    guint n_returns; /* of the whole play: how often the allocator gave memory back */
} TraceIdleBook;

const char *trace_idle_name(TraceIdle idle);
TraceIdleBook trace_idle_book(const Trace *trace, const TraceSummary *summary);
