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

/* What rings go over, one bit each; rings with equal bits share it. If NVLinks join the GPUs of a
 * node pair by pair, each pair has a bit below these two. */
static const uint64_t SIM_LINKS_NETWORK = (uint64_t)1 << 63;
static const uint64_t SIM_LINKS_NODE = (uint64_t)1 << 62; /* the node's switch, or its PCIe */

typedef struct {
    uint32_t ranks;             /* in the group */
    uint32_t nodes;             /* that they are on */
    uint32_t ranks_a_node;      /* on the node that has most of them */
    uint32_t least_a_node;      /* on the node that has fewest: the others wait for its NICs */
    double intra_step_ns;       /* latency of a ring's step within a node */
    double inter_step_ns;       /* and between nodes */
    double bytes_per_ns;        /* of the slowest link; a byte a nanosecond is 1 GB/s */
    double reduce_bytes_per_ns; /* the same for collectives that add up */
    uint64_t links;             /* the bits of what its rings go over */
    double node_channels;       /* NCCL's rings among its ranks on one node */
    const char *slowest;        /* "intra-node links" or "inter-node network" */
    bool nccl;                  /* NCCL runs its collectives, on the group below */
    SimNcclGroup group;
} SimNetworkPath;

/* Whether any collective takes as long on one path as on the other, both of one axis of a
 * cluster. */
bool sim_network_paths_equal(const SimNetworkPath *a, const SimNetworkPath *b);

/* The path of the group of an axis that a rank belongs to. Ranks fill nodes in order. */
SimNetworkPath sim_network_path_of(const ModelCluster *cluster, const Plan *plan, PlanAxis axis,
                                   uint32_t rank);
/* The same without a plan: ranks 0 to n * stride - 1 make `stride` groups of n ranks each, those of
 * a group `stride` apart; the slowest of their paths. */
SimNetworkPath sim_network_path_among(const ModelCluster *cluster, uint32_t n, uint32_t stride);
/* The slowest path of all groups of the axis, for a rank that stands for all ranks; or of those in
 * its stage, for a rank that stands for that stage. Groups may lie over nodes in several ways: of
 * groups of six ranks on nodes of eight, the first is on one node, the second on two. */
SimNetworkPath sim_network_path(const ModelCluster *cluster, const Plan *plan, PlanAxis axis);
SimNetworkPath sim_network_path_of_stage(const ModelCluster *cluster, const Plan *plan,
                                         PlanAxis axis, uint32_t rank);

/* Paths of a rank: one for each axis, and those to the stages before and after its own. */
enum {
    SIM_PATH_BEFORE = PLAN_N_AXES,
    SIM_PATH_BEHIND,
    SIM_N_PATHS
};
/* From a rank to its peer in the next stage (behind) or the previous one; a path of one rank if
 * there is no such stage. */
SimNetworkPath sim_network_path_to(const ModelCluster *cluster, const Plan *plan, uint32_t rank,
                                   bool behind);
/* The slowest such path of all ranks in the rank's stage. */
SimNetworkPath sim_network_path_to_stage(const ModelCluster *cluster, const Plan *plan,
                                         uint32_t rank, bool behind);
