/* Groups that lie unequally over nodes: what holds them up, and who stands for whom. */
#include <glib.h>

#include "plan/mesh.h"
#include "sim/costs/network.h"
#include "sim/predict.h"
#include "tests/sim/plays.h"
#include "tests/sim/toy.h"

/* Ranks that are all on the axis shard, so many a group; groups are on the axis replicate. */
static Plan groups_of(uint32_t world, uint32_t n) {
    Plan plan = plan_line(world);
    plan.axes[PLAN_AXIS_SHARD] = n;
    plan.axes[PLAN_AXIS_REPLICATE] = world / n;
    return plan;
}

/* ---- nodes that are not full ---------------------------------------------------------------- */

/* Whatever way NCCL takes, what the ranks of a node lack enters by the NICs beside them. */
static void assert_enters(const SimNetworkPath *path, PlanOpKind kind, double nic) {
    double lacks = (double)(path->ranks - path->least_a_node) / path->ranks;
    for (SimNcclAlgo algo = 0; algo < SIM_NCCL_N_ALGOS; algo++) {
        SimNcclTerms terms = sim_nccl_expect(&path->group, kind, algo, SIM_NCCL_SIMPLE, 1 << 30);
        g_assert_cmpfloat(terms.gb_per_s * lacks, <=, path->least_a_node * nic * (1 + 1e-12));
    }
}

static void test_emptiest_node(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("dgx-h100");
    for (uint32_t n = 9; n <= 64; n++) {
        Plan plan = groups_of(n, n);
        SimNetworkPath path = sim_network_path(cluster, &plan, PLAN_AXIS_SHARD);
        g_assert_cmpuint(path.nodes, ==, (n + 7) / 8);
        g_assert_cmpuint(path.ranks_a_node, ==, 8);
        g_assert_cmpuint(path.least_a_node, ==, n % 8 ? n % 8 : 8);
        assert_enters(&path, PLAN_OP_ALL_GATHER, cluster->inter_node_nic_gb_per_s);
        assert_enters(&path, PLAN_OP_REDUCE_SCATTER, cluster->inter_node_nic_gb_per_s);
        assert_enters(&path, PLAN_OP_ALL_TO_ALL, cluster->inter_node_nic_gb_per_s);
    }
}

/* 9 ranks: eight ninths of a tensor go to the last by one NIC; a plain ring of as many likewise. */
static void test_nine_ranks(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("dgx-h100");
    Plan plan = groups_of(9, 9);
    const double bytes = 9e9;
    for (unsigned plain = 0; plain < 2; plain++) {
        cluster->device_compute_capability = plain ? 0 : 90;
        cluster->collectives_far_bandwidth_factor = 1;
        SimNetworkPath path = sim_network_path(cluster, &plan, PLAN_AXIS_SHARD);
        SimNetworkCost cost = sim_network_cost(cluster, &path, PLAN_OP_ALL_GATHER, bytes);
        g_assert_cmpfloat_with_epsilon(cost.transfer_ns, 8e9 / cluster->inter_node_nic_gb_per_s, 1);
        g_assert_cmpstr(path.slowest, ==, "inter-node network");
    }
}

/* ---- groups that lie differently ------------------------------------------------------------ */

/* Of six ranks each: the first is in a node, the second has two ranks in one and four in the next.
 */
static void test_slowest_group(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("dgx-h100");
    Plan plan = groups_of(24, 6);
    SimNetworkPath own = sim_network_path_of(cluster, &plan, PLAN_AXIS_SHARD, 0);
    SimNetworkPath slowest = sim_network_path(cluster, &plan, PLAN_AXIS_SHARD);
    g_assert_cmpuint(own.nodes, ==, 1);
    g_assert_cmpuint(slowest.nodes, ==, 2);
    g_assert_cmpuint(slowest.least_a_node, ==, 2);
    /* Every sixth rank: 0, 6, 12 and 18 are on three nodes, as 4, 10, 16 and 22 are; all have one
     * rank alone on a node. */
    SimNetworkPath copies = sim_network_path(cluster, &plan, PLAN_AXIS_REPLICATE);
    g_assert_cmpuint(copies.nodes, ==, 3);
    g_assert_cmpuint(copies.least_a_node, ==, 1);
}

/* The slowest of all groups, whether they are looked at one by one or known to be alike. */
static void test_all_groups(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("dgx-h100");
    for (uint32_t n = 2; n <= 48; n++) {
        for (uint32_t world = n; world <= 96; world += n) {
            Plan plan = groups_of(world, n);
            for (PlanAxis axis = PLAN_AXIS_REPLICATE; axis <= PLAN_AXIS_SHARD; axis++) {
                SimNetworkPath slowest = sim_network_path(cluster, &plan, axis);
                double rate = slowest.group.channels * slowest.group.channel_gb_per_s;
                for (uint32_t rank = 0; rank < world; rank++) {
                    SimNetworkPath path = sim_network_path_of(cluster, &plan, axis, rank);
                    g_assert_cmpfloat(path.group.channels * path.group.channel_gb_per_s, >=, rate);
                }
            }
        }
    }
}

static SimTime gathers_ns(const SimPrediction *prediction) {
    return prediction->collectives[PLAN_OP_ALL_GATHER].total_ns;
}

/* Who stands for all gathers as the slowest group does, where each is played. */
static void test_one_stands_for_the_slowest(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("a100-roce");
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=24 sharding=hybrid replicate=4");
    SimOptions options = {.steps = 4};
    g_autoptr(SimPrediction) one = plays_predict(plan, cluster, &options, NULL);
    options.every_rank = true;
    g_autoptr(SimPrediction) all = plays_predict(plan, cluster, &options, NULL);
    cluster->topology_gpus_per_node = 24; /* were all in one node */
    g_autoptr(SimPrediction) near = plays_predict(plan, cluster, &options, NULL);
    g_assert_cmpint(gathers_ns(all), >, gathers_ns(near));
    g_assert_cmpint(gathers_ns(one), ==, gathers_ns(all));
    g_assert_cmpint(one->median_step_ns, ==, all->median_step_ns);
}

/* ---- stages --------------------------------------------------------------------------------- */

/* Two stages of six ranks: rank 0's next stage begins in its own node, rank 2's does not. Each
 * stage has groups of its own. */
static void test_stages(void) {
    g_autoptr(ModelCluster) cluster = plays_cluster("dgx-h100");
    Plan plan = groups_of(12, 6);
    plan.axes[PLAN_AXIS_REPLICATE] = 1;
    plan.axes[PLAN_AXIS_PIPELINE] = 2;
    g_assert_cmpuint(sim_network_path_to(cluster, &plan, 0, true).nodes, ==, 1);
    g_assert_cmpuint(sim_network_path_to_stage(cluster, &plan, 0, true).nodes, ==, 2);
    g_assert_cmpuint(sim_network_path_to_stage(cluster, &plan, 0, false).ranks, ==, 1);
    g_assert_cmpuint(sim_network_path_of_stage(cluster, &plan, PLAN_AXIS_SHARD, 0).nodes, ==, 1);
    g_assert_cmpuint(sim_network_path_of_stage(cluster, &plan, PLAN_AXIS_SHARD, 11).nodes, ==, 2);
    g_assert_cmpuint(sim_network_path(cluster, &plan, PLAN_AXIS_SHARD).nodes, ==, 2);
    SimNetworkPath stages = sim_network_path_of_stage(cluster, &plan, PLAN_AXIS_PIPELINE, 11);
    g_assert_cmpuint(stages.nodes, ==, 2);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/paths/the emptiest node holds others up", test_emptiest_node);
    g_test_add_func("/sim/paths/nine ranks", test_nine_ranks);
    g_test_add_func("/sim/paths/the slowest group", test_slowest_group);
    g_test_add_func("/sim/paths/of all groups", test_all_groups);
    g_test_add_func("/sim/paths/one stands for the slowest", test_one_stands_for_the_slowest);
    g_test_add_func("/sim/paths/stages", test_stages);
    return g_test_run();
}
