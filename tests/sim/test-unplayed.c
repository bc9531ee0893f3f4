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
    g_test_add_func("/sim/unplayed/a dtype that is not there", test_dtype);
    g_test_add_func("/sim/unplayed/refusals", test_refusals);
    return g_test_run();
}
