#include "sim/costs/network.h"

#include <math.h>

SimNcclAlgo sim_network_forced_algo(const ModelCluster *cluster) {
    SimNcclAlgo algo = SIM_NCCL_N_ALGOS;
    return cluster->nccl_algo && sim_nccl_algo_parse(cluster->nccl_algo, &algo) ? algo
                                                                                : SIM_NCCL_N_ALGOS;
}

SimNcclProto sim_network_forced_proto(const ModelCluster *cluster) {
    SimNcclProto proto = SIM_NCCL_N_PROTOS;
    return cluster->nccl_proto && sim_nccl_proto_parse(cluster->nccl_proto, &proto)
               ? proto
               : SIM_NCCL_N_PROTOS;
}

/* Two GPUs on a switch of Hopper's and Blackwell's reach no more of what rings among more of them
 * carry: 250 of 365 GB/s on H100, 480 of 675 on B200 (tests/validation/collectives.csv). */
static const double two_ranks_share = 0.7;

static double share_of_rings(const ModelCluster *cluster, const SimNcclGroup *group) {
    bool two = group->ranks == 2 && group->nodes == 1 && !group->pcie && !cluster->has_nvlinks;
    return two && group->generation >= SIM_NCCL_HOPPER ? two_ranks_share : 1;
}

SimNetworkCost sim_network_measured(const ModelCluster *cluster, const SimNcclGroup *group,
                                    const SimNcclChoice *choice, double bytes) {
    bool far = group->nodes > 1;
    double latency = choice->terms.latency_us - choice->terms.sooner_us;
    double gb_per_s = choice->terms.gb_per_s * share_of_rings(cluster, group);
    double transfer = bytes / (1000 * gb_per_s);
    double extra = far ? cluster->collectives_far_extra_us : cluster->collectives_extra_us;
    double on_latency =
        far ? cluster->collectives_far_latency_factor : cluster->collectives_latency_factor;
    double on_bandwidth =
        far ? cluster->collectives_far_bandwidth_factor : cluster->collectives_bandwidth_factor;
    double ramp = far ? cluster->collectives_far_ramp_factor : cluster->collectives_ramp_factor;
    return (SimNetworkCost){
        .latency_ns = (extra + on_latency * latency + ramp * sqrt(latency * transfer)) * 1e3,
        .transfer_ns = transfer / on_bandwidth * 1e3,
    };
}

SimNcclChoice sim_network_choice(const ModelCluster *cluster, const SimNetworkPath *path,
                                 PlanOpKind kind, double bytes) {
    return sim_nccl_choose(&path->group, kind, bytes, sim_network_forced_algo(cluster),
                           sim_network_forced_proto(cluster));
}

static SimNetworkCost nccl_cost(const ModelCluster *cluster, const SimNetworkPath *path,
                                PlanOpKind kind, double bytes) {
    SimNcclChoice choice = sim_network_choice(cluster, path, kind, bytes);
    return sim_network_measured(cluster, &path->group, &choice, bytes);
}

/* Of the symmetric memory's barrier kernel: a one-shot all-reduce of 8 KiB on 8 H100, which is two
 * of them about some reads over NVLink in one kernel, takes 10.8 us (pull request 3 of
 * yifuwang/symm-mem-recipes). Assumed of that: 1.5 us between kernels, as long for the reads. */
static const double BARRIER_NS = 3900;

/* Copy engines reach 371 GB/s each way on H100 while all ranks give and take (NVIDIA's
 * p2pBandwidthLatencyTest: 742 both ways, NVIDIA/nccl issue 1264): what NCCL's rings are told that
 * NVLinks carry, 18 of 20.6. */
static double copied_per_ns(const SimNetworkPath *path) {
    return path->nccl ? path->group.channels * path->group.channel_gb_per_s : path->bytes_per_ns;
}

/* What peers do without NCCL, each by a kernel or a copy. What is offered is read and written
 * here. */
static SimNetworkCost peer_cost(const ModelCluster *cluster, const SimNetworkPath *path,
                                PlanOpKind kind, double bytes) {
    double memory = cluster->device_memory_gb_per_s * cluster->device_memory_efficiency;
    SimNetworkCost cost = {.latency_ns = cluster->device_launch_overhead_ns};
    if (kind == PLAN_OP_BARRIER) {
        cost.latency_ns += path->nccl ? BARRIER_NS : path->intra_step_ns;
    } else {
        cost.transfer_ns = kind == PLAN_OP_OFFER ? 2 * bytes / memory : bytes / copied_per_ns(path);
    }
    return cost;
}

SimNetworkCost sim_network_cost(const ModelCluster *cluster, const SimNetworkPath *path,
                                PlanOpKind kind, double bytes) {
    if (path->ranks < 2) {
        return (SimNetworkCost){0};
    }
    if (plan_op_is_of_peers(kind)) {
        return peer_cost(cluster, path, kind, bytes);
    }
    if (path->nccl) {
        return nccl_cost(cluster, path, kind, bytes);
    }
    double passes = plan_op_info(kind)->ring_steps;
    double steps = passes > 0 ? passes * (path->ranks - 1) : 1;
    double between = passes > 0 ? passes * (path->nodes - 1) : path->nodes > 1;
    double bytes_per_ns = plan_op_info(kind)->adds ? path->reduce_bytes_per_ns : path->bytes_per_ns;
    return (SimNetworkCost){
        .latency_ns = cluster->collectives_base_latency_us * 1e3 +
                      (steps - between) * path->intra_step_ns + between * path->inter_step_ns,
        .transfer_ns = bytes * plan_op_sent(kind, path->ranks) / bytes_per_ns,
    };
}
