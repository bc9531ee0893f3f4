/* `foreshard rehearse`: rank 3 of 8 by itself, with the memory that is predicted and collectives
 * that last as long as the cluster's network takes. Arguments: foreshard.
 */
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>

#include "tests/exec/runs.h"
#include "trace/summary.h"

/* The ranks of these are alike, so that what is predicted (rank 0) is rank 3's as well. */
static const char *const plans[] = {
    "gpt-toy -n 8 --cluster a100-node",
    "gpt-toy -n 16 --cluster two-nodes-ethernet",
    "gpt-toy -n 8 --micro-batch 4 --wrap whole --checkpointing full --cluster a100-node",
    "gpt-toy -n 8 --sharding none --bucket-mb 0.05 --clip 1 --cluster a100-node",
    "gpt-toy -n 8 --sharding hybrid --replicate 2 --accumulate 2 --cluster a100-node",
    "gpt-toy -n 8 --param-dtype bf16 --reduce-dtype fp32 --clip 1 --cluster a100-node",
    "gpt-toy -n 8 --param-dtype fp16 --cluster a100-node",
    "llama-toy -n 8 --reshard-after-forward 2 --kernels fused --cluster a100-node",
    "llama-toy -n 8 --param-dtype bf16 --kernels compiled --float8 tensorwise --float8-gather yes "
    "--cluster dgx-h100",
    "llama-toy -n 8 --param-dtype bf16 --kernels compiled --float8 rowwise --tensor 2 "
    "--micro-batch "
    "2 --cluster dgx-h100",
    "llama-toy -n 8 --param-dtype bf16 --kernels compiled --tensor 2 --async-tensor yes "
    "--micro-batch 2 --cluster dgx-h100",
    "mlp-toy -n 8 --optimizer sgd --cluster a100-node",
    "moe-toy -n 8 --network-key routing=in-turn --expert 2 --micro-batch 3 --cluster a100-node",
};

static void memory_is_equal(const Trace *predicted, const Trace *rehearsed) {
    g_assert_cmpuint(rehearsed->memory->len, ==, predicted->memory->len);
    g_assert_cmpuint(rehearsed->memory->len, >, 100);
    for (guint i = 0; i < predicted->memory->len; i++) {
        const TraceMemoryRow *p = trace_memory(predicted, i), *r = trace_memory(rehearsed, i);
        g_assert_cmpuint(r->rank, ==, 3);
        g_assert_cmpint(r->step, ==, p->step);
        g_assert_cmpuint(r->instruction, ==, p->instruction);
        g_assert_cmpuint(r->allocated, ==, p->allocated);
        g_assert_cmpuint(r->active, ==, p->active);
        g_assert_cmpuint(r->reserved, ==, p->reserved);
    }
}

static bool is_collective(const Trace *trace, const TraceOpRow *row) {
    uint32_t role = trace_role_of_rank(trace, row->rank);
    uint32_t kind = trace_instruction(trace, role, row->instruction)->kind;
    return trace_kind(trace, kind)->kind_class == TRACE_KIND_COLLECTIVE;
}

/* A prediction may have collectives slow each other; a stand-in lasts as long as one alone. */
static void collectives_last(const Trace *alone, const Trace *rehearsed) {
    unsigned n = 0;
    g_assert_cmpuint(rehearsed->ops->len, ==, alone->ops->len);
    for (guint i = 0; i < alone->ops->len; i++) {
        const TraceOpRow *p = trace_op(alone, i), *r = trace_op(rehearsed, i);
        g_assert_cmpuint(r->instruction, ==, p->instruction);
        if (is_collective(rehearsed, r)) {
            g_assert_cmpint(r->end_ns - r->start_ns, >=, p->end_ns - p->start_ns);
            n++;
        }
    }
    g_assert_cmpuint(n, >, 2);
}

/* A lane's collectives, one after the other, as long as each is alone. */
static int64_t busiest_lane_ns(const Trace *alone, int32_t step) {
    int64_t most = 0;
    for (guint lane = 0; lane < alone->lanes->len; lane++) {
        int64_t sum = 0;
        for (guint i = 0; i < alone->ops->len; i++) {
            const TraceOpRow *row = trace_op(alone, i);
            bool counts = row->step == step && row->lane == lane && is_collective(alone, row);
            sum += counts ? row->end_ns - row->start_ns : 0;
        }
        most = MAX(most, sum);
    }
    return most;
}

static void a_step_has_room(const Trace *alone, const Trace *rehearsed) {
    g_autoptr(TraceSummary) summary = trace_summary_new(rehearsed, 3);
    for (int32_t i = 2; i < 4; i++) {
        const TraceStepSummary *step = trace_summary_step(summary, i);
        int64_t modeled = busiest_lane_ns(alone, i), took = step->end_ns - step->start_ns;
        g_test_message("step %d: %.3f ms; its collectives are modeled as %.3f ms", i,
                       (double)took / 1e6, (double)modeled / 1e6);
        g_assert_cmpint(modeled, >, 0);
        g_assert_cmpint(took, >=, modeled);
    }
}

static void rank_3_of_8(void) {
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_autofree char *p = g_strconcat(folder, "/p", NULL), *r = g_strconcat(folder, "/r", NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(plans); i++) {
        test_run_ok("predict %s --no-sharing --steps 4 --trace %s", plans[i], p);
        test_run_ok("rehearse %s --rank 3 --steps 4 --trace %s", plans[i], r);
        g_test_message("%s", plans[i]);
        g_autoptr(Trace) predicted = test_run_take_trace(p);
        g_autoptr(Trace) rehearsed = test_run_take_trace(r);
        g_assert_cmpstr(trace_get(rehearsed, "rehearsed"), ==, "yes");
        g_assert_nonnull(strstr(plans[i], trace_get(rehearsed, "pace")));
        memory_is_equal(predicted, rehearsed);
        collectives_last(predicted, rehearsed);
        a_step_has_room(predicted, rehearsed);
    }
    g_rmdir(folder);
}

static void it_says_so(void) {
    TestRun run =
        test_run_finish(test_run_start("rehearse gpt-toy -n 8 --rank 7 --cluster a100-node"));
    g_assert_cmpint(run.status, ==, 0);
    g_assert_nonnull(strstr(run.out, "rehearsed  rank 7 of 8"));
    g_assert_nonnull(strstr(run.out, "a100-node"));
    g_assert_null(strstr(run.out, "loss")); /* of made-up numbers */
    test_run_clear(&run);
    run = test_run_finish(
        test_run_start("rehearse gpt-toy -n 8 --rank 7 --cluster a100-node --json"));
    g_autoptr(JsonParser) parser = json_parser_new();
    g_assert_true(json_parser_load_from_data(parser, run.out, -1, NULL));
    JsonObject *object = json_node_get_object(json_parser_get_root(parser));
    g_assert_cmpint(json_object_get_int_member(object, "rehearsed_rank"), ==, 7);
    g_assert_cmpint(json_object_get_int_member(object, "ranks"), ==, 8);
    g_assert_cmpfloat(json_object_get_double_member(object, "step_ms"), >, 0);
    g_assert_false(json_object_has_member(object, "losses"));
    test_run_clear(&run);
}

static void failures_say_why(void) {
    static const struct {
        const char *words;
        int status;
        const char *expected;
    } cases[] = {
        {"rehearse gpt-toy -n 8 --rank 8 --cluster a100-node", 2, "the plan's are 0 to 7"},
        {"rehearse gpt-toy -n 8 --cluster a100-node", 2, "give the rank to play"},
        {"rehearse gpt-toy -n 8 --rank 0", 2, "give the cluster whose collectives"},
        {"rehearse gpt-toy -n 8 --rank 0 --cluster nowhere", 2, "nowhere"},
        {"rehearse gpt-toy -n 16 --rank 0 --cluster a100-node", 2, "has place for 8 ranks"},
        {"rehearse gpt-toy -n 8 --rank 0 --cluster a100-node --device tpu", 2, "'tpu'"},
        {"rehearse gpt-toy -n 8 --rank 1 --cluster a100-node --memory-limit 3000000", 1,
         "rank 1: out of memory: step 0"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        TestRun run = test_run_finish(test_run_start(cases[i].words));
        g_test_message("%s: status %d: %s", cases[i].words, run.status, run.err);
        g_assert_cmpint(run.status, ==, cases[i].status);
        g_assert_nonnull(strstr(run.err, cases[i].expected));
        test_run_clear(&run);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 2);
    test_run_program = argv[1];
    g_test_add_func("/exec/rehearsed/rank 3 of 8 is as predicted", rank_3_of_8);
    g_test_add_func("/exec/rehearsed/it says so", it_says_so);
    g_test_add_func("/exec/rehearsed/failures say why", failures_say_why);
    return g_test_run();
}
