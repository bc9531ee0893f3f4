#include <math.h>

#include "trace/by-rank.h"
#include "trace/compare/private.h"
#include "trace/quantile.h"

/* A figure of one step, looked up by an index whose meaning the group knows. */
typedef double (*Figure)(const TraceStepSummary *step, guint index);

static double step_time(const TraceStepSummary *step, guint index) {
    return (double)trace_step_time_ns(step);
}

static double phase_time(const TraceStepSummary *step, guint index) {
    return (double)step->phase_ns[index];
}

static double lane_time(const TraceStepSummary *step, guint index) {
    return (double)step->lane_ns[index];
}

static double communication_time(const TraceStepSummary *step, guint index) {
    return (double)(index == 0 ? step->communication_ns : step->exposed_ns);
}

static double kind_time(const TraceStepSummary *step, guint index) {
    return (double)step->kinds[index].total_ns;
}

static double kind_exposed(const TraceStepSummary *step, guint index) {
    return (double)step->kinds[index].exposed_ns;
}

static double kind_hidden(const TraceStepSummary *step, guint index) {
    return kind_time(step, index) - kind_exposed(step, index);
}

static void add_row(TraceComparison *comparison, TraceCompareRow row) {
    if (row.value[0] != 0 || row.value[1] != 0) {
        row.error = trace_compare_relative(row.value[0], row.value[1]);
        g_array_append_val(comparison->rows, row);
    }
}

static void add_time(TraceComparison *comparison, TraceCompareGroup group, const char *name,
                     Figure figure, guint index) {
    TraceCompareRow row = {.group = group, .name = name};
    for (guint side = 0; side < 2; side++) {
        const TraceSummary *summary = comparison->summaries[side];
        g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));
        for (guint i = 0; i < summary->n_steps; i++) {
            if (trace_summary_is_steady(summary, i)) {
                double value = figure(&summary->steps[i], index);
                g_array_append_val(values, value);
            }
        }
        comparison->n_steps[side] = values->len;
        if (values->len == 0) {
            continue;
        }
        row.value[side] = trace_median_of(values); /* sorts them */
        row.low[side] = g_array_index(values, double, 0);
        row.high[side] = g_array_index(values, double, values->len - 1);
    }
    add_row(comparison, row);
}

static void add_size(TraceComparison *comparison, TraceCompareGroup group, const char *name,
                     uint64_t first, uint64_t second) {
    double a = (double)first, b = (double)second;
    add_row(comparison,
            (TraceCompareRow){
                .group = group, .name = name, .value = {a, b}, .low = {a, b}, .high = {a, b}});
}

static void add_rows(TraceComparison *comparison) {
    const Trace *trace = comparison->traces[0];
    const TraceSummary *first = comparison->summaries[0], *second = comparison->summaries[1];
    add_time(comparison, TRACE_COMPARE_STEP, "step", step_time, 0);
    for (guint i = 0; i < trace->phases->len; i++) {
        add_time(comparison, TRACE_COMPARE_PHASE, trace->phases->pdata[i], phase_time, i);
    }
    for (guint i = 0; i < trace->lanes->len; i++) {
        add_time(comparison, TRACE_COMPARE_LANE, trace->lanes->pdata[i], lane_time, i);
    }
    add_time(comparison, TRACE_COMPARE_COMMUNICATION, "total", communication_time, 0);
    add_time(comparison, TRACE_COMPARE_COMMUNICATION, "exposed", communication_time, 1);
    for (guint i = 0; i < trace->kinds->len; i++) {
        const TraceKind *kind = trace_kind(trace, i);
        if (kind->kind_class == TRACE_KIND_COLLECTIVE) {
            add_time(comparison, TRACE_COMPARE_COLLECTIVE, kind->name, kind_time, i);
            add_time(comparison, TRACE_COMPARE_COLLECTIVE_EXPOSED, kind->name, kind_exposed, i);
            add_time(comparison, TRACE_COMPARE_COLLECTIVE_HIDDEN, kind->name, kind_hidden, i);
        }
    }
    for (guint i = 0; i < trace->kinds->len; i++) {
        const TraceKind *kind = trace_kind(trace, i);
        if (kind->kind_class != TRACE_KIND_COLLECTIVE) {
            add_time(comparison, TRACE_COMPARE_OP, kind->name, kind_time, i);
        }
    }
    for (guint i = 0; i < TRACE_N_STATISTICS; i++) {
        add_size(comparison, TRACE_COMPARE_PEAK, trace_statistic_name(i), first->peaks[i].bytes,
                 second->peaks[i].bytes);
    }
    for (guint i = 0; i < trace->categories->len; i++) {
        add_size(comparison, TRACE_COMPARE_CATEGORY_PEAK, trace->categories->pdata[i],
                 first->category_peaks[i], second->category_peaks[i]);
    }
}

static bool has_step(const Trace *alone, int32_t step) {
    guint n = alone->memory->len;
    return n > 0 && step >= trace_memory(alone, 0)->step &&
           step <= trace_memory(alone, n - 1)->step;
}

static void compare_memory_rows(TraceComparison *comparison, const TraceMemoryRow *a,
                                const TraceMemoryRow *b) {
    comparison->n_compared++;
    for (guint i = 0; i < TRACE_N_STATISTICS; i++) {
        TraceCompareMemory *memory = &comparison->memory[i];
        uint64_t x = trace_memory_statistic(a, i), y = trace_memory_statistic(b, i);
        double difference = x > y ? (double)(x - y) : (double)(y - x);
        memory->mean_bytes += difference; /* divided at the end */
        memory->largest_bytes = MAX(memory->largest_bytes, difference);
        if (x == y) {
            continue;
        }
        if (memory->differing++ == 0) {
            memory->rank = b->rank;
            memory->step = b->step;
            memory->instruction = b->instruction;
            memory->value[0] = x;
            memory->value[1] = y;
        }
    }
}

/* Of one rank each; rows are in order of step and instruction. */
static void compare_memory(TraceComparison *comparison, const Trace *first, const Trace *second) {
    guint i = 0, k = 0;
    while (i < first->memory->len || k < second->memory->len) {
        const TraceMemoryRow *a = i < first->memory->len ? trace_memory(first, i) : NULL;
        const TraceMemoryRow *b = k < second->memory->len ? trace_memory(second, k) : NULL;
        bool a_first = b == NULL ||
                       (a != NULL &&
                        (a->step != b->step ? a->step < b->step : a->instruction < b->instruction));
        if (a != NULL && b != NULL && a->step == b->step && a->instruction == b->instruction) {
            compare_memory_rows(comparison, a, b);
            i++;
            k++;
        } else if (a_first) {
            comparison->n_unpaired += has_step(second, a->step);
            i++;
        } else {
            comparison->n_unpaired += has_step(first, b->step);
            k++;
        }
    }
}

static const TraceRank *rank_at(const Trace *trace, guint place) {
    return &g_array_index(trace->ranks, TraceRank, place);
}

/* The place of the first trace's rank that plays what this rank of the second plays: the same one,
 * or else the lowest; the number of its ranks: none. */
static guint counterpart(const Trace *first, const TraceRank *rank) {
    guint n = first->ranks->len, found = n;
    for (guint i = 0; i < n; i++) {
        const TraceRank *entry = rank_at(first, i);
        if (entry->role == rank->role && entry->rank == rank->rank) {
            return i;
        }
        if (entry->role == rank->role &&
            (found == n || entry->rank < rank_at(first, found)->rank)) {
            found = i;
        }
    }
    return found;
}

/* Rank by rank. ret_pair: the ranks by which times are compared; TRACE_NONE: there are none. */
static void compare_ranks(TraceComparison *comparison, uint32_t *ret_pair) {
    const Trace *first = comparison->traces[0], *second = comparison->traces[1];
    g_autoptr(TraceByRank) of_first = trace_by_rank_new(first);
    g_autoptr(TraceByRank) of_second = trace_by_rank_new(second);
    ret_pair[0] = ret_pair[1] = TRACE_NONE;
    for (guint i = 0; i < second->ranks->len; i++) {
        const TraceRank *rank = rank_at(second, i);
        guint other = counterpart(first, rank);
        if (other == first->ranks->len) {
            continue;
        }
        comparison->n_ranks++;
        compare_memory(comparison, trace_by_rank_alone(of_first, other),
                       trace_by_rank_alone(of_second, i));
        if (rank->rank < ret_pair[1]) {
            ret_pair[0] = rank_at(first, other)->rank;
            ret_pair[1] = rank->rank;
        }
    }
}

static void name_sides(TraceComparison *comparison) {
    const char *first = trace_get(comparison->traces[0], "side");
    const char *second = trace_get(comparison->traces[1], "side");
    bool alike = g_str_equal(first, second);
    comparison->sides[0] = alike ? "first" : first;
    comparison->sides[1] = alike ? "second" : second;
}

TraceComparison *trace_compare(const Trace *first, const Trace *second, GError **error) {
    const char *digests[2] = {trace_get(first, "digest"), trace_get(second, "digest")};
    if (!g_str_equal(digests[0], digests[1])) {
        const char *titles[2] = {trace_get(first, "title"), trace_get(second, "title")};
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH,
                    "the traces are of different plans: %s (%s) and %s (%s); play the same plan "
                    "twice, or compare settings with foreshard plot --knob KEY=V,V",
                    titles[0] != NULL ? titles[0] : "no title", digests[0],
                    titles[1] != NULL ? titles[1] : "no title", digests[1]);
        return NULL;
    }
    const char *table = trace_differing_table(first, second);
    if (table != NULL) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH,
                    "the traces' tables of %s differ, so they come from different versions of "
                    "foreshard; record both with one",
                    table);
        return NULL;
    }
    g_autoptr(TraceComparison) comparison = g_new0(TraceComparison, 1);
    comparison->traces[0] = first;
    comparison->traces[1] = second;
    comparison->rows = g_array_new(FALSE, FALSE, sizeof(TraceCompareRow));
    name_sides(comparison);
    uint32_t pair[2];
    compare_ranks(comparison, pair);
    if (comparison->n_ranks == 0) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH,
                    "no rank of one trace plays a role that the other recorded; record rank 0 in "
                    "both");
        return NULL;
    }
    for (guint i = 0; i < TRACE_N_STATISTICS && comparison->n_compared > 0; i++) {
        comparison->memory[i].mean_bytes /= comparison->n_compared;
    }
    comparison->summaries[0] = trace_summary_new(first, pair[0]);
    comparison->summaries[1] = trace_summary_new(second, pair[1]);
    add_rows(comparison);
    trace_compare_find_worst(comparison);
    trace_compare_find_kept(comparison);
    return g_steal_pointer(&comparison);
}

void trace_comparison_free(TraceComparison *comparison) {
    if (comparison == NULL) {
        return;
    }
    trace_summary_free(comparison->summaries[0]);
    trace_summary_free(comparison->summaries[1]);
    g_array_unref(comparison->rows);
    g_clear_pointer(&comparison->worst_ops, g_array_unref);
    g_clear_pointer(&comparison->worst_units, g_array_unref);
    g_clear_pointer(&comparison->kept, g_array_unref);
    g_free(comparison);
}

const TraceCompareRow *trace_comparison_find(const TraceComparison *comparison,
                                             TraceCompareGroup group, const char *name) {
    for (guint i = 0; i < comparison->rows->len; i++) {
        const TraceCompareRow *row = &g_array_index(comparison->rows, TraceCompareRow, i);
        if (row->group == group && g_str_equal(row->name, name)) {
            return row;
        }
    }
    return NULL;
}
