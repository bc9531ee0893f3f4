#include "tests/sim/plays.h"

#include "tests/sim/toy.h"

ModelCluster *plays_cluster(const char *name) {
    g_autoptr(GError) error = NULL;
    g_autofree char *file = g_strconcat(name, ".ini", NULL);
    g_autofree char *path = g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), file, NULL);
    ModelCluster *cluster = model_cluster_read_file(path, &error);
    g_assert_no_error(error);
    cluster->jitter_gpu_percent = 0;
    return cluster;
}

SimPrediction *plays_predict(const Plan *plan, const ModelCluster *cluster,
                             const SimOptions *options, Trace *trace) {
    g_autoptr(GError) error = NULL;
    SimPrediction *prediction = sim_predict(plan, cluster, options, trace, &error);
    g_assert_no_error(error);
    return prediction;
}

void plays_assert_equal(const SimPrediction *one, const SimPrediction *all) {
    for (uint32_t step = 0; step < one->n_steps; step++) {
        g_assert_cmpint(one->step_ns[step], ==, all->step_ns[step]);
    }
    for (unsigned share = 0; share < SIM_N_CAUSES; share++) {
        g_assert_cmpint(one->cause_ns[share], ==, all->cause_ns[share]);
    }
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        g_assert_cmpuint(one->collectives[kind].count, ==, all->collectives[kind].count);
        g_assert_cmpint(one->collectives[kind].total_ns, ==, all->collectives[kind].total_ns);
        g_assert_cmpint(one->collectives[kind].exposed_ns, ==, all->collectives[kind].exposed_ns);
    }
    g_assert_cmpuint(one->peak.at.allocated_bytes, ==, all->peak.at.allocated_bytes);
    g_assert_cmpuint(one->peak_reserved_bytes, ==, all->peak_reserved_bytes);
}

void plays_quicken(ModelCluster *cluster) {
    cluster->host_launch_us = cluster->host_collective_us = 0.1;
    cluster->host_alloc_us = cluster->host_free_us = cluster->host_mark_us = 0.01;
    cluster->host_record_us = cluster->host_wait_us = cluster->host_host_wait_us = 0.01;
    cluster->host_unit_us = cluster->host_parameter_us = 0;
    cluster->host_list_us = cluster->host_dtensor_us = 0;
}

ModelCluster *plays_compute_bound(const char *name) {
    ModelCluster *cluster = plays_cluster(name);
    plays_quicken(cluster);
    return cluster;
}

ModelCluster *plays_cluster_and(const char *name, const char *section) {
    g_autofree char *file = g_strconcat(name, ".ini", NULL);
    g_autofree char *path = g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), file, NULL);
    g_autoptr(GError) error = NULL;
    g_autofree char *text = model_cluster_whole_text(path, NULL, &error);
    g_assert_no_error(error);
    g_autofree char *mixed = g_strconcat(text, section, NULL);
    ModelCluster *cluster = model_cluster_read(mixed, strlen(mixed), path, &error);
    g_assert_no_error(error);
    return cluster;
}

SimPrediction *plays_every_rank(const Plan *plan, const ModelCluster *cluster, SimOptions options) {
    options.steps = options.steps ? options.steps : 4;
    options.every_rank = true;
    return plays_predict(plan, cluster, &options, NULL);
}

ModelCluster plays_busy_cluster(void) {
    ModelCluster cluster = toy_cluster;
    cluster.device_matmul_fp32_tflops = 1;
    cluster.device_memory_gb_per_s = 100;
    cluster.device_launch_overhead_ns = 1000;
    cluster.host_alloc_us = 0.5;
    cluster.host_free_us = 0.25;
    cluster.host_launch_us = 2;
    cluster.host_collective_us = 4;
    cluster.host_record_us = 0.5;
    cluster.host_wait_us = 0.5;
    cluster.allocator_segment_new_us = 50;
    cluster.allocator_segment_free_us = 50;
    cluster.intra_node_bus_gb_per_s = 10;
    cluster.intra_node_reduce_bus_gb_per_s = 10;
    cluster.intra_node_step_latency_us = 1;
    cluster.collectives_base_latency_us = 5;
    return cluster;
}

SimPrediction *plays_steps(const Plan *plan, const ModelCluster *cluster, uint32_t steps,
                           Trace *trace) {
    const SimOptions options = {.steps = steps};
    return plays_predict(plan, cluster, &options, trace);
}
