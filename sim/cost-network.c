#include "sim/cost-network.h"

/* Rank 0's group on an axis: ranks 0, stride, 2 * stride, ... The shard axis is the inner one. */
static uint64_t stride_of(const Plan *plan, PlanAxis axis) {
    switch (axis) {
    case PLAN_AXIS_REPLICATE:
        return plan->axes[PLAN_AXIS_SHARD];
    case PLAN_AXIS_SHARD:
    case PLAN_AXIS_PART:
    case PLAN_AXIS_NONE:
    case PLAN_N_AXES:
        break;
    }
    return 1;
}

static bool adds(PlanOpKind kind) {
    return kind == PLAN_OP_REDUCE_SCATTER || kind == PLAN_OP_ALL_REDUCE;
}

SimNetworkPath sim_network_path(const ModelCluster *cluster, const Plan *plan, PlanAxis axis) {
    uint64_t stride = stride_of(plan, axis), a_node = cluster->topology_gpus_per_node;
    SimNetworkPath path = {
        .ranks = plan->axes[axis],
        .nodes = 1,
        .intra_step_ns = cluster->intra_node_step_latency_us * 1e3,
        .inter_step_ns = cluster->inter_node_step_latency_us * 1e3,
        .bytes_per_ns = cluster->intra_node_bus_gb_per_s,
        .reduce_bytes_per_ns = cluster->intra_node_reduce_bus_gb_per_s,
        .slowest = "intra-node links",
    };
    uint32_t here = 0;
    uint64_t node = 0;
    for (uint64_t i = 0; i < path.ranks; i++) {
        if (i * stride / a_node != node) {
            node = i * stride / a_node;
            path.nodes++;
            here = 0;
        }
        here++;
        path.ranks_a_node = MAX(path.ranks_a_node, here);
    }
    /* NCCL lays as many rings as a node has NICs, so every NIC beside a rank of the group carries a
     * share of what crosses. */
    double network = cluster->inter_node_nic_gb_per_s * path.ranks_a_node;
    if (path.nodes > 1 && network < path.bytes_per_ns) {
        path.bytes_per_ns = network;
        path.slowest = "inter-node network";
    }
    if (path.nodes > 1) {
        path.reduce_bytes_per_ns = MIN(path.reduce_bytes_per_ns, network);
    }
    return path;
}

SimNetworkCost sim_network_cost(const ModelCluster *cluster, const SimNetworkPath *path,
                                PlanOpKind kind, double bytes) {
    if (path->ranks < 2) {
        return (SimNetworkCost){0};
    }
    double passes = plan_op_info(kind)->ring_steps;
    double steps = passes * (path->ranks - 1), between = passes * (path->nodes - 1);
    double bytes_per_ns = adds(kind) ? path->reduce_bytes_per_ns : path->bytes_per_ns;
    return (SimNetworkCost){
        .latency_ns = cluster->collectives_base_latency_us * 1e3 +
                      (steps - between) * path->intra_step_ns + between * path->inter_step_ns,
        .transfer_ns = bytes * steps / path->ranks / bytes_per_ns,
    };
}
