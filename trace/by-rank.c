#include "trace/by-rank.h"

/* Rows of one kind, sorted by the place of their rank in the trace's table; those of one rank in
 * their order. */
typedef struct {
    guint *begins; /* by place: where in rows its own begin */
    guint *rows;   /* their numbers in the trace */
} Sorted;

struct _TraceByRank {
    const Trace *trace;
    GHashTable *places; /* rank: its place in trace->ranks */
    Sorted ops, memory;
    Trace alone; /* the tables are the trace's, ranks and rows its own */
};

static uint32_t rank_of_op(const Trace *trace, guint i) {
    return trace_op(trace, i)->rank;
}

static uint32_t rank_of_memory(const Trace *trace, guint i) {
    return trace_memory(trace, i)->rank;
}

static guint place_of(const TraceByRank *by_rank, uint32_t rank) {
    return GPOINTER_TO_UINT(g_hash_table_lookup(by_rank->places, GUINT_TO_POINTER(rank)));
}

static Sorted sort(const TraceByRank *by_rank, guint n, uint32_t (*rank_of)(const Trace *, guint)) {
    guint n_ranks = by_rank->trace->ranks->len;
    Sorted sorted = {g_new0(guint, n_ranks + 2), g_new(guint, MAX(1, n))};
    guint *ends = sorted.begins + 1; /* while rows come; then each is where the next rank begins */
    for (guint i = 0; i < n; i++) {
        ends[place_of(by_rank, rank_of(by_rank->trace, i)) + 1]++;
    }
    for (guint place = 0; place < n_ranks; place++) {
        ends[place + 1] += ends[place];
    }
    for (guint i = 0; i < n; i++) {
        sorted.rows[ends[place_of(by_rank, rank_of(by_rank->trace, i))]++] = i;
    }
    return sorted;
}

TraceByRank *trace_by_rank_new(const Trace *trace) {
    TraceByRank *by_rank = g_new0(TraceByRank, 1);
    by_rank->trace = trace;
    by_rank->places = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < trace->ranks->len; i++) {
        uint32_t rank = g_array_index(trace->ranks, TraceRank, i).rank;
        g_hash_table_insert(by_rank->places, GUINT_TO_POINTER(rank), GUINT_TO_POINTER(i));
    }
    by_rank->ops = sort(by_rank, trace->ops->len, rank_of_op);
    by_rank->memory = sort(by_rank, trace->memory->len, rank_of_memory);
    by_rank->alone = *trace;
    by_rank->alone.ranks = g_array_new(FALSE, FALSE, sizeof(TraceRank));
    by_rank->alone.ops = g_array_new(FALSE, FALSE, sizeof(TraceOpRow));
    by_rank->alone.memory = g_array_new(FALSE, FALSE, sizeof(TraceMemoryRow));
    return by_rank;
}

void trace_by_rank_free(TraceByRank *by_rank) {
    if (by_rank == NULL) {
        return;
    }
    g_hash_table_unref(by_rank->places);
    g_free(by_rank->ops.begins);
    g_free(by_rank->ops.rows);
    g_free(by_rank->memory.begins);
    g_free(by_rank->memory.rows);
    g_array_unref(by_rank->alone.ranks);
    g_array_unref(by_rank->alone.ops);
    g_array_unref(by_rank->alone.memory);
    g_free(by_rank);
}

const Trace *trace_by_rank_alone(TraceByRank *by_rank, guint i) {
    const Trace *trace = by_rank->trace;
    const Sorted *ops = &by_rank->ops, *memory = &by_rank->memory;
    Trace *alone = &by_rank->alone;
    g_assert(i < trace->ranks->len);
    g_array_set_size(alone->ranks, 0);
    g_array_set_size(alone->ops, 0);
    g_array_set_size(alone->memory, 0);
    g_array_append_val(alone->ranks, g_array_index(trace->ranks, TraceRank, i));
    for (guint k = ops->begins[i]; k < ops->begins[i + 1]; k++) {
        trace_add_op(alone, trace_op(trace, ops->rows[k]));
    }
    for (guint k = memory->begins[i]; k < memory->begins[i + 1]; k++) {
        trace_add_memory(alone, trace_memory(trace, memory->rows[k]));
    }
    return alone;
}

uint32_t trace_by_rank_role(const TraceByRank *by_rank, uint32_t rank) {
    gpointer place;
    bool is_there =
        g_hash_table_lookup_extended(by_rank->places, GUINT_TO_POINTER(rank), NULL, &place);
    return is_there ? g_array_index(by_rank->trace->ranks, TraceRank, GPOINTER_TO_UINT(place)).role
                    : TRACE_NONE;
}
