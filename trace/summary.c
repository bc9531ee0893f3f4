#include "trace/summary.h"

#include <math.h>

#include "trace/intervals.h"
#include "trace/quantile.h"

static int64_t uncovered(const GArray *intervals, int64_t start_ns, int64_t end_ns) {
    return end_ns - start_ns - trace_intervals_covered(intervals, start_ns, end_ns);
}

static void clear_peak(TracePeak *peak) {
    g_free(peak->categories);
}

static void clear_step(gpointer data) {
    TraceStepSummary *step = data;
    g_free(step->lane_ns);
    g_free(step->phase_ns);
    g_free(step->kinds);
    g_free(step->category_peaks);
    for (guint i = 0; i < TRACE_N_STATISTICS; i++) {
        clear_peak(&step->peaks[i]);
    }
}

static TraceStepSummary *step_of(GArray *steps, const Trace *trace, int32_t number) {
    if (steps->len > 0) {
        TraceStepSummary *last = &g_array_index(steps, TraceStepSummary, steps->len - 1);
        if (last->step == number) {
            return last;
        }
    }
    TraceStepSummary step = {
        .step = number,
        .lane_ns = g_new0(int64_t, trace->lanes->len),
        .phase_ns = g_new0(int64_t, trace->phases->len),
        .kinds = g_new0(TraceKindTime, trace->kinds->len),
        .category_peaks = g_new0(uint64_t, trace->categories->len),
    };
    g_array_append_val(steps, step);
    return &g_array_index(steps, TraceStepSummary, steps->len - 1);
}

/* Steps in order, from both kinds of rows. */
static GArray *find_steps(const Trace *trace, uint32_t rank) {
    GArray *steps = g_array_new(FALSE, FALSE, sizeof(TraceStepSummary));
    g_array_set_clear_func(steps, clear_step);
    guint op = 0, memory = 0;
    for (;;) {
        while (op < trace->ops->len && trace_op(trace, op)->rank != rank) {
            op++;
        }
        while (memory < trace->memory->len && trace_memory(trace, memory)->rank != rank) {
            memory++;
        }
        bool has_op = op < trace->ops->len, has_memory = memory < trace->memory->len;
        if (!has_op && !has_memory) {
            return steps;
        }
        if (has_op &&
            (!has_memory || trace_op(trace, op)->step <= trace_memory(trace, memory)->step)) {
            step_of(steps, trace, trace_op(trace, op++)->step);
        } else {
            step_of(steps, trace, trace_memory(trace, memory++)->step);
        }
    }
}

static bool is_collective(const Trace *trace, uint32_t role, const TraceOpRow *row) {
    uint32_t kind = trace_instruction(trace, role, row->instruction)->kind;
    return trace_kind(trace, kind)->kind_class == TRACE_KIND_COLLECTIVE;
}

/* What the host does itself occupies no lane. */
static bool is_launched(const Trace *trace, uint32_t role, const TraceOpRow *row) {
    return trace_instruction(trace, role, row->instruction)->what == TRACE_OP;
}

static GArray *compute_intervals(const Trace *trace, uint32_t rank, uint32_t role) {
    GArray *intervals = trace_intervals_new();
    uint32_t compute = trace_compute_lane(trace);
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (row->rank == rank && row->lane == compute && is_launched(trace, role, row) &&
            !is_collective(trace, role, row)) {
            trace_intervals_add(intervals, row->start_ns, row->end_ns);
        }
    }
    trace_intervals_unite(intervals);
    return intervals;
}

/* What the walk over op rows carries from row to row. */
typedef struct {
    GArray *compute;             /* of the rank */
    GArray *collectives;         /* of the step */
    int64_t last_end_ns;         /* of the compute lane */
    bool any;                    /* the step has an op on the compute lane */
    int64_t first_ns, latest_ns; /* of the step's rows, on whatever lane */
} OpWalk;

static void close_step(TraceStepSummary *step, OpWalk *walk, int64_t begun_ns) {
    trace_intervals_unite(walk->collectives);
    for (guint i = 0; i < walk->collectives->len; i++) {
        const TraceInterval *interval = &g_array_index(walk->collectives, TraceInterval, i);
        step->communication_ns += interval->end_ns - interval->start_ns;
        step->exposed_ns += uncovered(walk->compute, interval->start_ns, interval->end_ns);
    }
    g_array_set_size(walk->collectives, 0);
    if (step->step < 0) {
        step->start_ns = walk->first_ns == INT64_MAX ? 0 : walk->first_ns;
        step->end_ns = walk->first_ns == INT64_MAX ? 0 : walk->latest_ns;
        return;
    }
    step->start_ns = begun_ns;
    step->end_ns = begun_ns;
    if (walk->any) {
        step->end_ns = MAX(begun_ns, walk->last_end_ns);
    } else if (walk->first_ns != INT64_MAX) {
        step->end_ns = MAX(begun_ns, walk->latest_ns);
    }
}

static void count_op(const Trace *trace, const TraceOpRow *row, uint32_t role, uint32_t compute,
                     TraceStepSummary *step, OpWalk *walk) {
    const TraceInstruction *instruction = trace_instruction(trace, role, row->instruction);
    TraceKindTime *kind = &step->kinds[instruction->kind];
    kind->count++;
    kind->total_ns += row->end_ns - row->start_ns;
    walk->first_ns = MIN(walk->first_ns, row->start_ns);
    walk->latest_ns = MAX(walk->latest_ns, row->end_ns);
    if (!is_launched(trace, role, row)) {
        return;
    }
    step->lane_ns[row->lane] += row->end_ns - row->start_ns;
    if (is_collective(trace, role, row)) {
        kind->exposed_ns += uncovered(walk->compute, row->start_ns, row->end_ns);
        trace_intervals_add(walk->collectives, row->start_ns, row->end_ns);
    }
    if (row->lane == compute) {
        step->phase_ns[instruction->phase] += MAX(0, row->end_ns - walk->last_end_ns);
        walk->last_end_ns = MAX(walk->last_end_ns, row->end_ns);
        walk->any = true;
    }
}

static void walk_ops(const Trace *trace, uint32_t rank, uint32_t role, GArray *steps) {
    OpWalk walk = {.compute = compute_intervals(trace, rank, role),
                   .collectives = trace_intervals_new()};
    uint32_t compute = trace_compute_lane(trace);
    guint row = 0;
    int64_t begun_ns = 0;
    for (guint i = 0; i < steps->len; i++) {
        TraceStepSummary *step = &g_array_index(steps, TraceStepSummary, i);
        walk.any = false;
        walk.first_ns = INT64_MAX;
        walk.latest_ns = INT64_MIN;
        walk.last_end_ns = begun_ns;
        for (; row < trace->ops->len &&
               (trace_op(trace, row)->rank != rank || trace_op(trace, row)->step == step->step);
             row++) {
            if (trace_op(trace, row)->rank == rank) {
                if (step->step < 0 && !walk.any) { /* nothing is before the first op */
                    walk.last_end_ns = trace_op(trace, row)->start_ns;
                }
                count_op(trace, trace_op(trace, row), role, compute, step, &walk);
            }
        }
        close_step(step, &walk, begun_ns);
        begun_ns = step->step < 0 ? begun_ns : step->end_ns;
    }
    g_array_unref(walk.compute);
    g_array_unref(walk.collectives);
}

static void see_peak(const Trace *trace, uint32_t role, guint row_number, TraceStatistic statistic,
                     const int64_t *held, TracePeak *peak) {
    const TraceMemoryRow *row = trace_memory(trace, row_number);
    uint64_t bytes = trace_memory_statistic(row, statistic);
    if (peak->known && bytes <= peak->bytes) {
        return;
    }
    guint n = trace->categories->len;
    if (peak->categories == NULL) {
        peak->categories = g_new0(uint64_t, n);
    }
    const TraceInstruction *instruction = trace_instruction(trace, role, row->instruction);
    peak->known = true;
    peak->bytes = bytes;
    peak->row = row_number;
    peak->step = row->step;
    peak->host_ns = row->host_ns;
    peak->instruction = row->instruction;
    peak->unit = instruction->unit;
    peak->phase = instruction->phase;
    for (guint i = 0; i < n; i++) {
        peak->categories[i] = (uint64_t)MAX(0, held[i]);
    }
}

static void walk_memory(const Trace *trace, TraceSummary *summary) {
    g_autofree int64_t *held = g_new0(int64_t, trace->categories->len);
    guint at = 0;
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank != summary->rank) {
            continue;
        }
        while (summary->steps[at].step != row->step) {
            at++;
        }
        TraceStepSummary *step = &summary->steps[at];
        /* Of one category alone it may be more than a number holds; then it wraps. */
        held[row->category] = (int64_t)((uint64_t)held[row->category] + (uint64_t)row->delta);
        uint64_t now = (uint64_t)MAX(0, held[row->category]);
        step->category_peaks[row->category] = MAX(step->category_peaks[row->category], now);
        summary->category_peaks[row->category] = MAX(summary->category_peaks[row->category], now);
        for (guint k = 0; k < TRACE_N_STATISTICS; k++) {
            see_peak(trace, summary->role, i, k, held, &step->peaks[k]);
            see_peak(trace, summary->role, i, k, held, &summary->peaks[k]);
        }
        if (step->step < 0) {
            bool empty = step->start_ns == 0 && step->end_ns == 0;
            step->start_ns = MIN(step->start_ns, row->host_ns);
            step->end_ns = empty ? row->host_ns : MAX(step->end_ns, row->host_ns);
        }
        summary->n_memory_rows++;
    }
}

const char *trace_statistic_name(TraceStatistic statistic) {
    switch (statistic) {
    case TRACE_ALLOCATED:
        return "allocated";
    case TRACE_ACTIVE:
        return "active";
    case TRACE_RESERVED:
        return "reserved";
    case TRACE_N_STATISTICS:
        break;
    }
    g_assert_not_reached();
}

uint64_t trace_memory_statistic(const TraceMemoryRow *row, TraceStatistic statistic) {
    switch (statistic) {
    case TRACE_ALLOCATED:
        return row->allocated;
    case TRACE_ACTIVE:
        return row->active;
    case TRACE_RESERVED:
        return row->reserved;
    case TRACE_N_STATISTICS:
        break;
    }
    g_assert_not_reached();
}

TraceSummary *trace_summary_new(const Trace *trace, uint32_t rank) {
    uint32_t role = trace_role_of_rank(trace, rank);
    if (role == TRACE_NONE) {
        return NULL;
    }
    TraceSummary *summary = g_new0(TraceSummary, 1);
    summary->rank = rank;
    summary->role = role;
    summary->category_peaks = g_new0(uint64_t, trace->categories->len);
    GArray *steps = find_steps(trace, rank);
    walk_ops(trace, rank, role, steps);
    summary->n_steps = steps->len;
    summary->steps = (TraceStepSummary *)(gpointer)g_array_free(steps, FALSE);
    walk_memory(trace, summary);
    return summary;
}

void trace_summary_free(TraceSummary *summary) {
    if (summary == NULL) {
        return;
    }
    for (guint i = 0; i < summary->n_steps; i++) {
        clear_step(&summary->steps[i]);
    }
    for (guint i = 0; i < TRACE_N_STATISTICS; i++) {
        clear_peak(&summary->peaks[i]);
    }
    g_free(summary->steps);
    g_free(summary->category_peaks);
    g_free(summary);
}

const TraceStepSummary *trace_summary_step(const TraceSummary *summary, int32_t step) {
    for (guint i = 0; i < summary->n_steps; i++) {
        if (summary->steps[i].step == step) {
            return &summary->steps[i];
        }
    }
    return NULL;
}

/* Steps are in order; construction, step -1, comes first where it left rows. */
static guint first_steady(const TraceSummary *summary) {
    guint first = summary->n_steps > 0 && summary->steps[0].step < 0;
    return first + (summary->n_steps - first > 2 ? 2 : 0);
}

bool trace_summary_is_steady(const TraceSummary *summary, guint step_index) {
    return step_index >= first_steady(summary);
}

bool trace_summary_step_is_steady(const TraceSummary *summary, int32_t step) {
    guint first = first_steady(summary);
    return first < summary->n_steps && step >= summary->steps[first].step;
}

TraceKindTime trace_summary_kind(const TraceSummary *summary, guint kind) {
    TraceKindTime sum = {0};
    for (guint i = 0; i < summary->n_steps; i++) {
        if (trace_summary_is_steady(summary, i)) {
            const TraceKindTime *time = &summary->steps[i].kinds[kind];
            sum.count += time->count;
            sum.total_ns += time->total_ns;
            sum.exposed_ns += time->exposed_ns;
        }
    }
    return sum;
}

bool trace_summary_has_kind(const TraceSummary *summary, guint kind) {
    bool has = false;
    for (guint i = 0; i < summary->n_steps; i++) {
        has |= summary->steps[i].kinds[kind].total_ns > 0;
    }
    return has;
}

uint64_t trace_peak_category(const Trace *trace, const TracePeak *peak, const char *name) {
    uint64_t held = 0;
    for (guint i = 0; i < trace->categories->len; i++) {
        held += trace_category_is(trace, i, name) ? peak->categories[i] : 0;
    }
    return held;
}

TraceSpread trace_summary_spread(const TraceSummary *summary) {
    g_autofree double *times = g_new(double, MAX(1, summary->n_steps));
    guint n = 0;
    for (guint i = 0; i < summary->n_steps; i++) {
        if (trace_summary_is_steady(summary, i)) {
            times[n++] = (double)trace_step_time_ns(&summary->steps[i]);
        }
    }
    if (n == 0) {
        return (TraceSpread){0, NAN, NAN, NAN, NAN};
    }
    return (TraceSpread){
        .n = n,
        .median_ns = trace_median(times, n),
        .least_ns = trace_quantile(times, n, 0),
        .most_ns = trace_quantile(times, n, 1),
        .p95_ns = trace_quantile(times, n, 0.95),
    };
}
