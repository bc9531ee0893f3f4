/* What errs most: ops and units by the difference of their times, buffers that one side keeps. */
#include <math.h>

#include "trace/compare/private.h"
#include "trace/quantile.h"

/* Time of a key (an instruction or a unit) within a step. */
typedef struct {
    uint32_t key;
    int32_t step;
    int64_t ns;
} Share;

static int compare_shares(gconstpointer a, gconstpointer b) {
    const Share *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key)
                            : (x->step > y->step) - (x->step < y->step);
}

typedef uint32_t KeyOf(const TraceInstruction *instruction, uint32_t number);

static uint32_t key_of_op(const TraceInstruction *instruction, uint32_t number) {
    return number;
}

static uint32_t key_of_unit(const TraceInstruction *instruction, uint32_t number) {
    return instruction->unit;
}

/* Of each key and steady step one share, in order of key and step. */
static GArray *find_shares(const Trace *trace, const TraceSummary *summary, KeyOf *key_of) {
    GArray *shares = g_array_new(FALSE, FALSE, sizeof(Share));
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (row->rank != summary->rank || !trace_summary_step_is_steady(summary, row->step)) {
            continue;
        }
        const TraceInstruction *instruction =
            trace_instruction(trace, summary->role, row->instruction);
        Share share = {key_of(instruction, row->instruction), row->step,
                       row->end_ns - row->start_ns};
        if (share.key != TRACE_NONE) {
            g_array_append_val(shares, share);
        }
    }
    g_array_sort(shares, compare_shares);
    guint kept = 0;
    for (guint i = 0; i < shares->len; i++) {
        Share share = g_array_index(shares, Share, i);
        Share *last = kept > 0 ? &g_array_index(shares, Share, kept - 1) : NULL;
        if (last != NULL && last->key == share.key && last->step == share.step) {
            last->ns += share.ns;
        } else {
            g_array_index(shares, Share, kept++) = share;
        }
    }
    g_array_set_size(shares, kept);
    return shares;
}

/* The median of each key's shares, by key; 0 where there are none. */
static double *find_medians(const Trace *trace, const TraceSummary *summary, KeyOf *key_of,
                            guint n_keys) {
    double *medians = g_new0(double, MAX(1, n_keys));
    g_autoptr(GArray) shares = find_shares(trace, summary, key_of);
    g_autoptr(GArray) values = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < shares->len;) {
        uint32_t key = g_array_index(shares, Share, i).key;
        g_array_set_size(values, 0);
        for (; i < shares->len && g_array_index(shares, Share, i).key == key; i++) {
            double ns = (double)g_array_index(shares, Share, i).ns;
            g_array_append_val(values, ns);
        }
        medians[key] = trace_median_of(values);
    }
    return medians;
}

static int compare_worst(gconstpointer a, gconstpointer b) {
    const TraceCompareWorst *x = a, *y = b;
    double by_x = fabs(x->value[0] - x->value[1]), by_y = fabs(y->value[0] - y->value[1]);
    return by_x != by_y ? (by_x < by_y) - (by_x > by_y)
                        : (x->number > y->number) - (x->number < y->number);
}

static GArray *find_worst(const TraceComparison *comparison, KeyOf *key_of, guint n_keys) {
    g_autofree double *first =
        find_medians(comparison->traces[0], comparison->summaries[0], key_of, n_keys);
    g_autofree double *second =
        find_medians(comparison->traces[1], comparison->summaries[1], key_of, n_keys);
    GArray *worst = g_array_new(FALSE, FALSE, sizeof(TraceCompareWorst));
    for (guint i = 0; i < n_keys; i++) {
        if (first[i] != second[i]) {
            TraceCompareWorst entry = {
                i, {first[i], second[i]}, trace_compare_relative(first[i], second[i])};
            g_array_append_val(worst, entry);
        }
    }
    g_array_sort(worst, compare_worst);
    g_array_set_size(worst, MIN(worst->len, TRACE_COMPARE_N_WORST));
    return worst;
}

void trace_compare_find_worst(TraceComparison *comparison) {
    const Trace *trace = comparison->traces[0];
    guint n_ops = trace_instructions(trace, comparison->summaries[0]->role)->len;
    comparison->worst_ops = find_worst(comparison, key_of_op, n_ops);
    comparison->worst_units = find_worst(comparison, key_of_unit, trace->units->len);
}

/* Buffer: 1 + the instruction that allocated it, of what a rank holds when a step has ended. */
static GHashTable *find_held(const Trace *trace, const TraceSummary *summary, int32_t last_step) {
    GHashTable *held = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank != summary->rank || row->step > last_step) {
            continue;
        }
        const TraceInstruction *instruction =
            trace_instruction(trace, summary->role, row->instruction);
        if (instruction->what == TRACE_ALLOC) {
            g_hash_table_insert(held, GUINT_TO_POINTER(instruction->buffer),
                                GUINT_TO_POINTER(row->instruction + 1));
        } else {
            g_hash_table_remove(held, GUINT_TO_POINTER(instruction->buffer));
        }
    }
    return held;
}

static int compare_kept(gconstpointer a, gconstpointer b) {
    const TraceCompareKept *x = a, *y = b;
    return x->side != y->side
               ? (x->side > y->side) - (x->side < y->side)
               : (x->instruction > y->instruction) - (x->instruction < y->instruction);
}

void trace_compare_find_kept(TraceComparison *comparison) {
    int32_t last_step = INT32_MAX;
    for (guint side = 0; side < 2; side++) {
        const TraceSummary *summary = comparison->summaries[side];
        last_step =
            MIN(last_step, summary->n_steps > 0 ? summary->steps[summary->n_steps - 1].step : -1);
    }
    GHashTable *held[2];
    for (guint side = 0; side < 2; side++) {
        held[side] = find_held(comparison->traces[side], comparison->summaries[side], last_step);
    }
    comparison->kept = g_array_new(FALSE, FALSE, sizeof(TraceCompareKept));
    for (guint side = 0; side < 2; side++) {
        GHashTableIter iter;
        gpointer buffer, allocated_by;
        g_hash_table_iter_init(&iter, held[side]);
        while (g_hash_table_iter_next(&iter, &buffer, &allocated_by)) {
            if (!g_hash_table_contains(held[1 - side], buffer)) {
                TraceCompareKept kept = {side, GPOINTER_TO_UINT(allocated_by) - 1};
                g_array_append_val(comparison->kept, kept);
            }
        }
    }
    g_array_sort(comparison->kept, compare_kept);
    g_hash_table_unref(held[0]);
    g_hash_table_unref(held[1]);
}
