/* Ops beside each other: speeds against the formulas, and ends worked out by hand. */
#include <glib.h>
#include <math.h>

#include "sim/costs/sharing.h"
#include "sim/device/engine.h"

static const SimUse arithmetic = {.compute = {.overhead_ns = 0, .flops_ns = 100, .bytes_ns = 10}};
static const SimUse traffic = {.compute = {.overhead_ns = 5, .flops_ns = 10, .bytes_ns = 95}};
static const SimUse near = {.collective = true,
                            .network = {.latency_ns = 20, .transfer_ns = 80},
                            .links = SIM_LINKS_NODE,
                            .sm_share = 0.2,
                            .memory_share = 0.5};
static const SimUse far = {.collective = true,
                           .network = {.latency_ns = 10, .transfer_ns = 90},
                           .links = SIM_LINKS_NETWORK,
                           .sm_share = 0.1};

static void speeds_of(const SimUse *a, const SimUse *b, const SimUse *c, double *speeds) {
    const SimUse *running[] = {a, b, c};
    sim_sharing_speeds(running, G_N_ELEMENTS(running), 0, speeds);
}

static void speeds(void) {
    double s[3] = {7, 7, 7};
    speeds_of(&arithmetic, NULL, NULL, s); /* alone: its own duration, exactly */
    g_assert_cmpfloat(s[0], ==, 1);
    g_assert_cmpfloat(s[1], ==, 7);
    speeds_of(&near, NULL, NULL, s);
    g_assert_cmpfloat(s[0], ==, 1);
    speeds_of(&arithmetic, &near, NULL, s); /* 100 -> 100 / 0.8; the collective keeps its pace */
    g_assert_cmpfloat(fabs(s[0] - 0.8), <, 1e-12);
    g_assert_cmpfloat(s[1], ==, 1);
    speeds_of(&traffic, &near, NULL, s); /* 5 + 95 -> 5 + 95 / 0.5 */
    g_assert_cmpfloat(fabs(s[0] - 100.0 / 195), <, 1e-12);
    speeds_of(&near, &near, NULL, s); /* two equal flows double the bandwidth term */
    g_assert_cmpfloat(fabs(s[0] - 100.0 / 180), <, 1e-12);
    speeds_of(&arithmetic, &arithmetic, NULL, s); /* half of the multiprocessors each */
    g_assert_cmpfloat(s[0], ==, 0.5);
    g_assert_cmpfloat(s[1], ==, 0.5);
    speeds_of(&arithmetic, &near, &arithmetic, s); /* of what the collective leaves */
    g_assert_cmpfloat(fabs(s[0] - 0.4), <, 1e-12);
    SimUse moves = {.compute = {.overhead_ns = 5, .bytes_ns = 95}};
    speeds_of(&arithmetic, &moves, NULL, s); /* no product */
    g_assert_cmpfloat(s[0], ==, 1);
    g_assert_cmpfloat(s[1], ==, 1);
    SimUse pair = near, other_pair = near, both_pairs = near;
    pair.links = 1; /* NVLinks of one pair of GPUs, of another, and of both */
    other_pair.links = 2;
    both_pairs.links = 3;
    speeds_of(&pair, &other_pair, NULL, s);
    g_assert_cmpfloat(s[0], ==, 1);
    g_assert_cmpfloat(s[1], ==, 1);
    speeds_of(&pair, &both_pairs, NULL, s);
    g_assert_cmpfloat(fabs(s[0] - 100.0 / 180), <, 1e-12);
    g_assert_cmpfloat(s[0], ==, s[1]);
    speeds_of(&near, &far, &arithmetic, s); /* other links; multiprocessors add up */
    g_assert_cmpfloat(s[0], ==, 1);
    g_assert_cmpfloat(s[1], ==, 1);
    g_assert_cmpfloat(fabs(s[2] - 0.7), <, 1e-12);
}

/* ---- in time -------------------------------------------------------------------------------- */

static const SimUse *const uses[] = {&arithmetic, &near, &traffic};

typedef struct {
    SimTime ends[8];
} Log;

static void starts(gpointer self, uint32_t lane, const SimCommand *op, SimTime at) {
}

static void ends(gpointer self, uint32_t lane, const SimCommand *op, SimTime start, SimTime end) {
    ((Log *)self)->ends[op->tag] = end;
}

static void share(gpointer self, const SimCommand *const *running, uint32_t n_running,
                  double *ret_speeds) {
    const SimUse *use[2];
    for (unsigned i = 0; i < 2; i++) {
        use[i] = running[i] ? uses[running[i]->tag] : NULL;
    }
    sim_sharing_speeds(use, 2, 0, ret_speeds);
}

/* A kernel of 100 on lane 0 from 0; a collective of 100 on lane 1 from 40. Until 40 the kernel has
 * done 40; then it runs at 0.8 and ends at 40 + 60 / 0.8 = 115. The collective ends at 140; a
 * second kernel, of 100, runs from 115 at 100 / 195: 12.82 done at 140, and alone to 227.18. */
static void in_time(void) {
    static const SimWatcher watcher = {starts, ends, share};
    Log log = {0};
    g_autoptr(SimEngine) engine = sim_engine_new(2, 1, &watcher, &log);
    sim_engine_launch(engine, 0, 100, SIM_NO_AXIS, 0);
    sim_engine_launch(engine, 0, 100, SIM_NO_AXIS, 2);
    sim_engine_advance(engine, 40);
    sim_engine_launch(engine, 1, 100, 0, 1);
    while (sim_engine_step(engine)) {
    }
    g_assert_cmpint(log.ends[0], ==, 115);
    g_assert_cmpint(log.ends[1], ==, 140);
    g_assert_cmpint(log.ends[2], ==, 227);
}

/* Shares of a collective: 24 of 108 multiprocessors, and what passes through memory. */
static void shares(void) {
    ModelCluster cluster = {.device_compute_capability = 80,
                            .device_sms = 108,
                            .device_memory_gb_per_s = 2000,
                            .device_memory_efficiency = 0.9};
    SimNetworkPath path = {.ranks = 8, .nodes = 1, .node_channels = 12};
    SimUse use = {.collective = true, .network = {.latency_ns = 0, .transfer_ns = 1e6}};
    sim_use_shares(&use, &cluster, &path, PLAN_OP_ALL_GATHER, 2e8);
    g_assert_cmpfloat(fabs(use.sm_share - 24.0 / 108), <, 1e-12);
    /* 175 MB in 1 ms, written and read: 350 GB/s of 1800 */
    g_assert_cmpfloat(fabs(use.memory_share - 350.0 / 1800), <, 1e-9);
    path.nodes = 2;
    sim_use_shares(&use, &cluster, &path, PLAN_OP_REDUCE_SCATTER, 2e8);
    g_assert_cmpfloat(fabs(use.sm_share - 16.0 / 108), <, 1e-12);
    g_assert_cmpfloat(fabs(use.memory_share - 525.0 / 1800), <, 1e-9);
}

/* Copy engines: no multiprocessors, and 200 MB in 1 ms, written here and read for another rank. */
static void peers(void) {
    ModelCluster cluster = {.device_compute_capability = 90,
                            .device_sms = 132,
                            .device_launch_overhead_ns = 1000,
                            .device_memory_gb_per_s = 2000,
                            .device_memory_efficiency = 0.9};
    SimNetworkPath path = {.ranks = 8,
                           .nodes = 1,
                           .node_channels = 10,
                           .links = SIM_LINKS_NODE,
                           .nccl = true,
                           .group = {.channels = 10, .channel_gb_per_s = 20}};
    SimNetworkCost cost = sim_network_cost(&cluster, &path, PLAN_OP_PULL, 2e8);
    g_assert_cmpfloat(fabs(cost.transfer_ns - 1e6), <, 1e-3);
    g_assert_cmpfloat(cost.latency_ns, ==, 1000);
    SimUse pull = {.collective = true, .network = {.latency_ns = 0, .transfer_ns = 1e6}};
    sim_use_shares(&pull, &cluster, &path, PLAN_OP_PULL, 2e8);
    g_assert_cmpfloat(pull.sm_share, ==, 0);
    g_assert_cmpfloat(fabs(pull.memory_share - 400.0 / 1800), <, 1e-9);
    g_assert_true(pull.links == SIM_LINKS_NODE);
    SimNetworkCost offer = sim_network_cost(&cluster, &path, PLAN_OP_OFFER, 9e5);
    g_assert_cmpfloat(fabs(offer.transfer_ns - 1000), <, 1e-6); /* read and written at 1800 GB/s */
    SimNetworkCost barrier = sim_network_cost(&cluster, &path, PLAN_OP_BARRIER, 4);
    g_assert_cmpfloat(barrier.transfer_ns, ==, 0);
    g_assert_cmpfloat(barrier.latency_ns, >, 1000);
    path.ranks = 1;
    g_assert_cmpfloat(sim_network_cost(&cluster, &path, PLAN_OP_PULL, 2e8).transfer_ns, ==, 0);
}

/* A kernel and a collective that keeps a core half busy, on one core: 1.5 cores of work. */
static void cores(void) {
    ModelCluster cluster = {.collectives_core_gb_per_s = 5};
    SimNetworkPath path = {.ranks = 2, .nodes = 1};
    SimUse copies = {.collective = true, .network = {.latency_ns = 0, .transfer_ns = 4e6}};
    sim_use_shares(&copies, &cluster, &path, PLAN_OP_ALL_GATHER, 2e7);
    g_assert_cmpfloat(fabs(copies.cores - 0.5), <, 1e-12); /* 10 MB at 5 GB/s: 2 of 4 ms */
    const SimUse *running[] = {&arithmetic, &copies, NULL};
    double s[3];
    sim_sharing_speeds(running, 3, 1, s);
    g_assert_cmpfloat(fabs(s[0] - 1 / 1.5), <, 1e-12);
    g_assert_cmpfloat(fabs(s[1] - 1 / 1.5), <, 1e-12);
    sim_sharing_speeds(running, 3, 2, s); /* room for both */
    g_assert_cmpfloat(s[0], ==, 1);
    g_assert_cmpfloat(s[1], ==, 1);
    running[2] = &traffic; /* 2.5 cores of work on 2 */
    sim_sharing_speeds(running, 3, 2, s);
    g_assert_cmpfloat(fabs(s[2] - 0.8), <, 1e-12);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/sharing/speeds", speeds);
    g_test_add_func("/sim/sharing/ends move", in_time);
    g_test_add_func("/sim/sharing/what a collective takes", shares);
    g_test_add_func("/sim/sharing/what peers take", peers);
    g_test_add_func("/sim/sharing/cores", cores);
    return g_test_run();
}
