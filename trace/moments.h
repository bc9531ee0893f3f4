/* trace/moments.h - memory over time as pictures and exporters show it: a row a change, with the
 * categories folded to their part before "/".
 *
 * Owns: the rows and the names. Borrows: nothing once made. Cost: one pass over a rank's rows.
 */
#pragma once

#include "trace/summary.h"
#include "trace/trace.h"

enum {
    TRACE_MAX_FOLDED = 20 /* categories; design knows six */
};

/* Bytes held by each folded category, then the statistics: a series each. */
typedef struct {
    int64_t at_ns; /* since the origin */
    uint64_t values[TRACE_MAX_FOLDED + TRACE_N_STATISTICS];
} TraceMoment;

typedef struct {
    GPtrArray *categories; /* folded names, in the order of the trace's table */
    GArray *rows;          /* TraceMoment */
} TraceMoments;

/* Every change of the steps from first to last, and before them the state in which they begin. */
TraceMoments *trace_moments_new(const Trace *trace, uint32_t rank, int32_t first_step,
                                int32_t last_step);
void trace_moments_free(TraceMoments *moments);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TraceMoments, trace_moments_free)

static inline const TraceMoment *trace_moment(const TraceMoments *moments, guint i) {
    return &g_array_index(moments->rows, TraceMoment, i);
}

static inline guint trace_moments_n_series(const TraceMoments *moments) {
    return moments->categories->len + TRACE_N_STATISTICS;
}

/* The trace's time at which time 0 of the moments lies: the first recorded step's own 0, else the
 * moment at which the host begins that step, or construction. */
int64_t trace_moments_origin_ns(const Trace *trace, uint32_t rank, int32_t first_step);

/* "parameters" and so on. g_ptr_array_unref(). */
GPtrArray *trace_folded_categories(const Trace *trace);
