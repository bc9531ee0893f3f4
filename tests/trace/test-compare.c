/* Two plays of one plan: what is planted in the second is found, and nothing else. */
#include <math.h>
#include <string.h>

#include "tests/trace/toy-trace.h"
#include "trace/compare/compare.h"

static ToyOptions measured_options(void) {
    ToyOptions options = TOY_DEFAULT;
    options.side = "measured";
    options.n_ranks = 2;
    return options;
}

static void equal(void) {
    ToyOptions options = TOY_DEFAULT, other = measured_options();
    g_autoptr(Trace) first = toy_trace(&options);
    g_autoptr(Trace) second = toy_trace(&other);
    g_autoptr(GError) error = NULL;
    g_autoptr(TraceComparison) comparison = trace_compare(first, second, &error);
    g_assert_no_error(error);
    /* Rank 1 of the measured side is held against rank 0, which plays its role. */
    g_assert_cmpuint(comparison->n_ranks, ==, 2);
    g_assert_cmpuint(comparison->n_compared, ==, 50);
    g_assert_cmpuint(comparison->n_unpaired, ==, 0);
    for (guint i = 0; i < TRACE_N_STATISTICS; i++) {
        g_assert_cmpuint(comparison->memory[i].differing, ==, 0);
        g_assert_cmpfloat(comparison->memory[i].largest_bytes, ==, 0);
    }
    for (guint i = 0; i < comparison->rows->len; i++) {
        g_assert_cmpfloat(g_array_index(comparison->rows, TraceCompareRow, i).error, ==, 0);
    }
    g_autofree char *verdict = trace_comparison_verdict(comparison);
    g_assert_cmpstr(verdict, ==,
                    "allocated equal at all 50 instructions, active equal at all 50 instructions, "
                    "reserved equal at all 50 instructions; peak reserved equal; step time equal "
                    "(predicted 1.000 ms, measured 1.000 ms)");
}

static void planted_time(void) {
    ToyOptions options = TOY_DEFAULT, other = measured_options();
    other.slower_us = 250;
    other.steps = 5;
    g_autoptr(Trace) first = toy_trace(&options);
    g_autoptr(Trace) second = toy_trace(&other);
    /* The last step of the measured side is longer still, which a median does not see. */
    TraceOpRow *last = &g_array_index(second->ops, TraceOpRow, 5 * 7 - 1);
    g_assert_cmpuint(last->rank, ==, 0);
    last->end_ns += 1000000;
    g_autoptr(TraceComparison) comparison = trace_compare(first, second, NULL);
    const TraceCompareRow *step = trace_comparison_find(comparison, TRACE_COMPARE_STEP, "step");
    g_assert_cmpfloat(step->value[0], ==, 1e6);
    g_assert_cmpfloat(step->value[1], ==, 1.25e6);
    g_assert_cmpfloat(step->high[1], ==, 2.25e6);
    g_assert_cmpfloat_with_epsilon(step->error, -0.2, 1e-12);
    const TraceCompareRow *forward =
        trace_comparison_find(comparison, TRACE_COMPARE_PHASE, "forward");
    g_assert_cmpfloat(forward->value[1] - forward->value[0], ==, 250e3);
    g_assert_cmpfloat(trace_comparison_find(comparison, TRACE_COMPARE_PHASE, "backward")->error, ==,
                      0);
    g_assert_cmpfloat(trace_comparison_find(comparison, TRACE_COMPARE_LANE, "reduce")->error, ==,
                      0);
    g_assert_cmpfloat(
        trace_comparison_find(comparison, TRACE_COMPARE_COLLECTIVE, "all_gather")->value[1], ==,
        300e3);
    g_assert_cmpfloat(
        trace_comparison_find(comparison, TRACE_COMPARE_COLLECTIVE_EXPOSED, "all_gather")->value[1],
        ==, 100e3);
    g_assert_cmpfloat_with_epsilon(
        trace_comparison_find(comparison, TRACE_COMPARE_OP, "linear")->error, -250. / 950, 1e-12);
    g_assert_cmpfloat(
        trace_comparison_find(comparison, TRACE_COMPARE_COLLECTIVE_HIDDEN, "all_gather")->value[1],
        ==, 200e3);
    /* Of seven ops a step, and of two units with three each, one errs: that which was slowed. */
    g_assert_cmpuint(comparison->worst_ops->len, ==, 1);
    const TraceCompareWorst *op = &g_array_index(comparison->worst_ops, TraceCompareWorst, 0);
    g_assert_cmpuint(op->number, ==, 27 + 5);
    g_assert_cmpfloat(op->value[0], ==, 250e3);
    g_assert_cmpfloat(op->value[1], ==, 500e3);
    g_assert_cmpuint(comparison->worst_units->len, ==, 1);
    const TraceCompareWorst *unit = &g_array_index(comparison->worst_units, TraceCompareWorst, 0);
    g_assert_cmpuint(unit->number, ==, 1);
    g_assert_cmpfloat(unit->value[0], ==, 250e3 + 250e3 + 200e3 + 130e3);
    g_assert_cmpfloat(unit->error, <, -0.2);
    g_assert_cmpfloat(trace_comparison_find(comparison, TRACE_COMPARE_PEAK, "allocated")->error, ==,
                      0);
    g_autofree char *verdict = trace_comparison_verdict(comparison);
    g_assert_nonnull(strstr(verdict, "step time -20.0 % (predicted 1.000 ms, measured 1.250 ms)"));
    g_assert_nonnull(strstr(verdict, "worst op: linear, forward of unit blocks.0"));
    g_autofree char *text = trace_comparison_text(comparison);
    g_assert_nonnull(strstr(text, "worst ops ("));
    g_assert_nonnull(strstr(text, "worst units, all their ops ("));
    g_assert_nonnull(strstr(text, "     error"));
    g_assert_null(strstr(text, "differ by"));
    /* Step 4 was recorded by one side only, which is no difference. */
    g_assert_cmpuint(comparison->n_compared, ==, 50);
    g_assert_cmpuint(comparison->n_unpaired, ==, 0);
}

static void other_settings(void) {
    ToyOptions options = TOY_DEFAULT, other = measured_options();
    g_autoptr(Trace) first = toy_trace(&options);
    g_autoptr(Trace) second = toy_trace(&other);
    trace_set(second, "strategy", "fsdp2 full lr=0.1");
    g_autoptr(TraceComparison) comparison = trace_compare(first, second, NULL);
    g_autofree char *text = trace_comparison_text(comparison);
    g_assert_nonnull(strstr(text, "\nsettings differ that change no instruction: "
                                  "predicted has none; measured lr=0.1\n"));
}

/* Of two predictions neither is the other's error. */
static void two_predictions(void) {
    ToyOptions options = TOY_DEFAULT;
    g_autoptr(Trace) first = toy_trace(&options);
    options.slower_us = 250;
    g_autoptr(Trace) second = toy_trace(&options);
    g_autoptr(TraceComparison) comparison = trace_compare(first, second, NULL);
    g_autofree char *text = trace_comparison_text(comparison);
    g_assert_nonnull(strstr(text, "differ by"));
    g_assert_null(strstr(text, "error"));
}

static void planted_memory(void) {
    ToyOptions options = TOY_DEFAULT, other = measured_options();
    other.wrong_from = 3;
    g_autoptr(Trace) first = toy_trace(&options);
    g_autoptr(Trace) second = toy_trace(&other);
    g_assert_true(trace_check(second, NULL));
    g_autoptr(TraceComparison) comparison = trace_compare(first, second, NULL);
    const TraceCompareMemory *allocated = &comparison->memory[TRACE_ALLOCATED];
    g_assert_cmpuint(allocated->differing, ==, 22);
    g_assert_cmpuint(allocated->rank, ==, 0);
    g_assert_cmpint(allocated->step, ==, 0);
    g_assert_cmpuint(allocated->instruction, ==, 7);
    g_assert_cmpuint(allocated->value[0], ==, 7680);
    g_assert_cmpuint(allocated->value[1], ==, 7936);
    g_assert_cmpfloat(allocated->largest_bytes, ==, 256);
    g_assert_cmpfloat_with_epsilon(allocated->mean_bytes, 256. * 22 / 50, 1e-9);
    g_assert_cmpuint(comparison->memory[TRACE_RESERVED].differing, ==, 0);
    g_assert_cmpfloat_with_epsilon(
        trace_comparison_find(comparison, TRACE_COMPARE_PEAK, "allocated")->error, -256. / 7936,
        1e-12);
    g_autofree char *text = trace_comparison_text(comparison);
    g_test_message("%s", text);
    g_assert_nonnull(strstr(text, "first: rank 0, step 0, backward of unit blocks.0, instruction 7 "
                                  "(alloc): predicted 7680 B, measured 7936 B"));
    g_assert_nonnull(strstr(text, "reserved   equal at all of them"));
    g_autofree char *verdict = trace_comparison_verdict(comparison);
    g_assert_nonnull(strstr(verdict, "allocated differs at 22 of 50"));
}

/* What was gathered for the embedding is not freed in the last step. */
static void planted_leak(void) {
    ToyOptions options = TOY_DEFAULT, other = measured_options();
    other.leaks = true;
    other.n_ranks = 1;
    g_autoptr(Trace) first = toy_trace(&options);
    g_autoptr(Trace) second = toy_trace(&other);
    g_assert_true(trace_check(second, NULL));
    g_autoptr(TraceComparison) comparison = trace_compare(first, second, NULL);
    g_assert_cmpuint(comparison->kept->len, ==, 1);
    const TraceCompareKept *kept = &g_array_index(comparison->kept, TraceCompareKept, 0);
    g_assert_cmpuint(kept->side, ==, 1);
    g_assert_cmpuint(kept->instruction, ==, 27); /* the first of the steady section */
    g_autofree char *text = trace_comparison_text(comparison);
    g_assert_nonnull(strstr(text, "measured   communication/gather, 1024 B, allocated in forward "
                                  "of unit embedding (instruction 27)"));
    g_autofree char *verdict = trace_comparison_verdict(comparison);
    g_assert_nonnull(strstr(verdict, "measured keeps 1 buffer that the other frees"));
    g_assert_nonnull(strstr(verdict, "1 instruction without a counterpart"));
    g_assert_cmpfloat(comparison->memory[TRACE_ALLOCATED].largest_bytes, ==, 1024);
}

static void missing_row(void) {
    ToyOptions options = TOY_DEFAULT, other = measured_options();
    g_autoptr(Trace) first = toy_trace(&options);
    g_autoptr(Trace) second = toy_trace(&other);
    g_array_remove_index(second->memory, 3);
    g_autoptr(TraceComparison) comparison = trace_compare(first, second, NULL);
    g_assert_cmpuint(comparison->n_compared, ==, 49);
    g_assert_cmpuint(comparison->n_unpaired, ==, 1);
    g_autofree char *verdict = trace_comparison_verdict(comparison);
    g_assert_nonnull(strstr(verdict, "1 instruction without a counterpart"));
    g_assert_null(strstr(verdict, "equal at all"));
}

static void refuses(void) {
    ToyOptions options = TOY_DEFAULT, other = measured_options();
    other.digest = "sha256:4567";
    g_autoptr(Trace) first = toy_trace(&options);
    g_autoptr(Trace) second = toy_trace(&other);
    g_autoptr(GError) error = NULL;
    g_assert_null(trace_compare(first, second, &error));
    g_assert_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH);
    g_assert_nonnull(strstr(error->message, "sha256:4567"));
    g_clear_error(&error);
    trace_set(second, "digest", options.digest);
    trace_add_kind(second, "new_op", TRACE_KIND_COMPUTE);
    g_assert_null(trace_compare(first, second, &error));
    g_assert_error(error, TRACE_ERROR, TRACE_ERROR_MISMATCH);
    g_assert_nonnull(strstr(error->message, "kinds"));
}

static void json(void) {
    ToyOptions options = TOY_DEFAULT, other = measured_options();
    other.wrong_from = 3;
    other.slower_us = 250;
    other.leaks = true;
    g_autoptr(Trace) first = toy_trace(&options);
    g_autoptr(Trace) second = toy_trace(&other);
    g_autoptr(TraceComparison) comparison = trace_compare(first, second, NULL);
    g_autoptr(JsonNode) root = trace_comparison_json(comparison);
    JsonObject *object = json_node_get_object(root);
    JsonObject *memory = json_object_get_object_member(object, "memory");
    JsonObject *allocated = json_object_get_object_member(memory, "allocated");
    /* 22 rows of rank 0 less the missing one, and the 2 of rank 1 that follow its leak. */
    g_assert_cmpint(json_object_get_int_member(allocated, "differing"), ==, 23);
    JsonObject *at = json_object_get_object_member(allocated, "first_difference");
    g_assert_cmpint(json_object_get_int_member(at, "instruction"), ==, 7);
    JsonArray *rows = json_object_get_array_member(object, "rows");
    g_assert_cmpuint(json_array_get_length(rows), ==, comparison->rows->len);
    JsonObject *step = json_array_get_object_element(rows, 0);
    g_assert_cmpstr(json_object_get_string_member(step, "unit"), ==, "ns");
    g_assert_cmpint(json_object_get_int_member(step, "first"), ==, 1000000);
    JsonArray *ops = json_object_get_array_member(object, "worst_ops");
    g_assert_cmpuint(json_array_get_length(ops), ==, 1);
    JsonObject *op = json_array_get_object_element(ops, 0);
    g_assert_cmpstr(json_object_get_string_member(op, "name"), ==,
                    "linear, forward of unit blocks.0, module a \"quoted\\name\"");
    g_assert_cmpint(json_object_get_int_member(op, "second_ns"), ==, 500000);
    JsonArray *kept = json_object_get_array_member(object, "kept_by_one_side");
    g_assert_cmpuint(json_array_get_length(kept), ==, 1);
    JsonArray *peaks = json_object_get_array_member(object, "peaks");
    JsonObject *peak =
        json_object_get_object_member(json_array_get_object_element(peaks, 1), "allocated");
    g_assert_cmpint(json_object_get_int_member(peak, "bytes"), ==, 7936);
    g_assert_cmpstr(json_object_get_string_member(peak, "unit"), ==, "blocks.0");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/trace/compare/equal", equal);
    g_test_add_func("/trace/compare/planted-time", planted_time);
    g_test_add_func("/trace/compare/other-settings", other_settings);
    g_test_add_func("/trace/compare/two-predictions", two_predictions);
    g_test_add_func("/trace/compare/planted-memory", planted_memory);
    g_test_add_func("/trace/compare/planted-leak", planted_leak);
    g_test_add_func("/trace/compare/missing-row", missing_row);
    g_test_add_func("/trace/compare/refuses", refuses);
    g_test_add_func("/trace/compare/json", json);
    return g_test_run();
}
