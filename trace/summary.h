/* trace/summary.h - the figures that a rank's rows add up to.
 *
 * Rules, which every output that shows these figures follows:
 *   step        lasts from the end of the last compute-lane op of the step before (of the first
 *               recorded step: from t = 0) to the end of its own last one. Construction (step -1)
 *               lasts from its first row to its last.
 *   phase       of each compute-lane op, the time since the end of the compute-lane op before it:
 *               waiting counts for the op that is waited with. So phases sum up to the step.
 *   lane busy   the sum of its ops' durations.
 *   op kind     the sum of the durations of its ops, on whatever lane.
 *               Ops that the host does itself count here alone: they occupy no lane.
 *   exposed     of a collective: the part of its duration during which no op that is not a
 *               collective runs on the compute lane, in whatever step. Hidden is the rest.
 *   communication   the time during which at least one collective of the step runs, and the part of
 *               it that is exposed: collectives that overlap count once here, and twice by kind.
 *   peak        the largest value a memory row shows; of equal ones the first.
 *
 * Cost: O(n log n) in the trace's rows.
 */
#pragma once

#include "trace/trace.h"

typedef enum {
    TRACE_ALLOCATED, /* held by buffers */
    TRACE_ACTIVE,    /* allocated, or freed but still in use by a lane */
    TRACE_RESERVED,  /* active, or kept by the allocator */
    TRACE_N_STATISTICS
} TraceStatistic;

const char *trace_statistic_name(TraceStatistic statistic);
uint64_t trace_memory_statistic(const TraceMemoryRow *row, TraceStatistic statistic);

typedef struct {
    bool known; /* false: no memory row */
    uint64_t bytes;
    guint row; /* in trace->memory */
    int32_t step;
    int64_t host_ns;
    uint32_t instruction, unit, phase; /* unit: TRACE_NONE when none */
    uint64_t *categories;              /* allocated bytes of each, at that moment */
} TracePeak;

typedef struct {
    uint32_t count;
    int64_t total_ns, exposed_ns; /* exposed_ns: collectives only */
} TraceKindTime;

typedef struct {
    int32_t step;
    int64_t start_ns, end_ns;
    int64_t *lane_ns;     /* busy, by lane */
    int64_t *phase_ns;    /* by phase */
    TraceKindTime *kinds; /* by op kind */
    int64_t communication_ns, exposed_ns;
    TracePeak peaks[TRACE_N_STATISTICS]; /* of this step's rows */
    uint64_t *category_peaks;            /* of each category by itself, of this step's rows */
} TraceStepSummary;

typedef struct {
    uint32_t rank, role;
    guint n_steps; /* with construction, when it left rows */
    TraceStepSummary *steps;
    TracePeak peaks[TRACE_N_STATISTICS]; /* of all rows */
    uint64_t *category_peaks;
    guint n_memory_rows;
} TraceSummary;

/* NULL when the rank is not recorded. The trace passes trace_check() and outlives the summary. */
TraceSummary *trace_summary_new(const Trace *trace, uint32_t rank);
void trace_summary_free(TraceSummary *summary); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TraceSummary, trace_summary_free)

/* The step's summary, NULL when it left no rows. */
const TraceStepSummary *trace_summary_step(const TraceSummary *summary, int32_t step);

/* The steps to judge by: those after the first two (which make state and buckets), or all but
 * construction when there are no more. */
bool trace_summary_is_steady(const TraceSummary *summary, guint step_index);
bool trace_summary_step_is_steady(const TraceSummary *summary, int32_t step); /* that left rows */

/* Over the times of the steady steps; n 0: NAN all. */
typedef struct {
    guint n;
    double median_ns, least_ns, most_ns;
    double p95_ns; /* nearest rank: the smallest that at least 95 % of them do not exceed */
} TraceSpread;
TraceSpread trace_summary_spread(const TraceSummary *summary);

/* Of an op kind, over all steady steps. */
TraceKindTime trace_summary_kind(const TraceSummary *summary, guint kind);
/* Whether any recorded step has spent time on it. */
bool trace_summary_has_kind(const TraceSummary *summary, guint kind);
/* What categories of a folded name ("activations") held at a known peak. */
uint64_t trace_peak_category(const Trace *trace, const TracePeak *peak, const char *name);

static inline int64_t trace_step_time_ns(const TraceStepSummary *step) {
    return step->end_ns - step->start_ns;
}
