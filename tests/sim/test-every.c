/* Every-rank play against representative play, and what apart ranks do to each other. */
#include <glib.h>
#include <string.h>

#include "sim/predict.h"
#include "sim/trains-well.h"
#include "tests/sim/plays.h"
#include "tests/sim/toy.h"
#include "trace/text.h"

static SimJitter jitter_of(SimJitterKind kind, double share) {
    SimJitter jitter = {0};
    jitter.shares[kind] = share;
    return jitter;
}

static SimJitter all_jitters(double share) {
    return (SimJitter){.shares = {share, share, share, share}};
}

/* ---- the law -------------------------------------------------------------------------------- */

static void assert_equal(const SimPrediction *one, const SimPrediction *all) {
    plays_assert_equal(one, all);
    g_assert_cmpint(one->host_ns, ==, all->host_ns);
    g_assert_cmpint(one->host_blocked_ns, ==, all->host_blocked_ns);
    g_assert_cmpint(one->peak.at.host_ns, ==, all->peak.at.host_ns);
    g_assert_cmpuint(one->peak_active_bytes, ==, all->peak_active_bytes);
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
    SimOptions options = {.steps = 4, .no_sharing = no_sharing};
    g_autoptr(SimPrediction) one = plays_predict(plan, cluster, &options, trace);
    options.every_rank = true;
    g_autoptr(SimPrediction) all = plays_predict(plan, cluster, &options, traces);
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
    "ranks=8 sharding=full accumulate=2 clip=1 host_reads=both step_sync=no",
    "ranks=16 flavour=fsdp1 clip=1 host_reads=norm optimizer_kernel=loop optimizer_count=device",
};

static void test_law(void) {
    g_autoptr(ModelCluster) fast = plays_cluster("a100-roce");
    g_autoptr(ModelCluster) slow = plays_cluster("two-nodes-ethernet");
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        check_law("gpt-toy", strategies[i], fast, false);
        check_law("gpt-toy", strategies[i], slow, i % 2);
    }
    check_law("mlp-toy", strategies[0], fast, false);
    g_autoptr(ModelCluster) pairs = plays_cluster("a100-perlmutter"); /* four, without a switch */
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        check_law("gpt-toy", strategies[i], pairs, false);
    }
    check_law("gpt-toy", "ranks=4 sharding=hybrid replicate=2", pairs, false);
    for (unsigned fabric = 0; fabric < 2; fabric++) {
        check_law("llama-toy", "ranks=16 sharding=hybrid replicate=2 tensor=2 clip=1",
                  fabric ? slow : fast, fabric);
    }
    check_law("gpt-toy", "ranks=4 sharding=full reshard_after_forward=2 accumulate=2", pairs,
              false);
    check_law("moe-toy", "ranks=8 sharding=full expert=8", fast, false);
    check_law("moe-toy", "ranks=8 sharding=full expert=8", pairs, true);
    check_law("moe-toy", "ranks=8 sharding=full expert=2 clip=1", pairs, false);
    check_law("moe-toy", "ranks=8 sharding=full expert=4 checkpointing=full", slow, false);
    g_autoptr(ModelCluster) cores = plays_cluster("this-machine");
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        cores->device_lane_wake_us = 3 * i;
        check_law("gpt-toy", strategies[i], cores, false);
    }
}

/* 3 ranks do not divide the toy's rows: the last has smaller shards, some of them empty, whose
 * state takes more host time to make in the first step. Rank 0 stands for all does not see that. */
static void test_roles(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("a100-node");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=3 sharding=full");
    g_assert_cmpuint(plan->n_roles, ==, 2);
    SimOptions options = {.steps = 4};
    g_autoptr(SimPrediction) one = plays_predict(plan, cluster, &options, NULL);
    options.every_rank = true;
    g_autoptr(SimPrediction) all = plays_predict(plan, cluster, &options, NULL);
    g_assert_cmpint(all->step_ns[0], >, one->step_ns[0]);
    for (uint32_t step = 1; step < 4; step++) {
        g_assert_cmpint(all->step_ns[step], >=, one->step_ns[step]);
    }
    g_assert_cmpuint(all->time_rank, ==, 2);
    g_assert_cmpint(all->ranks[2].lost_ns, ==, 0);
    g_assert_cmpint(all->ranks[0].waited_ns, ==, all->ranks[2].held_ns);
}

/* Asked to, the last rank stands for all, with the memory that it has when each is played. */
static void test_standing_rank(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("a100-node");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=3 sharding=full");
    g_autoptr(Trace) trace = trace_new(), traces = trace_new();
    SimOptions options = {.steps = 4, .rank = 2};
    g_autoptr(SimPrediction) one = plays_predict(plan, cluster, &options, trace);
    g_assert_cmpuint(one->memory_rank, ==, 2);
    options.every_rank = true;
    g_autoptr(SimPrediction) all = plays_predict(plan, cluster, &options, traces);
    guint rows = 0;
    for (guint i = 0; i < traces->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(traces, i);
        if (row->rank == 2) {
            const TraceMemoryRow *other = trace_memory(trace, rows++);
            g_assert_cmpuint(other->rank, ==, 2);
            g_assert_cmpuint(row->allocated, ==, other->allocated);
            g_assert_cmpuint(row->reserved, ==, other->reserved);
        }
    }
    g_assert_cmpuint(rows, ==, trace->memory->len);
    g_assert_cmpuint(all->memory_rank, ==, 0);
    g_assert_cmpuint(one->peak.at.allocated_bytes, <, all->peak.at.allocated_bytes);
}

/* A plan on a machine with memory enough, and on one with so little that the allocator gives
 * segments back and tries again: it waits for its device from deep inside an allocation, and that
 * for other ranks. */
typedef struct {
    Plan *plan;
    ModelCluster *ample, *small;
    SimPrediction *on_ample;
} Pressure;

static void clear_pressure(Pressure *p) {
    plan_free(p->plan);
    model_cluster_free(p->ample);
    model_cluster_free(p->small);
    sim_prediction_free(p->on_ample);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Pressure, clear_pressure)

static Pressure make_pressure(void) {
    SimOptions options = {.steps = 4};
    Pressure p = {.plan = toy_network_plan(
                      "gpt-toy", "ranks=8 flavour=fsdp1 limit_all_gathers=0 micro_batch=16"),
                  .ample = plays_cluster("a100-node"),
                  .small = plays_cluster("a100-node")};
    p.on_ample = plays_predict(p.plan, p.ample, &options, NULL);
    p.small->device_memory_bytes =
        p.on_ample->peak_reserved_bytes - (1 << 20) + model_cluster_outside_bytes(p.small);
    return p;
}

static void test_law_under_pressure(void) {
    g_auto(Pressure) p = make_pressure();
    SimOptions options = {.steps = 4};
    g_autoptr(SimPrediction) one = plays_predict(p.plan, p.small, &options, NULL);
    options.every_rank = true;
    g_autoptr(SimPrediction) all = plays_predict(p.plan, p.small, &options, NULL);
    g_assert_true(one->fits && all->fits);
    g_assert_cmpuint(one->alloc_retries, >, 0);
    assert_equal(one, all);
}

/* Who wants a calm play is told that it does not fit where memory is given back, and nothing is
 * played behind that; elsewhere it is told what everybody is. */
static void test_a_calm_play_ends_at_the_first_retry(void) {
    g_auto(Pressure) p = make_pressure();
    for (unsigned each = 0; each < 2; each++) {
        SimOptions fit = {.steps = 4, .every_rank = each, .wanted = SIM_WANTED_FIT};
        SimOptions calm = {.steps = 4, .every_rank = each, .wanted = SIM_WANTED_CALM};
        g_autoptr(SimPrediction) pressed = plays_predict(p.plan, p.small, &fit, NULL);
        g_assert_true(pressed->fits && pressed->alloc_retries > 0);
        g_autoptr(SimPrediction) given_up = plays_predict(p.plan, p.small, &calm, NULL);
        g_assert_false(given_up->fits);
        g_autoptr(SimPrediction) same = plays_predict(p.plan, p.ample, &calm, NULL);
        assert_equal(p.on_ample, same);
    }
}

/* Out of memory is found at the same place. */
static void test_out_of_memory(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("a100-node");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=8 micro_batch=16");
    cluster->device_memory_bytes = (4 << 20) + model_cluster_outside_bytes(cluster);
    SimOptions options = {.steps = 3};
    g_autoptr(SimPrediction) one = plays_predict(plan, cluster, &options, NULL);
    options.every_rank = true;
    g_autoptr(SimPrediction) all = plays_predict(plan, cluster, &options, NULL);
    g_assert_false(one->fits || all->fits);
    g_assert_cmpint(one->oom.at.host_ns, ==, all->oom.at.host_ns);
    g_assert_cmpuint(one->oom.at.index, ==, all->oom.at.index);
    g_assert_cmpstr(one->oom.buffer, ==, all->oom.buffer);
    assert_equal(one, all); /* with memory enough */
}

/* ---- what sets ranks apart ------------------------------------------------------------------ */

/* A straggler never waits, so the others go as it would go among its like: to the nanosecond. */
static void test_straggler(void) {
    g_autoptr(ModelCluster) cluster = plays_compute_bound("a100-roce");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", PLAYS_APART);
    const SimTrouble one = {SIM_TROUBLE_SLOW, 3, 3, 3}, all = {SIM_TROUBLE_SLOW, 0, 15, 3};
    g_autoptr(SimPrediction) quick = plays_every_rank(plan, cluster, (SimOptions){0});
    g_autoptr(SimPrediction) straggles =
        plays_every_rank(plan, cluster, (SimOptions){.troubles = &one, .n_troubles = 1});
    g_autoptr(SimPrediction) slow =
        plays_every_rank(plan, cluster, (SimOptions){.troubles = &all, .n_troubles = 1});
    g_assert_cmpint(straggles->median_step_ns, >, quick->median_step_ns);
    for (uint32_t step = 0; step < 4; step++) {
        g_assert_cmpint(straggles->step_ns[step], ==, slow->step_ns[step]);
    }
    g_assert_cmpuint(straggles->time_rank, ==, 3);
    for (uint32_t rank = 0; rank < 16; rank++) {
        const SimRankBook *book = &straggles->ranks[rank];
        g_assert_cmpint(book->lost_ns > 0, ==, rank != 3);
        g_assert_cmpint(book->held_ns > 0, ==, rank == 3);
        g_assert_cmpint(book->waited_ns, >=, book->lost_ns);
    }
    /* Its compute lane takes what all of them take when all are slow. */
    g_assert_cmpint(straggles->ranks[3].compute_ns, ==, slow->ranks[0].compute_ns);
}

/* A ring is as slow as its slowest link: whether one is degraded or all. */
static void test_degraded(void) {
    g_autoptr(ModelCluster) cluster = plays_compute_bound("a100-roce");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", PLAYS_APART);
    const SimTrouble one = {SIM_TROUBLE_NIC, 5, 5, 0.01}, all = {SIM_TROUBLE_NIC, 0, 15, 0.01};
    const SimTrouble within = {SIM_TROUBLE_NVLINK, 5, 5, 0.01};
    g_autoptr(SimPrediction) quick = plays_every_rank(plan, cluster, (SimOptions){0});
    g_autoptr(SimPrediction) degraded =
        plays_every_rank(plan, cluster, (SimOptions){.troubles = &one, .n_troubles = 1});
    g_autoptr(SimPrediction) slow =
        plays_every_rank(plan, cluster, (SimOptions){.troubles = &all, .n_troubles = 1});
    g_autoptr(SimPrediction) elsewhere =
        plays_every_rank(plan, cluster, (SimOptions){.troubles = &within, .n_troubles = 1});
    g_assert_cmpint(degraded->median_step_ns, >, quick->median_step_ns);
    g_assert_cmpint(degraded->median_step_ns, ==, slow->median_step_ns);
    g_assert_cmpint(elsewhere->median_step_ns, ==, quick->median_step_ns); /* no ring in a node */
}

/* The slowest of many is slower than the mean; the spread of steps shows. */
static void test_jitter(void) {
    g_autoptr(ModelCluster) cluster = plays_compute_bound("a100-node");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=8 sharding=full micro_batch=64");
    g_autoptr(SimPrediction) mean = plays_every_rank(plan, cluster, (SimOptions){.steps = 22});
    g_autoptr(SimPrediction) little = plays_every_rank(
        plan, cluster, (SimOptions){.steps = 22, .jitter = jitter_of(SIM_JITTER_KERNEL, 0.05)});
    g_autoptr(SimPrediction) much = plays_every_rank(
        plan, cluster, (SimOptions){.steps = 22, .jitter = jitter_of(SIM_JITTER_KERNEL, 0.5)});
    g_assert_cmpint(little->median_step_ns, >, mean->median_step_ns);
    g_assert_cmpint(much->median_step_ns, >, little->median_step_ns);
    g_assert_cmpint(mean->most_step_ns, ==, mean->least_step_ns);
    g_assert_cmpint(little->most_step_ns, >, little->least_step_ns);
    SimTime waits = 0;
    for (uint32_t rank = 0; rank < 8; rank++) {
        waits += little->ranks[rank].lost_ns;
        g_assert_cmpint(mean->ranks[rank].lost_ns, ==, 0);
    }
    g_assert_cmpint(waits, >, 0);
}

static double mean_ns(const SimPrediction *prediction) {
    double sum = 0;
    for (uint32_t step = 2; step < prediction->n_steps; step++) {
        sum += (double)prediction->step_ns[step] / (prediction->n_steps - 2);
    }
    return sum;
}

/* The host's, where it is the host that bounds the step; a collective's, where it is exposed and
 * groups wait for each other: a step in which one collective follows the other keeps its mean. */
static void test_other_jitters(void) {
    g_autoptr(ModelCluster) host_bound = plays_cluster("a100-node");
    g_autoptr(ModelCluster) link_bound = plays_compute_bound("two-nodes-ethernet");
    static const char *const plans[] = {"ranks=8 sharding=full",
                                        "ranks=16 sharding=hybrid replicate=8"};
    const ModelCluster *clusters[] = {host_bound, link_bound};
    static const SimJitterKind kinds[] = {SIM_JITTER_HOST, SIM_JITTER_LINK};
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(Plan) plan = toy_network_plan("gpt-toy", plans[i]);
        double last = 0;
        for (double share = 0; share<2; share = share> 0 ? share * 10 : 0.05) {
            g_autoptr(SimPrediction) played = plays_every_rank(
                plan, clusters[i], (SimOptions){.steps = 42, .jitter = jitter_of(kinds[i], share)});
            g_test_message("jitter %u of %3.0f %%: a step takes %.3f ms in the mean, %.3f to %.3f",
                           kinds[i], 100 * share, mean_ns(played) / 1e6,
                           (double)played->least_step_ns / 1e6, (double)played->most_step_ns / 1e6);
            g_assert_cmpfloat(mean_ns(played), >, last);
            g_assert_cmpint(played->most_step_ns > played->least_step_ns, ==, share > 0);
            last = mean_ns(played);
        }
    }
}

/* Ranks that differ all along: the slowest sets the pace of each step, so steps are alike. */
static void test_spread(void) {
    g_autoptr(ModelCluster) cluster = plays_compute_bound("a100-node");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=8 sharding=full micro_batch=64");
    g_autoptr(SimPrediction) spread = plays_every_rank(
        plan, cluster, (SimOptions){.steps = 6, .jitter = jitter_of(SIM_JITTER_GPU, 0.08)});
    g_autoptr(SimPrediction) even = plays_every_rank(plan, cluster, (SimOptions){.steps = 6});
    SimTime most = 0;
    for (uint32_t rank = 0; rank < 8; rank++) {
        const SimRankBook *book = &spread->ranks[rank];
        most = MAX(most, book->compute_ns);
        g_assert_cmpint(book->lost_ns > 0, ==, rank != spread->time_rank);
    }
    g_assert_cmpint(spread->ranks[spread->time_rank].compute_ns, ==, most);
    g_assert_cmpint(spread->median_step_ns, >, even->median_step_ns);
    g_assert_cmpint(spread->most_step_ns, ==, spread->least_step_ns);
    /* That GPUs of one kind differ is no loss; where one stands for all it is as slow as the
     * slowest, and waits for none. */
    g_assert_cmpfloat_with_epsilon(sim_working_share(spread), sim_working_share(even), 0.01);
}

static GString *played_text(const Plan *plan, const ModelCluster *cluster,
                            const SimOptions *options) {
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction = plays_predict(plan, cluster, options, trace);
    g_assert_true(prediction->fits);
    g_autoptr(GError) error = NULL;
    GString *text = trace_text(trace, &error);
    g_assert_no_error(error);
    return text;
}

static GString *text_of(const Plan *plan, uint64_t seed, const bool *traced) {
    g_autoptr(ModelCluster) cluster = plays_cluster("a100-roce");
    SimOptions options = {
        .steps = 3, .every_rank = true, .jitter = all_jitters(0.05), .traced = traced};
    options.jitter.seed = seed;
    return played_text(plan, cluster, &options);
}

static void test_seeds(void) {
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", PLAYS_APART);
    g_autoptr(GString) one = text_of(plan, 7, NULL), again = text_of(plan, 7, NULL);
    g_autoptr(GString) other = text_of(plan, 8, NULL);
    g_assert_cmpmem(one->str, one->len, again->str, again->len);
    g_assert_cmpstr(one->str, !=, other->str);
    /* Which ranks are kept changes nothing of what they do. */
    const bool last[16] = {[15] = true};
    g_autoptr(GString) part = text_of(plan, 7, last);
    const char *rows = strstr(one->str, "\nops 15 "), *kept = strstr(part->str, "\nops 15 ");
    g_assert_nonnull(rows);
    g_assert_nonnull(kept);
    g_assert_null(strstr(part->str, "\nops 0 "));
    g_assert_true(strncmp(rows, kept, 2000) == 0);
}

/* ---- order of play -------------------------------------------------------------------------- */

/* Plans whose ranks meet in several groups, troubled in all ways at once. */
static const char *const tangled[] = {
    "ranks=16 sharding=hybrid replicate=2 reshard_after_forward=4 accumulate=2",
    "ranks=16 sharding=hybrid replicate=8 flavour=fsdp1",
    "ranks=16 flavour=fsdp1 sharding=hybrid-grad-op replicate=4 accumulate=2 accumulate_sync=every",
    "ranks=16 sharding=hybrid replicate=4 micro_batch=8 checkpointing=full",
    "ranks=12 flavour=fsdp1 limit_all_gathers=0 micro_batch=16",
    "ranks=5 sharding=optimizer-only clip=1",
    "ranks=8 sharding=none",
};

static GString *text_in_order(const Plan *plan, uint64_t seed, bool reversed) {
    static const SimTrouble troubles[] = {{SIM_TROUBLE_SLOW, 2, 2, 1.5},
                                          {SIM_TROUBLE_NIC, 1, 1, 0.3},
                                          {SIM_TROUBLE_NVLINK, 0, 0, 0.2}};
    g_autoptr(ModelCluster) cluster =
        seed % 2 ? plays_compute_bound("two-nodes-ethernet") : plays_cluster("two-nodes-ethernet");
    cluster->topology_gpus_per_node = 4;
    cluster->topology_nodes = 4;
    cluster->inter_node_nodes_per_leaf = 2;
    cluster->inter_node_oversubscription = 3;
    SimOptions options = {.steps = 3,
                          .every_rank = true,
                          .jitter = all_jitters(seed < 2 ? 0.05 : 3),
                          .troubles = troubles,
                          .n_troubles = G_N_ELEMENTS(troubles),
                          .reversed = reversed};
    options.jitter.seed = seed;
    return played_text(plan, cluster, &options);
}

/* Each rank sees what happens in the order of time, whoever is played first. */
static void test_order_of_play(void) {
    for (unsigned i = 0; i < G_N_ELEMENTS(tangled); i++) {
        g_autoptr(Plan) plan = toy_network_plan("gpt-toy", tangled[i]);
        for (uint64_t seed = 0; seed < 4; seed++) {
            g_test_message("%s, seed %u", tangled[i], (unsigned)seed);
            g_autoptr(GString) one = text_in_order(plan, seed, false);
            g_autoptr(GString) other = text_in_order(plan, seed, true);
            g_assert_cmpmem(one->str, one->len, other->str, other->len);
        }
    }
}

static void note_progress(gpointer self, double share) {
    double *last = self;
    g_assert_cmpfloat(share, >=, *last);
    g_assert_cmpfloat(share, <=, 1);
    *last = share;
}

static void test_progress(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("a100-roce");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", PLAYS_APART);
    double last = 0;
    g_autoptr(SimPrediction) prediction = plays_every_rank(
        plan, cluster,
        (SimOptions){.steps = 20, .progress = note_progress, .progress_self = &last});
    g_assert_true(prediction->fits);
    g_assert_cmpfloat(last, >, 0.8);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/every/equal ranks: as one that stands for all", test_law);
    g_test_add_func("/sim/every/the last rank's shards", test_roles);
    g_test_add_func("/sim/every/the last rank stands for all", test_standing_rank);
    g_test_add_func("/sim/every/the same under memory pressure", test_law_under_pressure);
    g_test_add_func("/sim/every/a calm play ends at the first retry",
                    test_a_calm_play_ends_at_the_first_retry);
    g_test_add_func("/sim/every/out of memory", test_out_of_memory);
    g_test_add_func("/sim/every/a straggler slows all as much", test_straggler);
    g_test_add_func("/sim/every/a degraded link slows its rings", test_degraded);
    g_test_add_func("/sim/every/jitter: longer than the mean", test_jitter);
    g_test_add_func("/sim/every/jitter of hosts and of links", test_other_jitters);
    g_test_add_func("/sim/every/spread: the slowest sets the pace", test_spread);
    g_test_add_func("/sim/every/same seed, same bytes", test_seeds);
    g_test_add_func("/sim/every/the order of play changes nothing", test_order_of_play);
    g_test_add_func("/sim/every/progress", test_progress);
    return g_test_run();
}
