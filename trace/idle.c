#include "trace/idle.h"

#include "trace/intervals.h"

const char *trace_idle_name(TraceIdle idle) {
    static const char *const names[TRACE_N_IDLES] = {
        [TRACE_IDLE_COLLECTIVE] = "waits for collectives",
        [TRACE_IDLE_COPY] = "waits for copies on other lanes",
        [TRACE_IDLE_HOST] = "waits for the host to issue",
        [TRACE_IDLE_OTHER] = "gaps between kernels",
    };
    return names[idle];
}

/* What runs beside the compute lane's own kernels. */
typedef struct {
    GArray *collectives;
    GArray *both; /* collectives and copies */
} Beside;

static const TraceInstruction *instruction_of(const Trace *trace, const TraceSummary *summary,
                                              const TraceOpRow *row) {
    return trace_instruction(trace, summary->role, row->instruction);
}

static bool is_launched_by(const Trace *trace, const TraceSummary *summary, const TraceOpRow *row) {
    return row->rank == summary->rank && instruction_of(trace, summary, row)->what == TRACE_OP;
}

static TraceKindClass class_of(const Trace *trace, const TraceSummary *summary,
                               const TraceOpRow *row) {
    return trace_kind(trace, instruction_of(trace, summary, row)->kind)->kind_class;
}

static Beside find_beside(const Trace *trace, const TraceSummary *summary, uint32_t compute) {
    Beside beside = {trace_intervals_new(), trace_intervals_new()};
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (!is_launched_by(trace, summary, row)) {
            continue;
        }
        TraceKindClass kind_class = class_of(trace, summary, row);
        if (kind_class == TRACE_KIND_COLLECTIVE) {
            trace_intervals_add(beside.collectives, row->start_ns, row->end_ns);
        }
        if (kind_class == TRACE_KIND_COLLECTIVE || row->lane != compute) {
            trace_intervals_add(beside.both, row->start_ns, row->end_ns);
        }
    }
    trace_intervals_unite(beside.collectives);
    trace_intervals_unite(beside.both);
    return beside;
}

/* Deals out the gap that ends with the row. */
static void share_gap(TraceIdleBook *book, const Beside *beside, int64_t gap_ns,
                      const TraceOpRow *row) {
    int64_t end_ns = row->start_ns, issue_ns = MAX(gap_ns, MIN(end_ns, row->host_issue_ns));
    int64_t collective_ns = trace_intervals_covered(beside->collectives, gap_ns, end_ns);
    int64_t both_ns = trace_intervals_covered(beside->both, gap_ns, end_ns);
    int64_t late_ns = issue_ns - gap_ns - trace_intervals_covered(beside->both, gap_ns, issue_ns);
    book->idle_ns[TRACE_IDLE_COLLECTIVE] += collective_ns;
    book->idle_ns[TRACE_IDLE_COPY] += both_ns - collective_ns;
    book->idle_ns[TRACE_IDLE_HOST] += late_ns;
    book->idle_ns[TRACE_IDLE_OTHER] += end_ns - gap_ns - both_ns - late_ns;
}

/* How often reserved fell: memory went back to the device, which under pressure stops it. */
static guint count_returns(const Trace *trace, uint32_t rank) {
    guint n = 0;
    uint64_t reserved = 0;
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank == rank) {
            n += row->reserved < reserved;
            reserved = row->reserved;
        }
    }
    return n;
}

TraceIdleBook trace_idle_book(const Trace *trace, const TraceSummary *summary) {
    TraceIdleBook book = {.n_returns = count_returns(trace, summary->rank)};
    uint32_t compute = trace_compute_lane(trace);
    Beside beside = find_beside(trace, summary, compute);
    for (guint i = 0; i < summary->n_steps; i++) {
        book.n_steps += trace_summary_is_steady(summary, i);
    }
    int64_t last_end_ns = 0;
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (!is_launched_by(trace, summary, row) || row->lane != compute ||
            class_of(trace, summary, row) == TRACE_KIND_COLLECTIVE) {
            continue;
        }
        if (trace_summary_step_is_steady(summary, row->step)) {
            book.n_ops++;
            book.busy_ns += row->end_ns - row->start_ns;
            if (row->start_ns > last_end_ns) {
                share_gap(&book, &beside, last_end_ns, row);
            }
        }
        last_end_ns = MAX(last_end_ns, row->end_ns);
    }
    g_array_unref(beside.collectives);
    g_array_unref(beside.both);
    return book;
}
