/* A prediction without a play: it refuses what one with a play does before it begins, and knows the
 * same flops. */
#include <string.h>

#include "tests/sim/plays.h"
#include "tests/sim/toy.h"

static SimPrediction *predict(const Plan *plan, const ModelCluster *cluster, bool every_rank,
                              bool unplayed, GError **error) {
    const SimOptions options = {.steps = 3, .every_rank = every_rank, .unplayed = unplayed};
    return sim_predict(plan, cluster, &options, NULL, error);
}

static void assert_begins(const char *strategy, const ModelCluster *cluster, bool every_rank) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = toy_network_plan("llama-toy", strategy);
    g_autoptr(SimPrediction) played = predict(plan, cluster, every_rank, false, &error);
    g_assert_no_error(error);
    g_autoptr(SimPrediction) unplayed = predict(plan, cluster, every_rank, true, &error);
    g_assert_no_error(error);
    g_assert_cmpfloat(unplayed->flops, >, 0);
    g_assert_cmpfloat(unplayed->flops, ==, played->flops);
    g_assert_cmpint(played->median_step_ns, >, 0);
    g_assert_cmpint(unplayed->median_step_ns, ==, 0);
}

static void test_flops(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("a100-roce");
    assert_begins("ranks=4", cluster, false);
    assert_begins("ranks=4", cluster, true);
    assert_begins("ranks=4 pipeline=2 accumulate=4", cluster, false);
}

#define WORDS "ranks=8 expert=8 param_dtype=bf16 micro_batch=8"

/* A machine's rate counts the rows of all ranks, of which the busiest has more than its share: as
 * many as without, while what it does itself, and waits for, takes longer. */
static void test_overloaded(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("a100-roce");
    const char *network = "[network]\nfamily=llama\nlayers=2\nwidth=512\nheads=4\nexperts=16\n"
                          "experts_per_token=4\nexpert_ffn=512\nvocab=64\nseq=1024\n";
    g_autoptr(Plan) even = toy_written_plan(network, WORDS);
    g_autoptr(Plan) uneven = toy_written_plan(network, WORDS " expert_overload=2");
    for (unsigned every = 0; every < 2; every++) {
        g_autoptr(SimPrediction) before = predict(even, cluster, every, false, NULL);
        g_autoptr(SimPrediction) with = predict(uneven, cluster, every, false, NULL);
        g_assert_cmpfloat_with_epsilon(with->flops, before->flops, 1e-9 * before->flops);
        g_assert_cmpint(with->median_step_ns, >, before->median_step_ns);
        g_assert_cmpuint(with->peak.at.allocated_bytes, >, before->peak.at.allocated_bytes);
        double sent = before->collectives[PLAN_OP_ALL_TO_ALL].bytes -
                      with->collectives[PLAN_OP_ALL_TO_ALL].bytes;
        g_assert_cmpfloat(with->collectives[PLAN_OP_UNEVEN_ALL_TO_ALL].bytes, ==, 2 * sent);
    }
}

static void assert_lacks(const Plan *plan, const ModelCluster *cluster, bool every_rank) {
    g_autoptr(GError) error = NULL;
    g_autoptr(SimPrediction) lacks = predict(plan, cluster, every_rank, true, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(lacks->unsupported_dtype, ==, "bf16");
}

static void test_dtype(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("v100-dgx");
    g_autoptr(Plan) plan = toy_network_plan("llama-toy", "ranks=2 param_dtype=bf16");
    assert_lacks(plan, cluster, false);
    assert_lacks(plan, cluster, true);
    g_autoptr(Plan) stages =
        toy_network_plan("llama-toy", "ranks=4 pipeline=2 accumulate=4 param_dtype=bf16");
    assert_lacks(stages, cluster, false);
}

static void assert_refused(const Plan *plan, const ModelCluster *cluster, const char *why) {
    g_autoptr(GError) played = NULL, unplayed = NULL;
    g_assert_null(predict(plan, cluster, false, false, &played));
    g_assert_null(predict(plan, cluster, false, true, &unplayed));
    g_assert_nonnull(strstr(unplayed->message, why));
    g_assert_cmpstr(unplayed->message, ==, played->message);
}

static void test_refusals(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("v100-dgx");
    g_autoptr(Plan) large = toy_network_plan("llama-toy", "ranks=16");
    cluster->topology_nodes = 1;
    assert_refused(large, cluster, "the plan is for 16 ranks");
    g_autoptr(Plan) plan = toy_network_plan("llama-toy", "ranks=2");
    cluster->device_memory_gb_per_s = 1e-12;
    assert_refused(plan, cluster, "days are the most");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/unplayed/flops", test_flops);
    g_test_add_func("/sim/unplayed/flops of the busiest rank", test_overloaded);
    g_test_add_func("/sim/unplayed/a dtype that is not there", test_dtype);
    g_test_add_func("/sim/unplayed/refusals", test_refusals);
    return g_test_run();
}
