#include "tests/oracle/predicted.h"

#include "cli/source/data-dir.h"
#include "sim/predict.h"

static void without_communication(ModelCluster *cluster, uint64_t ranks) {
    cluster->topology_nodes = 1;
    cluster->topology_gpus_per_node = ranks;
    cluster->device_compute_capability = 0;
    cluster->intra_node_bus_gb_per_s = cluster->intra_node_reduce_bus_gb_per_s = 1e6;
    cluster->intra_node_step_latency_us = 0;
    cluster->collectives_base_latency_us = 0;
}

Trace *oracle_predicted(const Plan *plan, uint32_t rank, uint32_t steps, uint64_t allocator_bytes,
                        MemoryAnswers *answers, GError **error) {
    g_autofree char *path = cli_data_find(CLI_DATA_CLUSTERS, "h200-node", error);
    g_autoptr(ModelCluster) cluster = path ? model_cluster_read_file(path, error) : NULL;
    if (!cluster) {
        return NULL;
    }
    without_communication(cluster, plan->world);
    if (allocator_bytes) {
        cluster->device_memory_bytes = model_cluster_outside_bytes(cluster) + allocator_bytes;
    }
    g_autoptr(Trace) trace = trace_new();
    SimOptions options = {.steps = steps, .answers = answers, .rank = rank};
    g_autoptr(SimPrediction) prediction = sim_predict(plan, cluster, &options, trace, error);
    return prediction ? g_steal_pointer(&trace) : NULL;
}
