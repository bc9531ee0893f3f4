#include "sim/costs/network.h"

#include <math.h>

/* Rings that NCCL's search finds in a node, and what each carries. */
typedef struct {
    double channels, gb_per_s;
    bool nvlink;
} Rings;

static Rings rings_among(const ModelCluster *cluster, uint32_t gpus) {
    double share = model_cluster_links_share(cluster, gpus);
    return share > 0 ? (Rings){share * (double)cluster->intra_node_nccl_channels,
                               cluster->intra_node_nccl_channel_gb_per_s, cluster->intra_node_ll128}
                     : (Rings){1, cluster->intra_node_pcie_gb_per_s, false};
}

/* Of ranks on one node: gpus has a bit for each. */
static uint64_t links_among(const ModelCluster *cluster, uint32_t gpus) {
    if (!cluster->has_nvlinks || model_cluster_links_share(cluster, gpus) == 0) {
        return SIM_LINKS_NODE;
    }
    uint64_t links = 0;
    for (unsigned a = 0; a < MODEL_MOST_LINKED; a++) {
        for (unsigned b = a + 1; b < MODEL_MOST_LINKED; b++) {
            bool joins = (gpus >> a & 1) && (gpus >> b & 1) && cluster->nvlinks[a][b];
            links |= (uint64_t)joins << (a * MODEL_MOST_LINKED + b);
        }
    }
    return links;
}

/* Between nodes each NIC beside a rank of the group carries a ring, as far as all nodes have one:
 * NCCL takes as many channels as the rank that finds the fewest (src/init.cc). */
static SimNcclGroup nccl_group(const ModelCluster *cluster, const SimNetworkPath *path,
                               const Rings *near) {
    bool far = path->nodes > 1;
    double nics = far ? MIN(path->least_a_node * cluster->inter_node_nic_gb_per_s,
                            near->channels * near->gb_per_s)
                      : 0;
    return (SimNcclGroup){
        .generation = sim_nccl_generation(cluster->device_compute_capability),
        .ranks = path->ranks,
        .nodes = path->nodes,
        .ranks_a_node = path->ranks_a_node,
        .least_a_node = path->least_a_node,
        .channels = far ? path->least_a_node : near->channels,
        .channel_gb_per_s = far ? nics / path->least_a_node : near->gb_per_s,
        .near_gb_per_s = near->channels * near->gb_per_s,
        .pcie = !near->nvlink,
        .before_2_23 = cluster->collectives_nccl_version < 22300,
        .nvls_heads = (double)cluster->intra_node_nvls_heads,
        .nvls_head_gb_per_s = cluster->intra_node_nvls_head_gb_per_s,
        .barred = {[SIM_NCCL_LL] = far && !cluster->inter_node_ll,
                   [SIM_NCCL_LL128] = (path->ranks_a_node > 1 && !near->nvlink) ||
                                      (far && !cluster->inter_node_ll128)},
    };
}

/* How a group lies over nodes: of its ranks, how many one node has. */
typedef struct {
    uint32_t nodes, most, least;
    uint32_t gpus; /* a bit each, of the node that has most */
} Spread;

/* Of n ranks, each so many behind the one before. */
static Spread spread_of(uint64_t a_node, uint64_t first, uint64_t stride, uint32_t n) {
    Spread spread = {.least = n};
    for (uint64_t i = 0; i < n;) {
        uint64_t node = (first + i * stride) / a_node;
        uint32_t here = 0, gpus = 0;
        for (; i < n && (first + i * stride) / a_node == node; i++) {
            gpus |= model_gpu_bit((first + i * stride) % a_node);
            here++;
        }
        spread.nodes++;
        spread.gpus = here > spread.most ? gpus : spread.gpus;
        spread.most = MAX(spread.most, here);
        spread.least = MIN(spread.least, here);
    }
    return spread;
}

static SimNetworkPath path_over(const ModelCluster *cluster, uint64_t first, uint64_t stride,
                                uint32_t n) {
    Spread spread = spread_of(cluster->topology_gpus_per_node, first, stride, n);
    SimNetworkPath path = {
        .ranks = n,
        .nodes = spread.nodes,
        .ranks_a_node = spread.most,
        .least_a_node = spread.least,
        .intra_step_ns = cluster->intra_node_step_latency_us * 1e3,
        .inter_step_ns = cluster->inter_node_step_latency_us * 1e3,
        .bytes_per_ns = model_cluster_bus_gb_per_s(cluster, false),
        .reduce_bytes_per_ns = model_cluster_bus_gb_per_s(cluster, true),
        .slowest = "intra-node links",
    };
    /* All that a node's ranks lack enters by the NICs beside them. */
    double network = cluster->inter_node_nic_gb_per_s * path.least_a_node;
    if (path.nodes > 1 && network < path.bytes_per_ns) {
        path.bytes_per_ns = network;
        path.slowest = "inter-node network";
    }
    if (path.nodes > 1) {
        path.reduce_bytes_per_ns = MIN(path.reduce_bytes_per_ns, network);
    }
    Rings near = rings_among(cluster, spread.gpus);
    path.links = path.nodes > 1 ? SIM_LINKS_NETWORK : links_among(cluster, spread.gpus);
    path.node_channels = near.channels;
    path.nccl = cluster->device_compute_capability > 0;
    if (path.nccl) {
        path.group = nccl_group(cluster, &path, &near);
        path.slowest = path.nodes > 1 ? "inter-node network" : "intra-node links";
    }
    return path;
}

/* What else there is of a path follows from these and the cluster. */
bool sim_network_paths_equal(const SimNetworkPath *a, const SimNetworkPath *b) {
    return a->ranks == b->ranks && a->nodes == b->nodes && a->ranks_a_node == b->ranks_a_node &&
           a->least_a_node == b->least_a_node && a->links == b->links &&
           a->node_channels == b->node_channels && a->group.pcie == b->group.pcie &&
           a->group.near_gb_per_s == b->group.near_gb_per_s;
}

/* ---- of one rank, and of whoever stands for others ------------------------------------------ */

SimNetworkPath sim_network_path_to(const ModelCluster *cluster, const Plan *plan, uint32_t rank,
                                   bool behind) {
    uint32_t place = plan_rank_on_axis(plan, rank, PLAN_AXIS_PIPELINE);
    uint32_t stride = plan_axis_stride(plan, PLAN_AXIS_PIPELINE);
    uint32_t places = plan->axes[PLAN_AXIS_PIPELINE];
    bool is_there = behind ? place + 1 < places : place > 0;
    if (!is_there && places > 2 && plan_stages_of_rank(plan) > 1) { /* the last and the first */
        return path_over(cluster, rank - place * stride, (places - 1) * stride, 2);
    }
    return path_over(cluster, is_there && !behind ? rank - stride : rank, stride, is_there ? 2 : 1);
}

SimNetworkPath sim_network_path_of(const ModelCluster *cluster, const Plan *plan, PlanAxis axis,
                                   uint32_t rank) {
    uint64_t stride = plan_axis_stride(plan, axis);
    return path_over(cluster, rank - plan_rank_on_axis(plan, rank, axis) * stride, stride,
                     plan->axes[axis]);
}

/* What carries less, or else goes farther. */
static bool is_slower(const SimNetworkPath *path, const SimNetworkPath *than) {
    double rate =
        path->nccl ? path->group.channels * path->group.channel_gb_per_s : path->bytes_per_ns;
    double other =
        than->nccl ? than->group.channels * than->group.channel_gb_per_s : than->bytes_per_ns;
    return rate < other || (rate == other && path->nodes > than->nodes);
}

/* Each node has as many ranks of each group: nodes are made up of whole blocks of neighbouring
 * groups, or blocks of whole nodes. */
static bool fill_nodes_evenly(uint64_t a_node, uint64_t stride, uint64_t n) {
    uint64_t block = stride * n;
    return a_node % block == 0 ||
           (block % a_node == 0 && (a_node % stride == 0 || stride % a_node == 0));
}

/* Of the groups of an axis that begin with one of these ranks. */
static SimNetworkPath slowest_of(const ModelCluster *cluster, const Plan *plan, PlanAxis axis,
                                 uint32_t first, uint32_t end) {
    uint64_t a_node = cluster->topology_gpus_per_node;
    uint32_t stride = plan_axis_stride(plan, axis), n = plan->axes[axis];
    SimNetworkPath slowest = sim_network_path_of(cluster, plan, axis, first);
    if (n == 1 || fill_nodes_evenly(a_node, stride, n)) {
        bool by_pairs = cluster->has_nvlinks; /* where GPUs are not alike within a node */
        end = by_pairs ? first + (uint32_t)MIN(end - first, a_node) : first;
    }
    for (uint32_t rank = first + 1; rank < end; rank++) {
        if (plan_rank_on_axis(plan, rank, axis) == 0) {
            SimNetworkPath path = sim_network_path_of(cluster, plan, axis, rank);
            slowest = is_slower(&path, &slowest) ? path : slowest;
        }
    }
    return slowest;
}

SimNetworkPath sim_network_path(const ModelCluster *cluster, const Plan *plan, PlanAxis axis) {
    return slowest_of(cluster, plan, axis, 0, plan->world);
}

SimNetworkPath sim_network_path_of_stage(const ModelCluster *cluster, const Plan *plan,
                                         PlanAxis axis, uint32_t rank) {
    uint32_t n = plan_ranks_of_stage(plan);
    uint32_t first = axis == PLAN_AXIS_PIPELINE ? 0 : rank / n * n;
    return slowest_of(cluster, plan, axis, first, first + n);
}

SimNetworkPath sim_network_path_to_stage(const ModelCluster *cluster, const Plan *plan,
                                         uint32_t rank, bool behind) {
    uint32_t n = plan_ranks_of_stage(plan), first = rank / n * n;
    SimNetworkPath slowest = sim_network_path_to(cluster, plan, first, behind);
    for (uint32_t other = first + 1; other < first + n; other++) {
        SimNetworkPath path = sim_network_path_to(cluster, plan, other, behind);
        slowest = is_slower(&path, &slowest) ? path : slowest;
    }
    return slowest;
}

static SimNcclAlgo forced_algo(const ModelCluster *cluster) {
    SimNcclAlgo algo = SIM_NCCL_N_ALGOS;
    return cluster->nccl_algo && sim_nccl_algo_parse(cluster->nccl_algo, &algo) ? algo
                                                                                : SIM_NCCL_N_ALGOS;
}

static SimNcclProto forced_proto(const ModelCluster *cluster) {
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
    return sim_nccl_choose(&path->group, kind, bytes, forced_algo(cluster), forced_proto(cluster));
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
