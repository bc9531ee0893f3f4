/* Figures of a made-up play against answers worked out by hand, and exposure against counting. */
#include <math.h>

#include "tests/trace/toy-trace.h"
#include "trace/summary.h"

#define US 1000

static void times(void) {
    ToyOptions options = TOY_DEFAULT;
    options.n_ranks = 2;
    options.slower_us = 7;
    g_autoptr(Trace) trace = toy_trace(&options);
    g_autoptr(TraceSummary) summary = trace_summary_new(trace, 1);
    g_assert_cmpuint(summary->n_steps, ==, 5);
    g_assert_cmpint(summary->steps[0].step, ==, -1);
    for (int32_t number = 0; number < 4; number++) {
        const TraceStepSummary *step = trace_summary_step(summary, number);
        g_assert_cmpint(trace_step_time_ns(step), ==, 1007 * US);
        g_assert_cmpint(step->start_ns, ==, number * 1007 * US);
        g_assert_cmpint(step->phase_ns[0], ==, 607 * US);
        g_assert_cmpint(step->phase_ns[1], ==, 300 * US);
        g_assert_cmpint(step->phase_ns[2], ==, 100 * US);
        g_assert_cmpint(step->lane_ns[0], ==, 757 * US);
        g_assert_cmpint(step->lane_ns[1], ==, 300 * US);
        g_assert_cmpint(step->lane_ns[2], ==, 130 * US);
        g_assert_cmpuint(step->kinds[0].count, ==, 3);
        g_assert_cmpint(step->kinds[0].total_ns, ==, 707 * US);
        g_assert_cmpint(step->kinds[0].exposed_ns, ==, 0);
        g_assert_cmpint(step->kinds[1].total_ns, ==, 50 * US);
        g_assert_cmpuint(step->kinds[2].count, ==, 2);
        g_assert_cmpint(step->kinds[2].total_ns, ==, 300 * US);
        g_assert_cmpint(step->kinds[2].exposed_ns, ==, 100 * US);
        g_assert_cmpint(step->kinds[3].total_ns, ==, 130 * US);
        g_assert_cmpint(step->kinds[3].exposed_ns, ==, 50 * US);
        g_assert_cmpint(step->communication_ns, ==, 430 * US);
        g_assert_cmpint(step->exposed_ns, ==, 150 * US);
    }
    TraceKindTime steady = trace_summary_kind(summary, 2);
    g_assert_cmpuint(steady.count, ==, 2 * 2); /* of two steps */
    g_assert_cmpint(steady.total_ns, ==, 2 * 300 * US);
    g_assert_cmpint(steady.exposed_ns, ==, 2 * 100 * US);
    g_assert_true(trace_summary_has_kind(summary, 2));
    g_assert_false(trace_summary_is_steady(summary, 0));
    g_assert_false(trace_summary_is_steady(summary, 2));
    g_assert_true(trace_summary_is_steady(summary, 3));
    g_assert_false(trace_summary_step_is_steady(summary, -1));
    g_assert_false(trace_summary_step_is_steady(summary, 1));
    g_assert_true(trace_summary_step_is_steady(summary, 2));
    g_assert_null(trace_summary_new(trace, 2));
}

static void few_steps(void) {
    ToyOptions options = TOY_DEFAULT;
    options.steps = 2;
    g_autoptr(Trace) trace = toy_trace(&options);
    g_autoptr(TraceSummary) summary = trace_summary_new(trace, 0);
    g_assert_false(trace_summary_is_steady(summary, 0));
    g_assert_true(trace_summary_is_steady(summary, 1));
}

/* Twenty steady steps of 1 to 20 us, out of order; the first two are longer, and do not count. */
static void spread(void) {
    ToyOptions options = TOY_DEFAULT;
    options.steps = 22;
    g_autoptr(Trace) trace = toy_trace(&options);
    g_autoptr(TraceSummary) summary = trace_summary_new(trace, 0);
    for (guint i = 0; i < 20; i++) {
        TraceStepSummary *step = &summary->steps[summary->n_steps - 20 + i];
        step->end_ns = step->start_ns + (1 + 7 * i % 20) * US;
    }
    TraceSpread spread = trace_summary_spread(summary);
    g_assert_cmpuint(spread.n, ==, 20);
    g_assert_cmpfloat(spread.median_ns, ==, 10500);
    g_assert_cmpfloat(spread.p95_ns, ==, 19000);
    g_assert_cmpfloat(spread.least_ns, ==, 1000);
    g_assert_cmpfloat(spread.most_ns, ==, 20000);
    const TraceSummary none = {0};
    g_assert_cmpuint(trace_summary_spread(&none).n, ==, 0);
    g_assert_true(isnan(trace_summary_spread(&none).median_ns));
}

static void folded_categories(void) {
    g_autoptr(Trace) trace = trace_new();
    trace_add_category(trace, "activations/saved");
    trace_add_category(trace, "active");
    g_assert_true(trace_category_is(trace, 0, "activations"));
    g_assert_true(trace_category_is(trace, 0, "activations/saved"));
    g_assert_false(trace_category_is(trace, 0, "activation"));
    g_assert_false(trace_category_is(trace, 0, "activations/saved/more"));
    g_assert_true(trace_category_is(trace, 1, "active"));
    g_assert_false(trace_category_is(trace, 1, "activations"));
}

static void peaks(void) {
    ToyOptions options = TOY_DEFAULT;
    g_autoptr(Trace) trace = toy_trace(&options);
    g_autoptr(TraceSummary) summary = trace_summary_new(trace, 0);
    const TracePeak *peak = &summary->peaks[TRACE_ALLOCATED];
    g_assert_true(peak->known);
    g_assert_cmpuint(peak->bytes, ==, 7680);
    g_assert_cmpint(peak->step, ==, 0);
    g_assert_cmpint(peak->host_ns, ==, 620 * US);
    g_assert_cmpuint(peak->instruction, ==, 7);
    g_assert_cmpuint(peak->unit, ==, 1);
    g_assert_cmpuint(peak->phase, ==, 1);
    g_assert_cmpuint(peak->categories[0], ==, 4096);
    g_assert_cmpuint(peak->categories[1], ==, 2048);
    g_assert_cmpuint(peak->categories[2], ==, 512);
    g_assert_cmpuint(peak->categories[3], ==, 1024);
    g_assert_cmpuint(summary->peaks[TRACE_ACTIVE].bytes, ==, 7680);
    g_assert_cmpuint(summary->peaks[TRACE_RESERVED].bytes, ==, 8192);
    g_assert_cmpint(summary->peaks[TRACE_RESERVED].step, ==, -1);
    const TraceStepSummary *third = trace_summary_step(summary, 2);
    g_assert_cmpuint(third->peaks[TRACE_ALLOCATED].bytes, ==, 7680);
    g_assert_cmpint(third->peaks[TRACE_ALLOCATED].step, ==, 2);
    g_assert_cmpint(third->peaks[TRACE_ALLOCATED].host_ns, ==, 2620 * US);
    g_assert_cmpuint(third->peaks[TRACE_ALLOCATED].instruction, ==, 1 + 2 * 13 + 6);
    g_assert_cmpuint(summary->category_peaks[3], ==, 1024);
    g_assert_cmpuint(third->category_peaks[1], ==, 2048);
    g_assert_cmpuint(summary->n_memory_rows, ==, 25);
}

/* Random ops on all lanes, overlapping at will: each nanosecond is looked at. */
static void exposure_by_counting(void) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    ToyOptions options = TOY_DEFAULT;
    for (guint round = 0; round < 50; round++) {
        g_autoptr(Trace) trace = toy_trace(&options);
        g_array_set_size(trace->memory, 0);
        g_array_set_size(trace->ops, 0);
        enum {
            SPAN = 200
        };
        bool computing[SPAN] = {false}, communicating[SPAN] = {false};
        int64_t total_ns = 0, exposed_ns = 0, communication_ns = 0, bare_ns = 0;
        for (guint i = 0; i < 40; i++) {
            bool gathers = g_rand_boolean(rand);
            int64_t start_ns = g_rand_int_range(rand, 0, SPAN - 20);
            int64_t end_ns = start_ns + g_rand_int_range(rand, 0, 12);
            /* Instruction 2 gathers, 3 computes; a gather on the compute lane does not compute. */
            TraceOpRow row = {.instruction = gathers ? 2 : 3,
                              .lane = gathers ? (uint32_t)g_rand_int_range(rand, 0, 3) : 0,
                              .start_ns = start_ns,
                              .end_ns = end_ns};
            trace_add_op(trace, &row);
            for (int64_t t = start_ns; t < end_ns; t++) {
                *(gathers ? &communicating[t] : &computing[t]) = true;
            }
        }
        for (guint i = 0; i < trace->ops->len; i++) {
            const TraceOpRow *row = trace_op(trace, i);
            for (int64_t t = row->start_ns; row->instruction == 2 && t < row->end_ns; t++) {
                total_ns++;
                exposed_ns += !computing[t];
            }
        }
        for (guint t = 0; t < SPAN; t++) {
            communication_ns += communicating[t];
            bare_ns += communicating[t] && !computing[t];
        }
        g_autoptr(TraceSummary) summary = trace_summary_new(trace, 0);
        g_assert_cmpuint(summary->n_steps, ==, 1);
        const TraceStepSummary *step = &summary->steps[0];
        g_assert_cmpint(step->kinds[2].total_ns, ==, total_ns);
        g_assert_cmpint(step->kinds[2].exposed_ns, ==, exposed_ns);
        g_assert_cmpint(step->communication_ns, ==, communication_ns);
        g_assert_cmpint(step->exposed_ns, ==, bare_ns);
        int64_t phases_ns = step->phase_ns[0] + step->phase_ns[1] + step->phase_ns[2];
        g_assert_cmpint(phases_ns, ==, trace_step_time_ns(step));
    }
}

/* Instruction 3 of the toy becomes the host's own: its kind keeps its time, its lane loses it, and
 * what it hid is exposed. */
static void host_ops(void) {
    ToyOptions options = TOY_DEFAULT;
    options.steps = 1;
    g_autoptr(Trace) trace = toy_trace(&options);
    g_array_index(trace_instructions(trace, 0), TraceInstruction, 3).what = TRACE_HOST_OP;
    g_assert_true(trace_check(trace, NULL));
    g_autoptr(TraceSummary) summary = trace_summary_new(trace, 0);
    const TraceStepSummary *step = trace_summary_step(summary, 0);
    g_assert_cmpint(step->kinds[0].total_ns, ==, 700 * US);
    g_assert_cmpint(step->lane_ns[0], ==, 550 * US);
    g_assert_cmpint(step->kinds[2].exposed_ns, ==, 250 * US);
    g_assert_cmpint(trace_step_time_ns(step), ==, 1000 * US);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/trace/summary/times", times);
    g_test_add_func("/trace/summary/few-steps", few_steps);
    g_test_add_func("/trace/summary/spread", spread);
    g_test_add_func("/trace/summary/folded categories", folded_categories);
    g_test_add_func("/trace/summary/peaks", peaks);
    g_test_add_func("/trace/summary/exposure-by-counting", exposure_by_counting);
    g_test_add_func("/trace/summary/host-ops", host_ops);
    return g_test_run();
}
