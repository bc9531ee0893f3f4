/* sim/costs/network.h - how long a collective takes alone.
 *
 * GPUs (a cluster with compute_capability): as NCCL chooses (nccl.h), and of the choice's terms,
 * latency l and transfer t: extra + latency_factor l + t / bandwidth_factor +
 * ramp_factor sqrt(l t). The four are measured, within a node and over several;
 * models/clusters/README.md says how. Where NVLinks join the GPUs of a node pair by pair, without a
 * switch, rings are as many as fit among the group's own (model_cluster_links_share); where they
 * leave some apart there is one, over PCIe.
 *
 * CPUs: a ring of n ranks on N nodes. Constants, path and formula stand apart:
 *   constants  the cluster's: base latency, latency a step and bandwidth of each kind of link
 *   path       sim_network_path(): which ranks the ring joins, how many of its hops leave a node,
 *              and what its slowest link carries
 *   formula    base + (steps - k) * intra + k * inter + moved / bandwidth, with
 *              steps = STEPS * (n - 1) of collectives.def, k = STEPS * (N - 1) of them between
 *              nodes, moved = bytes of the whole tensor * STEPS * (n - 1) / n, what a rank sends
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"
#include "sim/costs/nccl.h"
#include "sim/time.h"

/* What rings go over, a bit each; those of equal bits share. Where NVLinks join the GPUs of a node
 * pair by pair there is a bit below these two for each pair. */
static const uint64_t SIM_LINKS_NETWORK = (uint64_t)1 << 63;
static const uint64_t SIM_LINKS_NODE = (uint64_t)1 << 62; /* the node's switch, or its PCIe */

typedef struct {
    uint32_t ranks;        /* on the axis */
    uint32_t nodes;        /* that the group touches */
    uint32_t ranks_a_node; /* of the group, on the node that has most of them, and: */
    uint32_t least_a_node; /* on the one that has fewest, whose NICs hold the others up */
    double intra_step_ns, inter_step_ns;
    double bytes_per_ns;        /* of the slowest link; GB/s and bytes a nanosecond are equal */
    double reduce_bytes_per_ns; /* the same for collectives that add */
    uint64_t links;             /* that its rings go over */
    double node_channels;       /* NCCL's rings among its ranks of one node */
    const char *slowest;        /* "intra-node links" or "inter-node network" */
    bool nccl;                  /* then by this group: */
    SimNcclGroup group;
} SimNetworkPath;

/* Whether two paths of one axis of a cluster cost the same, whatever goes over them. */
bool sim_network_paths_equal(const SimNetworkPath *a, const SimNetworkPath *b);

/* The ring over one axis of the mesh, through a rank; ranks fill nodes in order. */
SimNetworkPath sim_network_path_of(const ModelCluster *cluster, const Plan *plan, PlanAxis axis,
                                   uint32_t rank);
/* The slowest of all groups of the axis, for a rank that stands for all; and of those in the stage
 * of a rank that stands for its stage. Groups may lie over nodes in several ways: of six on nodes
 * of eight, the first is in one node, the second in two. */
SimNetworkPath sim_network_path(const ModelCluster *cluster, const Plan *plan, PlanAxis axis);
SimNetworkPath sim_network_path_of_stage(const ModelCluster *cluster, const Plan *plan,
                                         PlanAxis axis, uint32_t rank);

/* Those of all axes, and the ways to the stages beside the rank's. */
enum {
    SIM_PATH_BEFORE = PLAN_N_AXES,
    SIM_PATH_BEHIND,
    SIM_N_PATHS
};
/* From a rank to its peer in the next or previous stage; a path of one rank if there is none. */
SimNetworkPath sim_network_path_to(const ModelCluster *cluster, const Plan *plan, uint32_t rank,
                                   bool behind);
/* The slowest such path of all ranks of the rank's stage. */
SimNetworkPath sim_network_path_to_stage(const ModelCluster *cluster, const Plan *plan,
                                         uint32_t rank, bool behind);

typedef struct {
    double latency_ns, transfer_ns;
} SimNetworkCost;

/* bytes: the whole tensor's, as in collectives.def. A group of one rank sends nothing. */
SimNetworkCost sim_network_cost(const ModelCluster *cluster, const SimNetworkPath *path,
                                PlanOpKind kind, double bytes);

/* NCCL's choice on this path (path->nccl must be set), with what the cluster forces. */
SimNcclChoice sim_network_choice(const ModelCluster *cluster, const SimNetworkPath *path,
                                 PlanOpKind kind, double bytes);
/* NCCL's expectation corrected by what was measured on the cluster. */
SimNetworkCost sim_network_measured(const ModelCluster *cluster, const SimNcclGroup *group,
                                    const SimNcclChoice *choice, double bytes);

static inline SimTime sim_network_time(const SimNetworkCost *cost) {
    return sim_time_from_ns(cost->latency_ns + cost->transfer_ns);
}
