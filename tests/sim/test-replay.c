/* A play's memory again, from its recorded answers: equal, and every way in which it may not be. */
#include <glib.h>
#include <string.h>

#include "memory/answers.h"
#include "sim/predict.h"
#include "sim/replay.h"
#include "tests/sim/toy.h"
#include "trace/ended.h"

static ModelCluster *a100(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path =
        g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), "a100-node.ini", NULL);
    ModelCluster *cluster = model_cluster_read_file(path, &error);
    g_assert_no_error(error);
    return cluster;
}

/* What a play leaves, be it on a machine or, as here, predicted: rows and answers. limit_bytes: of
 * the allocator's memory. */
static Trace *played_within(const Plan *plan, uint64_t limit_bytes, bool fits) {
    g_autoptr(ModelCluster) cluster = a100();
    cluster->device_memory_bytes = limit_bytes + model_cluster_outside_bytes(cluster);
    g_autoptr(MemoryAnswers) answers = memory_answers_new();
    g_autoptr(GError) error = NULL;
    const SimOptions options = {.steps = 4, .answers = answers};
    Trace *trace = trace_new();
    g_autoptr(SimPrediction) prediction = sim_predict(plan, cluster, &options, trace, &error);
    g_assert_no_error(error);
    g_assert_cmpint(prediction->fits, ==, fits);
    g_assert_true(!fits || memory_answers_count(answers) > 0);
    g_autofree char *text = memory_answers_text(answers);
    trace_set(trace, "answers.0", text);
    trace_set_uint(trace, "memory_limit_bytes", limit_bytes);
    return trace;
}

static Trace *played(const Plan *plan) {
    return played_within(plan, UINT64_C(1) << 30, true);
}

static Plan *marking_plan(void) {
    return toy_network_plan("gpt-toy", "ranks=2 flavour=fsdp1 limit_all_gathers=0");
}

static SimReplay replayed(const Plan *plan, const Trace *trace) {
    g_autoptr(GError) error = NULL;
    SimReplay replay;
    bool ok = sim_replay(plan, trace, 0, &replay, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    return replay;
}

static void test_equal(void) {
    g_autoptr(Plan) plan = marking_plan();
    g_autoptr(Trace) trace = played(plan);
    SimReplay replay = replayed(plan, trace);
    g_assert_true(replay.equal);
    g_assert_cmpuint(replay.n_rows, ==, trace->memory->len);
}

static TraceMemoryRow *row_of(Trace *trace, guint i) {
    return &g_array_index(trace->memory, TraceMemoryRow, i);
}

/* One number of one row is another. */
static void test_changed(void) {
    g_autoptr(Plan) plan = marking_plan();
    g_autoptr(Trace) trace = played(plan);
    guint i = trace->memory->len / 2;
    uint64_t *const numbers[] = {&row_of(trace, i)->allocated, &row_of(trace, i)->active,
                                 &row_of(trace, i)->reserved};
    for (unsigned k = 0; k < G_N_ELEMENTS(numbers); k++) {
        *numbers[k] += 512;
        SimReplay replay = replayed(plan, trace);
        *numbers[k] -= 512;
        g_assert_false(replay.equal);
        g_assert_cmpuint(replay.n_rows, ==, i + 1);
        g_assert_true(replay.has_measured && replay.has_replayed);
        g_assert_cmpuint(replay.measured.instruction, ==, replay.replayed.instruction);
    }
    row_of(trace, i)->step++;
    g_assert_false(replayed(plan, trace).equal);
    row_of(trace, i)->step--;
    g_assert_true(replayed(plan, trace).equal);
}

/* One in the middle is missing, all but the first few are, none is there. */
static void test_missing(void) {
    g_autoptr(Plan) plan = marking_plan();
    g_autoptr(Trace) trace = played(plan);
    guint i = trace->memory->len / 2;
    g_array_remove_index(trace->memory, i);
    SimReplay without_one = replayed(plan, trace);
    g_assert_false(without_one.equal);
    g_assert_cmpuint(without_one.n_rows, ==, i + 1);
    for (guint left = 31;; left -= 31) {
        g_array_set_size(trace->memory, left);
        SimReplay cut = replayed(plan, trace);
        g_assert_false(cut.equal);
        g_assert_cmpuint(cut.n_rows, ==, left + 1);
        g_assert_true(cut.has_replayed && !cut.has_measured);
        if (!left) {
            break;
        }
    }
}

/* The last stands twice; another rank's rows count for nothing. */
static void test_too_many(void) {
    g_autoptr(Plan) plan = marking_plan();
    g_autoptr(Trace) trace = played(plan);
    TraceMemoryRow last = *row_of(trace, trace->memory->len - 1);
    guint n = trace->memory->len;
    g_array_append_val(trace->memory, last);
    SimReplay more = replayed(plan, trace);
    g_assert_false(more.equal);
    g_assert_cmpuint(more.n_rows, ==, n + 1);
    g_assert_true(more.has_measured && !more.has_replayed);
    row_of(trace, n)->rank = 1;
    g_assert_true(replayed(plan, trace).equal);
}

/* Up to where memory ran out: in the first step, or later; and nowhere else. */
static void test_ran_out(void) {
    g_autoptr(Plan) plan = toy_network_plan("t5-toy", "ranks=2 flavour=fsdp1 limit_all_gathers=0");
    for (uint64_t limit = 2 << 20; limit <= 6 << 20; limit += 2 << 20) {
        g_autoptr(Trace) trace = played_within(plan, limit, false);
        TraceOom oom;
        g_assert_true(trace_get_oom(trace, &oom) && oom.step == (limit > 4 << 20));
        SimReplay replay = replayed(plan, trace);
        g_assert_true(replay.equal && replay.ran_out);
        g_assert_cmpuint(replay.n_rows, ==, trace->memory->len);
        trace_set_uint(trace, "memory_limit_bytes", limit + (1 << 30));
        g_assert_false(replayed(plan, trace).equal);
    }
    g_autoptr(Trace) whole = played(plan);
    trace_set_uint(whole, "memory_limit_bytes", 4 << 20);
    SimReplay with_less = replayed(plan, whole);
    g_assert_false(with_less.equal);
    g_assert_true(with_less.has_measured && !with_less.has_replayed);
}

static void assert_refused(const Plan *plan, const Trace *trace, const char *words) {
    g_autoptr(GError) error = NULL;
    SimReplay replay;
    g_assert_false(sim_replay(plan, trace, 0, &replay, &error));
    g_assert_nonnull(error);
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, words));
}

/* What no record of a play can be. */
static void test_refused(void) {
    g_autoptr(Plan) plan = marking_plan(), other = toy_network_plan("gpt-toy", "ranks=2");
    g_autoptr(Plan) arena =
        toy_network_plan("gpt-toy", "ranks=2 flavour=fsdp1 limit_all_gathers=0 allocator=arena");
    g_autoptr(Trace) trace = played(plan);
    assert_refused(other, trace, "no measured play of rank 0 of this plan");
    trace_set(trace, "digest", plan_digest(arena));
    assert_refused(arena, trace, "allocator=arena");
    trace_set(trace, "digest", plan_digest(plan));
    trace_set(trace, "answers.0", "1");
    g_autoptr(GError) error = NULL;
    SimReplay replay;
    bool ok = sim_replay(plan, trace, 0, &replay, &error);
    g_assert_true(!ok || !replay.equal);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/replay/equal", test_equal);
    g_test_add_func("/sim/replay/a number is another", test_changed);
    g_test_add_func("/sim/replay/a row is missing", test_missing);
    g_test_add_func("/sim/replay/a row too many", test_too_many);
    g_test_add_func("/sim/replay/memory ran out", test_ran_out);
    g_test_add_func("/sim/replay/refused", test_refused);
    return g_test_run();
}
