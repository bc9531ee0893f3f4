/* sim/costs/network-path.h - what a group's collectives go over: how its ranks lie over nodes, what
 * the slowest of their links carries, and what NCCL's search finds among them.
 *
 * Where NVLinks join the GPUs of a node pair by pair, without a switch, rings are as many as fit
 * among the group's own (model_cluster_links_share); where they leave some apart there is one, over
 * PCIe.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"
#include "sim/costs/nccl.h"

/* What rings go over, a bit each; those of equal bits share. Where NVLinks join the GPUs of a node
 * pair by pair there is a bit below these two for each pair. */
static const uint64_t SIM_LINKS_NETWORK = (uint64_t)1 << 63;
static const uint64_t SIM_LINKS_NODE = (uint64_t)1 << 62; /* the node's switch, or its PCIe */

typedef struct {
    uint32_t ranks;        /* on the axis */
    uint32_t nodes;        /* that the group touches */
    uint32_t ranks_a_node; /* of the group, on the node that has most of them */
    uint32_t least_a_node; /* on the node that has fewest: the others wait for its NICs */
    double intra_step_ns, inter_step_ns;
    double bytes_per_ns;        /* of the slowest link; GB/s and bytes a nanosecond are equal */
    double reduce_bytes_per_ns; /* the same for collectives that add */
    uint64_t links;             /* that its rings go over */
    double node_channels;       /* NCCL's rings among its ranks of one node */
    const char *slowest;        /* "intra-node links" or "inter-node network" */
    bool nccl;                  /* NCCL's formula holds, for the group below */
    SimNcclGroup group;
} SimNetworkPath;

/* Whether two paths of one axis of a cluster cost the same, whatever goes over them. */
bool sim_network_paths_equal(const SimNetworkPath *a, const SimNetworkPath *b);

/* The ring over one axis of the mesh, through a rank; ranks fill nodes in order. */
SimNetworkPath sim_network_path_of(const ModelCluster *cluster, const Plan *plan, PlanAxis axis,
                                   uint32_t rank);
/* Likewise of a group that no plan has: the slowest of the `stride` groups of n ranks each, as far
 * apart, that ranks 0 to n * stride - 1 make. */
SimNetworkPath sim_network_path_among(const ModelCluster *cluster, uint32_t n, uint32_t stride);
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
