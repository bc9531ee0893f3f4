/* Every-rank play against representative play, and what apart ranks do to each other. */
#include <glib.h>
#include <string.h>

#include "sim/predict.h"
#include "tests/sim/toy.h"
#include "trace/text.h"

static ModelCluster *cluster_named(const char *name) {
    g_autoptr(GError) error = NULL;
    g_autofree char *file = g_strconcat(name, ".ini", NULL);
    g_autofree char *path = g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), file, NULL);
    ModelCluster *cluster = model_cluster_read_file(path, &error);
    g_assert_no_error(error);
    return cluster;
}

static SimPrediction *predict(const Plan *plan, const ModelCluster *cluster,
                              const SimOptions *options, Trace *trace) {
    g_autoptr(GError) error = NULL;
    SimPrediction *prediction = sim_predict(plan, cluster, options, trace, &error);
    g_assert_no_error(error);
    return prediction;
}

/* ---- the law -------------------------------------------------------------------------------- */

static void assert_equal(const SimPrediction *one, const SimPrediction *all) {
    for (uint32_t step = 0; step < one->n_steps; step++) {
        g_assert_cmpint(one->step_ns[step], ==, all->step_ns[step]);
    }
    for (unsigned share = 0; share < SIM_N_SHARES; share++) {
        g_assert_cmpint(one->shares_ns[share], ==, all->shares_ns[share]);
    }
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        g_assert_cmpuint(one->collectives[kind].count, ==, all->collectives[kind].count);
        g_assert_cmpint(one->collectives[kind].total_ns, ==, all->collectives[kind].total_ns);
        g_assert_cmpint(one->collectives[kind].exposed_ns, ==, all->collectives[kind].exposed_ns);
    }
    g_assert_cmpint(one->host_ns, ==, all->host_ns);
    g_assert_cmpint(one->host_blocked_ns, ==, all->host_blocked_ns);
    g_assert_cmpuint(one->peak.at.allocated_bytes, ==, all->peak.at.allocated_bytes);
    g_assert_cmpint(one->peak.at.host_ns, ==, all->peak.at.host_ns);
    g_assert_cmpuint(one->peak_active_bytes, ==, all->peak_active_bytes);
    g_assert_cmpuint(one->peak_reserved_bytes, ==, all->peak_reserved_bytes);
    g_assert_cmpuint(one->alloc_retries, ==, all->alloc_retries);
    g_assert_cmpuint(one->segment_allocs, ==, all->segment_allocs);
    g_assert_cmpint(one->median_step_ns, >, 0);
}

static void assert_same_rows(const Trace *one, const Trace *all) {
    guint rows = 0;
    for (guint i = 0; i < all->ops->len; i++) {
        const TraceOpRow *row = trace_op(all, i), *other;
        if (row->rank == 0) {
            other = trace_op(one, rows++);
            g_assert_cmpint(row->step, ==, other->step);
            g_assert_cmpuint(row->instruction, ==, other->instruction);
            g_assert_cmpint(row->host_issue_ns, ==, other->host_issue_ns);
            g_assert_cmpint(row->start_ns, ==, other->start_ns);
            g_assert_cmpint(row->end_ns, ==, other->end_ns);
        }
    }
    g_assert_cmpuint(rows, ==, one->ops->len);
}

static void check_law(const char *network, const char *strategy, const ModelCluster *cluster,
                      bool no_sharing) {
    g_test_message("%s, %s, on %s", network, strategy, cluster->name);
    g_autoptr(Plan) plan = toy_network_plan(network, strategy);
    g_autoptr(Trace) trace = trace_new(), traces = trace_new();
    SimOptions options = {.steps = 4, .alone = no_sharing};
    g_autoptr(SimPrediction) one = predict(plan, cluster, &options, trace);
    options.every_rank = true;
    g_autoptr(SimPrediction) all = predict(plan, cluster, &options, traces);
    g_assert_cmpuint(plan->n_roles, ==, 1); /* else ranks are not equal */
    g_assert_true(one->fits && all->fits);
    assert_equal(one, all);
    assert_same_rows(trace, traces);
    g_assert_cmpuint(all->n_ranks, ==, plan->world);
    for (uint32_t rank = 0; rank < all->n_ranks; rank++) {
        g_assert_cmpint(all->ranks[rank].held_ns, ==, 0);
    }
}

static const char *const strategies[] = {
    "ranks=2 sharding=full",
    "ranks=4 sharding=full wrap=whole",
    "ranks=8 sharding=full backward_prefetch=none micro_batch=2",
    "ranks=16 sharding=full",
    "ranks=16 sharding=hybrid replicate=2",
    "ranks=16 sharding=hybrid replicate=8 flavour=fsdp1",
    "ranks=16 sharding=none",
    "ranks=8 sharding=grad-op",
    "ranks=8 sharding=full reshard_after_forward=4",
    "ranks=16 flavour=fsdp1 sharding=full",
    "ranks=16 sharding=hybrid replicate=2 reshard_after_forward=4 accumulate=2",
    "ranks=8 sharding=full accumulate=2 accumulate_sync=every clip=1 checkpointing=full",
    "ranks=4 sharding=optimizer-only",
    "ranks=4 sharding=full offload=optimizer",
    "ranks=8 flavour=fsdp1 sharding=full limit_all_gathers=0 forward_prefetch=yes",
};

static void test_law(void) {
    g_autoptr(ModelCluster) fast = cluster_named("a100-roce");
    g_autoptr(ModelCluster) slow = cluster_named("two-nodes-ethernet");
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        check_law("gpt-toy", strategies[i], fast, false);
        check_law("gpt-toy", strategies[i], slow, i % 2);
    }
    check_law("mlp-toy", strategies[0], fast, false);
}

/* 3 ranks do not divide the toy's rows: the last has smaller shards, some of them empty, whose
 * state takes more host time to make in the first step. Rank 0 stands for all does not see that. */
static void test_roles(void) {
    g_autoptr(ModelCluster) cluster = cluster_named("a100-node");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=3 sharding=full");
    g_assert_cmpuint(plan->n_roles, ==, 2);
    SimOptions options = {.steps = 4};
    g_autoptr(SimPrediction) one = predict(plan, cluster, &options, NULL);
    options.every_rank = true;
    g_autoptr(SimPrediction) all = predict(plan, cluster, &options, NULL);
    g_assert_cmpint(all->step_ns[0], >, one->step_ns[0]);
    for (uint32_t step = 1; step < 4; step++) {
        g_assert_cmpint(all->step_ns[step], >=, one->step_ns[step]);
    }
    g_assert_cmpuint(all->time_rank, ==, 2);
    g_assert_cmpint(all->ranks[2].exposed_wait_ns, ==, 0);
    g_assert_cmpint(all->ranks[0].waited_ns, ==, all->ranks[2].held_ns);
}

/* Memory so short that the allocator gives segments back and tries again: it waits for its device
 * from deep inside an allocation, and that for other ranks. */
static void test_law_under_pressure(void) {
    g_autoptr(ModelCluster) cluster = cluster_named("a100-node");
    g_autoptr(Plan) plan =
        toy_network_plan("gpt-toy", "ranks=8 flavour=fsdp1 limit_all_gathers=0 micro_batch=16");
    SimOptions options = {.steps = 4};
    g_autoptr(SimPrediction) ample = predict(plan, cluster, &options, NULL);
    cluster->device_memory_bytes =
        ample->peak_reserved_bytes - (1 << 20) + cluster->device_outside_allocator_bytes;
    g_autoptr(SimPrediction) one = predict(plan, cluster, &options, NULL);
    options.every_rank = true;
    g_autoptr(SimPrediction) all = predict(plan, cluster, &options, NULL);
    g_assert_true(one->fits && all->fits);
    g_assert_cmpuint(one->alloc_retries, >, 0);
    assert_equal(one, all);
}

/* Out of memory is found at the same place. */
static void test_out_of_memory(void) {
    g_autoptr(ModelCluster) cluster = cluster_named("a100-node");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=8 micro_batch=16");
    cluster->device_memory_bytes = (4 << 20) + cluster->device_outside_allocator_bytes;
    SimOptions options = {.steps = 3};
    g_autoptr(SimPrediction) one = predict(plan, cluster, &options, NULL);
    options.every_rank = true;
    g_autoptr(SimPrediction) all = predict(plan, cluster, &options, NULL);
    g_assert_false(one->fits || all->fits);
    g_assert_cmpint(one->oom.at.host_ns, ==, all->oom.at.host_ns);
    g_assert_cmpuint(one->oom.at.index, ==, all->oom.at.index);
    g_assert_cmpstr(one->oom.buffer, ==, all->oom.buffer);
    assert_equal(one, all); /* with memory enough */
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/every/equal ranks: as one that stands for all", test_law);
    g_test_add_func("/sim/every/the last rank's shards", test_roles);
    g_test_add_func("/sim/every/the same under memory pressure", test_law_under_pressure);
    g_test_add_func("/sim/every/out of memory", test_out_of_memory);
    return g_test_run();
}
