/* Every-rank play of nodes of several kinds, and whose memory is short first. */
#include <glib.h>

#include "sim/predict.h"
#include "tests/sim/plays.h"
#include "tests/sim/toy.h"
#include "trace/text.h"

/* Slow nodes among quick ones: as all of that kind, for what lies between them is the same. */
static void test_kinds(void) {
    const char *kind = "\n[nodes old]\nat = %s\ndevice.sms = 20\ndevice.memory_gb_per_s = 5\n";
    g_autofree char *last = g_strdup_printf(kind, "1"), *both = g_strdup_printf(kind, "0-63");
    g_autoptr(ModelCluster) mixed = plays_cluster_and("a100-roce", last);
    g_autoptr(ModelCluster) old = plays_cluster_and("a100-roce", both);
    g_autoptr(ModelCluster) quick = plays_cluster("a100-roce");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", PLAYS_APART " param_dtype=bf16");
    g_autoptr(SimPrediction) of_mixed = plays_every_rank(plan, mixed, (SimOptions){0});
    g_autoptr(SimPrediction) of_old = plays_every_rank(plan, old, (SimOptions){0});
    g_autoptr(SimPrediction) of_quick = plays_every_rank(plan, quick, (SimOptions){0});
    g_assert_cmpint(of_mixed->median_step_ns, >, of_quick->median_step_ns);
    g_assert_cmpint(of_mixed->median_step_ns, ==, of_old->median_step_ns);
    g_assert_cmpuint(of_mixed->time_rank, ==, 8);
    g_assert_cmpstr(of_mixed->ranks[0].node_kind, ==, "A100-SXM4-80GB");
    g_assert_cmpstr(of_mixed->ranks[8].node_kind, ==, "old");
    g_assert_cmpint(of_mixed->ranks[0].lost_ns, >, 0);
    g_assert_cmpint(of_mixed->ranks[8].lost_ns, ==, 0);
    g_assert_cmpfloat(of_mixed->mfu, >, 0);
}

static void quicken_allocator(ModelCluster *cluster) {
    cluster->allocator_segment_new_us = cluster->allocator_segment_free_us = 0.1;
    cluster->allocator_segment_new_gb_per_s = cluster->allocator_segment_again_gb_per_s = 0;
    cluster->allocator_segment_free_gb_per_s = 0;
}

/* 4 ranks, each a node of a kind of its own, alike but for their memory (0: enough), with hosts so
 * quick that kernels are still queued when memory runs out. */
static ModelCluster *with_memories(const uint64_t *bytes) {
    ModelCluster *cluster = plays_cluster_and(
        "a100-roce",
        "\n[nodes a]\nat = 0\n[nodes b]\nat = 1\n[nodes c]\nat = 2\n[nodes d]\nat = 3\n");
    plays_quicken(cluster);
    cluster->topology_gpus_per_node = 1;
    for (uint32_t i = 0; i < cluster->n_kinds; i++) {
        ModelCluster *kind = cluster->kinds[i];
        plays_quicken(kind);
        quicken_allocator(kind);
        kind->topology_gpus_per_node = 1;
        if (bytes[i]) {
            kind->device_memory_bytes = bytes[i] + model_cluster_outside_bytes(kind);
        }
    }
    return cluster;
}

static SimOom oom_of(const Plan *plan, const uint64_t *bytes, bool reversed, GString **ret_rows) {
    g_autoptr(ModelCluster) cluster = with_memories(bytes);
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(GError) error = NULL;
    const SimOptions options = {.steps = 3, .every_rank = true, .reversed = reversed};
    g_autoptr(SimPrediction) prediction = plays_predict(plan, cluster, &options, trace);
    g_assert_false(prediction->fits);
    g_assert_cmpuint(prediction->allocator_bytes, ==, bytes[prediction->oom.rank]);
    *ret_rows = trace_text(trace, &error);
    g_assert_no_error(error);
    return prediction->oom;
}

static void assert_same_oom(const SimOom *one, const SimOom *other) {
    g_assert_cmpuint(one->rank, ==, other->rank);
    g_assert_cmpint(one->at.step, ==, other->at.step);
    g_assert_cmpint(one->at.section, ==, other->at.section);
    g_assert_cmpuint(one->at.index, ==, other->at.index);
    g_assert_cmpint(one->at.host_ns, ==, other->at.host_ns);
    g_assert_cmpuint(one->at.reserved_bytes, ==, other->at.reserved_bytes);
    g_assert_cmpstr(one->buffer, ==, other->buffer);
}

/* Whoever is played first, and the same rows up to there. */
static SimOom oom_in_any_order(const Plan *plan, const uint64_t *bytes) {
    g_autoptr(GString) rows = NULL, other_rows = NULL;
    SimOom one = oom_of(plan, bytes, false, &rows), other = oom_of(plan, bytes, true, &other_rows);
    assert_same_oom(&one, &other);
    g_assert_cmpmem(rows->str, rows->len, other_rows->str, other_rows->len);
    return one;
}

/* One rank runs out, here or there, while others have kernels and collectives to come. */
static void test_out_of_memory_apart(void) {
    g_autoptr(Plan) plan = toy_network_plan("gpt2", "ranks=4 sharding=full");
    for (uint32_t rank = 0; rank < plan->world; rank++) {
        for (uint64_t bytes = 200000000; bytes < 1400000000; bytes += 200000000) {
            uint64_t memories[4] = {0};
            memories[rank] = bytes;
            SimOom oom = oom_in_any_order(plan, memories);
            g_assert_cmpuint(oom.rank, ==, rank);
        }
    }
}

static bool is_before(const SimMoment *one, const SimMoment *other) {
    return one->step < other->step || (one->step == other->step && one->host_ns < other->host_ns);
}

/* Of two that run out, each by itself, before either tries again: the first in time, so many
 * megabytes each; at one moment rank 0. */
static void check_two(const Plan *plan, uint64_t of_0, uint64_t of_1) {
    SimOom alone[] = {oom_in_any_order(plan, (const uint64_t[]){of_0 << 20, 0, 0, 0}),
                      oom_in_any_order(plan, (const uint64_t[]){0, of_1 << 20, 0, 0})};
    SimOom both = oom_in_any_order(plan, (const uint64_t[]){of_0 << 20, of_1 << 20, 0, 0});
    assert_same_oom(&both, &alone[is_before(&alone[1].at, &alone[0].at)]);
}

static void test_first_out_of_memory(void) {
    g_autoptr(Plan) plan = toy_network_plan("gpt2", "ranks=4 sharding=full");
    check_two(plan, 300, 200);
    check_two(plan, 200, 300);
    check_two(plan, 100, 300);
    check_two(plan, 300, 300);
    /* After retries, which hold up the others. */
    SimOom late = oom_in_any_order(plan, (const uint64_t[]){0, 900 << 20, 800 << 20, 0});
    g_assert_cmpuint(late.rank, ==, 2);
    oom_in_any_order(plan, (const uint64_t[]){1200 << 20, 1200 << 20, 1250 << 20, 1200 << 20});
}

/* Rank 3 has the least memory, so is the fullest; but it tries again before it gives up, and rank 2
 * is out of memory sooner. */
static void test_whose_memory(void) {
    g_autoptr(Plan) plan = toy_network_plan("gpt2", "ranks=4 sharding=full");
    g_autoptr(ModelCluster) cluster = with_memories((const uint64_t[]){0, 0, 400000000, 200000000});
    g_autoptr(SimPrediction) prediction = plays_every_rank(plan, cluster, (SimOptions){0});
    g_assert_false(prediction->fits);
    g_assert_cmpuint(prediction->oom.rank, ==, 2);
    g_assert_cmpuint(prediction->allocator_bytes, ==, 400000000);
    g_assert_cmpuint(prediction->memory_rank, ==, 3);
    g_assert_cmpuint(prediction->peak_reserved_bytes, ==, prediction->ranks[3].peak_reserved_bytes);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/every-memory/nodes of several kinds", test_kinds);
    g_test_add_func("/sim/every-memory/one rank out of memory", test_out_of_memory_apart);
    g_test_add_func("/sim/every-memory/the first in time out of memory", test_first_out_of_memory);
    g_test_add_func("/sim/every-memory/whose memory is shown", test_whose_memory);
    return g_test_run();
}
