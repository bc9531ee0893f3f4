/* The device "sim" on plans of a few lines: when each op runs, when the host goes on. */
#include <glib.h>

#include "sim/costs/network.h"
#include "sim/predict.h"
#include "tests/sim/toy.h"

static SimPrediction *predict(const char *body, const char *buffers, const ModelCluster *cluster,
                              Trace *trace) {
    g_autoptr(Plan) plan = toy_plan(body, buffers);
    const SimOptions options = {.steps = 3};
    g_autoptr(GError) error = NULL;
    SimPrediction *prediction = sim_predict(plan, cluster, &options, trace, &error);
    g_assert_no_error(error);
    return prediction;
}

/* What the ops of a step do. The prediction's strings may be gone with the plan: none is looked
 * at. */
static void assert_timeline(const char *body, const ModelCluster *cluster, int32_t step,
                            const char *expected) {
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction = predict(body, "", cluster, trace);
    g_assert_nonnull(prediction);
    g_autoptr(GError) error = NULL;
    g_assert_true(trace_check(trace, &error));
    g_assert_no_error(error);
    g_autofree char *timeline = toy_timeline(trace, step);
    g_assert_cmpstr(timeline, ==, expected);
}

static void test_lanes_run_beside_each_other(void) {
    assert_timeline(TOY_FILL TOY_GATHER TOY_FILL, &toy_cluster, 0,
                    "fill:0-400 all_gather:0-700 fill:400-800");
}

static void test_lane_waits_for_event(void) {
    assert_timeline(TOY_GATHER "record gather e0\nwait compute e0\n" TOY_FILL, &toy_cluster, 0,
                    "all_gather:0-700 fill:700-1100");
    /* A gather that waits for the kernel of the step before: they take turns. */
    assert_timeline(TOY_GATHER "record gather e0\nwait compute e0\n" TOY_FILL
                               "record compute e1\nwait gather e1\n",
                    &toy_cluster, 2, "all_gather:0-700 fill:700-1100");
}

static void test_one_communicator_an_axis(void) {
    /* The all-reduce sends twice as much; its lane is free at once, its axis is not. */
    assert_timeline(TOY_GATHER TOY_REDUCE TOY_FILL, &toy_cluster, 0,
                    "all_gather:0-700 all_reduce:700-2100 fill:0-400");
    /* Issue order rules, even where the first one's lane is late. */
    assert_timeline(TOY_FILL "record compute e0\nwait gather e0\n" TOY_GATHER TOY_REDUCE,
                    &toy_cluster, 0, "fill:0-400 all_gather:400-1100 all_reduce:1100-2500");
}

/* A queue of two: the host issues the third when the first has ended, the fourth when the second
 * has. */
static void test_full_queue_holds_the_host(void) {
    ModelCluster cluster = toy_cluster;
    cluster.host_queue_depth = 2;
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction =
        predict(TOY_FILL TOY_FILL TOY_FILL TOY_FILL, "", &cluster, trace);
    g_assert_nonnull(prediction);
    static const int64_t issued[] = {0, 0, 400, 800};
    unsigned n = 0;
    for (guint i = 0; i < trace->ops->len && n < G_N_ELEMENTS(issued); i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (row->step == 0) {
            g_assert_cmpint(row->host_issue_ns, ==, issued[n++]);
        }
    }
    g_assert_cmpuint(n, ==, G_N_ELEMENTS(issued));
}

static void test_host_issues_in_time(void) {
    ModelCluster cluster = toy_cluster;
    cluster.host_launch_us = 1;
    cluster.host_collective_us = 2;
    assert_timeline(TOY_FILL TOY_GATHER TOY_FILL, &cluster, 0,
                    "fill:1000-1400 all_gather:3000-3700 fill:4000-4400");
}

static void test_host_waits(void) {
    ModelCluster cluster = toy_cluster;
    cluster.host_launch_us = 0.1;
    cluster.host_host_wait_us = 0.05;
    assert_timeline(TOY_GATHER "record gather e0\nhost_wait e0\n" TOY_FILL, &cluster, 0,
                    "all_gather:0-700 fill:800-1200");
    g_autoptr(SimPrediction) prediction =
        predict(TOY_GATHER "record gather e0\nhost_wait e0\n" TOY_FILL, "", &cluster, NULL);
    /* Busy: two launches and a wait, 0.1 us of a collective not counted. */
    g_assert_cmpint(prediction->host_ns, ==, 150);
    g_assert_cmpint(prediction->host_blocked_ns, ==, 650);
}

/* A kind that was measured by itself goes at its own rate: 400 bytes at 0.5 GB/s. */
static void test_measured_kernel(void) {
    ModelCluster cluster = toy_cluster;
    cluster.kernel_gb_per_s[PLAN_OP_FILL] = 0.5;
    assert_timeline(TOY_FILL TOY_FILL, &cluster, 0, "fill:0-800 fill:800-1600");
    cluster.kernel_gb_per_s[PLAN_OP_FILL] = 0;
    cluster.kernel_gb_per_s[PLAN_OP_COPY] = 0.5;
    assert_timeline(TOY_FILL, &cluster, 0, "fill:0-400");
}

static void test_launch_overhead(void) {
    ModelCluster cluster = toy_cluster;
    cluster.device_launch_overhead_ns = 50;
    assert_timeline(TOY_FILL TOY_FILL, &cluster, 0, "fill:0-450 fill:450-900");
}

static void test_lone_collective_takes_its_formula(void) {
    ModelCluster cluster = toy_cluster;
    cluster.collectives_base_latency_us = 3;
    cluster.intra_node_step_latency_us = 0.5;
    cluster.intra_node_reduce_bus_gb_per_s = 0.5;
    /* 3000 + 7 steps of 500, and 700 bytes; 3000 + 14 steps of 500, and 1400 bytes at half
     * speed. */
    assert_timeline(TOY_GATHER TOY_FILL, &cluster, 0, "all_gather:0-7200 fill:0-400");
    assert_timeline(TOY_REDUCE TOY_FILL, &cluster, 0, "all_reduce:0-12800 fill:0-400");
}

static void test_ring_over_nodes(void) {
    g_autoptr(Plan) plan = toy_plan(TOY_FILL, "");
    ModelCluster cluster = toy_cluster;
    cluster.topology_nodes = 4;
    cluster.topology_gpus_per_node = 2;
    cluster.intra_node_step_latency_us = 1;
    cluster.inter_node_step_latency_us = 10;
    cluster.inter_node_nic_gb_per_s = 0.125; /* two NICs a node: a quarter of the bus */
    SimNetworkPath path = sim_network_path(&cluster, plan, PLAN_AXIS_SHARD);
    g_assert_cmpuint(path.ranks, ==, 8);
    g_assert_cmpuint(path.nodes, ==, 4);
    g_assert_cmpuint(path.ranks_a_node, ==, 2);
    SimNetworkCost cost = sim_network_cost(&cluster, &path, PLAN_OP_ALL_GATHER, 800);
    g_assert_cmpfloat(cost.latency_ns, ==, 4 * 1000 + 3 * 10000);
    g_assert_cmpfloat(cost.transfer_ns, ==, 2800);
    /* An axis of one rank sends nothing. */
    path = sim_network_path(&cluster, plan, PLAN_AXIS_REPLICATE);
    cost = sim_network_cost(&cluster, &path, PLAN_OP_ALL_REDUCE, 800);
    g_assert_cmpint(sim_network_time(&cost), ==, 0);
}

/* 2 x 10 outputs of 10 terms: 400 operations, 560 bytes. */
static void test_roofline(void) {
    const char *body = "launch compute linear m=2 n=10 k=10 x=b4 w=b5 b=- y=b6\n";
    const char *buffers = "b4 80 fp32 temporary/op compute - cfst x\n"
                          "b5 400 fp32 temporary/op compute - cfst w\n"
                          "b6 80 fp32 temporary/op compute - cfst y\n";
    ModelCluster cluster = toy_cluster;
    g_autoptr(SimPrediction) bytes = predict(body, buffers, &cluster, NULL);
    g_assert_cmpint(bytes->median_step_ns, ==, 560);
    g_assert_cmpint(bytes->cause_ns[SIM_CAUSE_MEMORY], ==, 560);
    g_assert_cmpfloat(bytes->flops, ==, 400);
    g_assert_cmpfloat_with_epsilon(bytes->mfu, 400.0 / 560, 1e-12);
    cluster.device_matmul_efficiency = 0.5;
    g_autoptr(SimPrediction) arithmetic = predict(body, buffers, &cluster, NULL);
    g_assert_cmpint(arithmetic->median_step_ns, ==, 800);
    g_assert_cmpint(arithmetic->cause_ns[SIM_CAUSE_ARITHMETIC], ==, 800);
    /* Only a matrix product asks for the matrix units. */
    cluster.device_matmul_fp32_tflops = 0;
    g_autoptr(SimPrediction) lacking = predict(body, buffers, &cluster, NULL);
    g_assert_cmpstr(lacking->unsupported_dtype, ==, "fp32");
    g_autoptr(SimPrediction) needless = predict(TOY_FILL, "", &cluster, NULL);
    g_assert_null(needless->unsupported_dtype);
}

/* Every nanosecond of a step is somewhere. */
static void test_shares_sum_up(void) {
    ModelCluster cluster = toy_cluster;
    cluster.host_launch_us = 0.3;
    cluster.device_launch_overhead_ns = 7;
    g_autoptr(SimPrediction) prediction =
        predict(TOY_GATHER "record gather e0\nwait compute e0\n" TOY_FILL TOY_OTHER
                           "record reduce e1\nwait compute e1\n" TOY_FILL TOY_REDUCE,
                "", &cluster, NULL);
    SimTime sum = 0;
    for (unsigned i = 0; i < SIM_N_CAUSES; i++) {
        sum += prediction->cause_ns[i];
    }
    g_assert_cmpint(sum, ==, prediction->median_step_ns);
    g_assert_cmpint(prediction->cause_ns[SIM_CAUSE_OVERHEAD], ==, 14);
    g_assert_cmpint(prediction->cause_ns[SIM_CAUSE_NETWORK + PLAN_AXIS_SHARD], >, 0);
}

/* A block that another lane has marked goes back only when that lane has passed, and only the next
 * allocation sees it: the second buffer cannot have the first one's place at once, the third
 * can. */
static void test_marks(void) {
    const char *body = "alloc b4\nlaunch compute fill n=1024 value=0 y=b4\n"
                       "record compute e0\nwait gather e0\nmark b4 gather\n" TOY_GATHER "free b4\n"
                       "alloc b5\nlaunch compute fill n=1024 value=0 y=b5\nfree b5\n"
                       "record gather e1\nhost_wait e1\n"
                       "alloc b6\nlaunch compute fill n=1024 value=0 y=b6\nfree b6\n";
    const char *buffers = "b4 4096 fp32 temporary/op compute - - marked\n"
                          "b5 4096 fp32 temporary/op compute - - second\n"
                          "b6 4096 fp32 temporary/op compute - - third\n";
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction = predict(body, buffers, &toy_cluster, trace);
    /* b0 to b3: 512 + 1024 + 1024 + 512 bytes; each of the others 4096. */
    g_assert_cmpuint(prediction->peak.at.allocated_bytes, ==, 3072 + 4096);
    g_assert_cmpuint(prediction->peak_active_bytes, ==, 3072 + 2 * 4096);
    uint64_t active[6];
    guint n = 0;
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->step == 2) {
            g_assert_cmpuint(n, <, 6);
            active[n++] = row->active - 3072;
        }
    }
    const uint64_t expected[6] = {4096, 4096, 8192, 4096, 4096, 0};
    g_assert_cmpmem(active, sizeof active, expected, sizeof expected);
}

static void test_segments_cost_host_time(void) {
    ModelCluster cluster = toy_cluster;
    cluster.allocator_segment_new_us = 5;
    const char *body = "alloc b4\nlaunch compute fill n=1024 value=0 y=b4[1024]\nfree b4\n";
    /* In the large pool, which nothing else uses: one segment, made in the first step. */
    const char *buffers = "b4 4194304 fp32 temporary/op compute - - large\n";
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction = predict(body, buffers, &cluster, trace);
    g_autofree char *first = toy_timeline(trace, 0);
    g_assert_cmpstr(first, ==, "fill:5000-9096");
    g_autofree char *steady = toy_timeline(trace, 2);
    g_assert_cmpstr(steady, ==, "fill:0-4096");
    g_assert_cmpuint(prediction->alloc_retries, ==, 0);
}

/* 6 MiB of small segments and one of 12 leave no room for one of 14: the cached one is given back,
 * which waits for the kernel that still runs in it. From then on the larger one serves both. */
static const char retry_body[] = "alloc b4\nlaunch compute fill n=3145728 value=0 y=b4\nfree b4\n"
                                 "alloc b5\nlaunch compute fill n=3670016 value=0 y=b5\nfree b5\n";
static const char retry_buffers[] = "b4 12582912 fp32 temporary/op compute - - smaller\n"
                                    "b5 14680064 fp32 temporary/op compute - - larger\n";

static ModelCluster retry_cluster(void) {
    ModelCluster cluster = toy_cluster;
    cluster.device_memory_bytes = 24 << 20;
    cluster.allocator_segment_new_us = 5;
    cluster.allocator_segment_free_us = 3;
    return cluster;
}

static void test_retry_waits_for_the_device(void) {
    ModelCluster cluster = retry_cluster();
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction = predict(retry_body, retry_buffers, &cluster, trace);
    g_assert_true(prediction->fits);
    g_assert_cmpuint(prediction->alloc_retries, ==, 1);
    g_assert_cmpuint(prediction->segment_frees, ==, 1);
    /* A segment; the kernel; then no room, the segment given back, a new one: 5 + 3 + 5 us, of
     * which the first 5 pass while the kernel runs. */
    g_autofree char *first = toy_timeline(trace, 0);
    g_assert_cmpstr(first, ==, "fill:5000-12587912 fill:12595912-27275976");
    g_autofree char *steady = toy_timeline(trace, 2);
    g_assert_cmpstr(steady, ==, "fill:0-12582912 fill:12582912-27262976");
}

/* The same, where a MiB takes 1 us to map, and 2 if it was given back: 12 us for the first segment,
 * 6 + 2 x 8 for the second, as no more than 6 MiB of 24 have never been held. */
static void test_what_was_given_back_is_mapped_slower(void) {
    ModelCluster cluster = retry_cluster();
    cluster.allocator_segment_new_gb_per_s = 1048.576;
    cluster.allocator_segment_again_gb_per_s = 524.288;
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SimPrediction) prediction = predict(retry_body, retry_buffers, &cluster, trace);
    g_assert_cmpuint(prediction->alloc_retries, ==, 1);
    g_autofree char *first = toy_timeline(trace, 0);
    g_assert_cmpstr(first, ==, "fill:17000-12599912 fill:12629912-27309976");
    /* Without that key: as fast as any. */
    cluster.allocator_segment_again_gb_per_s = 0;
    g_autoptr(Trace) alike = trace_new();
    g_autoptr(SimPrediction) as_new = predict(retry_body, retry_buffers, &cluster, alike);
    g_assert_cmpuint(as_new->alloc_retries, ==, 1);
    g_autofree char *faster = toy_timeline(alike, 0);
    g_assert_cmpstr(faster, ==, "fill:17000-12599912 fill:12621912-27301976");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/device/lanes_run_beside_each_other", test_lanes_run_beside_each_other);
    g_test_add_func("/sim/device/lane_waits_for_event", test_lane_waits_for_event);
    g_test_add_func("/sim/device/one_communicator_an_axis", test_one_communicator_an_axis);
    g_test_add_func("/sim/device/host_issues_in_time", test_host_issues_in_time);
    g_test_add_func("/sim/device/full_queue_holds_the_host", test_full_queue_holds_the_host);
    g_test_add_func("/sim/device/host_waits", test_host_waits);
    g_test_add_func("/sim/device/launch_overhead", test_launch_overhead);
    g_test_add_func("/sim/device/measured_kernel", test_measured_kernel);
    g_test_add_func("/sim/device/lone_collective_takes_its_formula",
                    test_lone_collective_takes_its_formula);
    g_test_add_func("/sim/device/ring_over_nodes", test_ring_over_nodes);
    g_test_add_func("/sim/device/roofline", test_roofline);
    g_test_add_func("/sim/device/shares_sum_up", test_shares_sum_up);
    g_test_add_func("/sim/device/marks_hold_blocks", test_marks);
    g_test_add_func("/sim/device/segments_cost_host_time", test_segments_cost_host_time);
    g_test_add_func("/sim/device/retry_waits_for_the_device", test_retry_waits_for_the_device);
    g_test_add_func("/sim/device/what_was_given_back_is_mapped_slower",
                    test_what_was_given_back_is_mapped_slower);
    return g_test_run();
}
