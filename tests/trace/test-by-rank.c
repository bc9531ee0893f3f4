/* Each rank of a trace alone: its own rows in their order, and the figures it has among all. */
#include "tests/trace/toy-trace.h"
#include "trace/by-rank.h"
#include "trace/summary.h"

static const uint32_t table[] = {7, 0, 1000000};

static void rename_rank(Trace *part, uint32_t rank) {
    g_array_index(part->ranks, TraceRank, 0).rank = rank;
    for (guint i = 0; i < part->ops->len; i++) {
        g_array_index(part->ops, TraceOpRow, i).rank = rank;
    }
    for (guint i = 0; i < part->memory->len; i++) {
        g_array_index(part->memory, TraceMemoryRow, i).rank = rank;
    }
}

/* Three ranks, each as slow as its place says, whose rows come by turns. */
static Trace *by_turns(Trace **ret_parts) {
    Trace *all = NULL;
    for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
        ToyOptions options = TOY_DEFAULT;
        options.slower_us = 10 * i;
        ret_parts[i] = toy_trace_rank(&options, 0);
        rename_rank(ret_parts[i], table[i]);
        g_autoptr(Trace) copy = toy_trace_rank(&options, 0);
        rename_rank(copy, table[i]);
        if (all == NULL) {
            all = g_steal_pointer(&copy);
            g_array_set_size(all->ops, 0);
            g_array_set_size(all->memory, 0);
        } else {
            trace_add_rank(all, table[i], 0);
        }
    }
    for (guint row = 0; row < ret_parts[0]->memory->len; row++) {
        for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
            trace_add_memory(all, trace_memory(ret_parts[i], row));
        }
    }
    for (guint row = 0; row < ret_parts[0]->ops->len; row++) {
        for (guint i = G_N_ELEMENTS(table); i-- > 0;) {
            trace_add_op(all, trace_op(ret_parts[i], row));
        }
    }
    g_assert_true(trace_check(all, NULL));
    return all;
}

static void assert_same_rows(const Trace *alone, const Trace *part) {
    g_assert_cmpmem(alone->ops->data, alone->ops->len * sizeof(TraceOpRow), part->ops->data,
                    part->ops->len * sizeof(TraceOpRow));
    g_assert_cmpmem(alone->memory->data, alone->memory->len * sizeof(TraceMemoryRow),
                    part->memory->data, part->memory->len * sizeof(TraceMemoryRow));
}

static void alone(void) {
    Trace *parts[G_N_ELEMENTS(table)];
    g_autoptr(Trace) all = by_turns(parts);
    g_autoptr(TraceByRank) by_rank = trace_by_rank_new(all);
    for (guint i = G_N_ELEMENTS(table); i-- > 0;) {
        const Trace *one = trace_by_rank_alone(by_rank, i);
        g_assert_true(trace_check(one, NULL));
        g_assert_cmpuint(one->ranks->len, ==, 1);
        g_assert_cmpuint(g_array_index(one->ranks, TraceRank, 0).rank, ==, table[i]);
        assert_same_rows(one, parts[i]);
        g_autoptr(TraceSummary) among_all = trace_summary_new(all, table[i]);
        g_autoptr(TraceSummary) by_itself = trace_summary_new(one, table[i]);
        g_assert_cmpfloat(trace_summary_spread(by_itself).median_ns, ==, 1e6 + 1e4 * i);
        g_assert_cmpfloat(trace_summary_spread(among_all).median_ns, ==, 1e6 + 1e4 * i);
        g_assert_cmpuint(trace_by_rank_role(by_rank, table[i]), ==, 0);
        trace_free(parts[i]);
    }
    g_assert_cmpuint(trace_by_rank_role(by_rank, 1), ==, TRACE_NONE);
}

/* A rank that left no rows, and a trace without ranks. */
static void empty(void) {
    ToyOptions options = TOY_DEFAULT;
    g_autoptr(Trace) trace = toy_trace(&options), none = trace_new();
    trace_add_rank(trace, 5, 0);
    g_autoptr(TraceByRank) by_rank = trace_by_rank_new(trace);
    const Trace *silent = trace_by_rank_alone(by_rank, 1);
    g_assert_cmpuint(silent->ops->len + silent->memory->len, ==, 0);
    assert_same_rows(trace_by_rank_alone(by_rank, 0), trace);
    g_autoptr(TraceByRank) of_none = trace_by_rank_new(none);
    g_assert_cmpuint(trace_by_rank_role(of_none, 0), ==, TRACE_NONE);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/trace/by rank/alone", alone);
    g_test_add_func("/trace/by rank/empty", empty);
    return g_test_run();
}
