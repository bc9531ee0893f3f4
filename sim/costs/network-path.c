#include "sim/costs/network-path.h"

#include "plan/mesh.h"

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

/* The links among some GPUs of a node, as bits; gpus has a bit for each of them. */
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

/* How n ranks lie over nodes of a_node GPUs: rank `first`, and then every stride-th. */
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

/* Groups of n ranks each, which lie so far apart, side by side and one behind the other. */
typedef struct {
    uint32_t n, stride;
} Groups;

static Groups groups_of(const Plan *plan, PlanAxis axis) {
    return (Groups){plan->axes[axis], plan_axis_stride(plan, axis)};
}

static uint32_t place_in_group(Groups groups, uint32_t rank) {
    return rank / groups.stride % groups.n;
}

static SimNetworkPath path_through(const ModelCluster *cluster, Groups groups, uint32_t rank) {
    uint32_t first = rank - place_in_group(groups, rank) * groups.stride;
    return path_over(cluster, first, groups.stride, groups.n);
}

SimNetworkPath sim_network_path_of(const ModelCluster *cluster, const Plan *plan, PlanAxis axis,
                                   uint32_t rank) {
    return path_through(cluster, groups_of(plan, axis), rank);
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
static bool fill_nodes_evenly(Groups groups, uint64_t a_node) {
    uint64_t stride = groups.stride, block = stride * groups.n;
    return a_node % block == 0 ||
           (block % a_node == 0 && (a_node % stride == 0 || stride % a_node == 0));
}

/* The slowest path among the groups that begin with one of these ranks. */
static SimNetworkPath slowest_of(const ModelCluster *cluster, Groups groups, uint32_t first,
                                 uint32_t end) {
    uint64_t a_node = cluster->topology_gpus_per_node;
    SimNetworkPath slowest = path_through(cluster, groups, first);
    if (groups.n == 1 || fill_nodes_evenly(groups, a_node)) {
        bool by_pairs = cluster->has_nvlinks; /* where GPUs are not alike within a node */
        end = by_pairs ? first + (uint32_t)MIN(end - first, a_node) : first;
    }
    for (uint32_t rank = first + 1; rank < end; rank++) {
        if (place_in_group(groups, rank) == 0) {
            SimNetworkPath path = path_through(cluster, groups, rank);
            slowest = is_slower(&path, &slowest) ? path : slowest;
        }
    }
    return slowest;
}

SimNetworkPath sim_network_path_among(const ModelCluster *cluster, uint32_t n, uint32_t stride) {
    return slowest_of(cluster, (Groups){n, stride}, 0, n * stride);
}

SimNetworkPath sim_network_path(const ModelCluster *cluster, const Plan *plan, PlanAxis axis) {
    return slowest_of(cluster, groups_of(plan, axis), 0, plan->world);
}

SimNetworkPath sim_network_path_of_stage(const ModelCluster *cluster, const Plan *plan,
                                         PlanAxis axis, uint32_t rank) {
    uint32_t n = plan_ranks_of_stage(plan);
    uint32_t first = axis == PLAN_AXIS_PIPELINE ? 0 : rank / n * n;
    return slowest_of(cluster, groups_of(plan, axis), first, first + n);
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
