#include "trace/intervals.h"

GArray *trace_intervals_new(void) {
    return g_array_new(FALSE, FALSE, sizeof(TraceInterval));
}

void trace_intervals_add(GArray *intervals, int64_t start_ns, int64_t end_ns) {
    TraceInterval interval = {start_ns, end_ns, 0};
    g_array_append_val(intervals, interval);
}

static int compare_starts(gconstpointer a, gconstpointer b) {
    const TraceInterval *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

void trace_intervals_unite(GArray *intervals) {
    g_array_sort(intervals, compare_starts);
    guint kept = 0;
    int64_t covered_ns = 0;
    for (guint i = 0; i < intervals->len; i++) {
        TraceInterval interval = g_array_index(intervals, TraceInterval, i);
        TraceInterval *last = kept > 0 ? &g_array_index(intervals, TraceInterval, kept - 1) : NULL;
        if (last != NULL && interval.start_ns <= last->end_ns) {
            covered_ns += MAX(0, interval.end_ns - last->end_ns);
            last->end_ns = MAX(last->end_ns, interval.end_ns);
            continue;
        }
        interval.before_ns = covered_ns;
        covered_ns += interval.end_ns - interval.start_ns;
        g_array_index(intervals, TraceInterval, kept++) = interval;
    }
    g_array_set_size(intervals, kept);
}

static int64_t covered_before(const GArray *intervals, int64_t at_ns) {
    guint low = 0, high = intervals->len; /* intervals before low begin at or before at_ns */
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(intervals, TraceInterval, middle).start_ns <= at_ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return 0;
    }
    const TraceInterval *last = &g_array_index(intervals, TraceInterval, low - 1);
    return last->before_ns + MIN(at_ns, last->end_ns) - last->start_ns;
}

int64_t trace_intervals_covered(const GArray *intervals, int64_t start_ns, int64_t end_ns) {
    return covered_before(intervals, end_ns) - covered_before(intervals, start_ns);
}
