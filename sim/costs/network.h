/* sim/costs/network.h - how long a collective takes alone.
 *
 * GPUs (a cluster with compute_capability): nccl.h says which algorithm and protocol NCCL chooses,
 * and the two terms that it expects of them, latency l and transfer t. The collective takes
 *   extra + latency_factor * l + t / bandwidth_factor + ramp_factor * sqrt(l * t)
 * The four numbers are measured, within a node and over several; models/clusters/README.md says
 * how.
 *
 * CPUs: a ring of n ranks on N nodes. Constants, path and formula stand apart:
 *   constants  the cluster's: base latency, latency a step and bandwidth of each kind of link
 *   path       network-path.h: which ranks the ring joins, how many of its hops leave a node, and
 *              what its slowest link carries
 *   formula    base + (steps - k) * intra + k * inter + moved / bandwidth, with
 *              steps = STEPS * (n - 1) of collectives.def, k = STEPS * (N - 1) of them between
 *              nodes, moved = bytes of the whole tensor * STEPS * (n - 1) / n, what a rank sends
 */
#pragma once

#include "sim/costs/network-path.h"
#include "sim/time.h"

typedef struct {
    double latency_ns, transfer_ns;
} SimNetworkCost;

/* bytes: of the whole tensor, as in collectives.def. A group of one rank sends nothing. */
SimNetworkCost sim_network_cost(const ModelCluster *cluster, const SimNetworkPath *path,
                                PlanOpKind kind, double bytes);

/* What the cluster's file forces NCCL to use; SIM_NCCL_N_ALGOS, SIM_NCCL_N_PROTOS: it forces
 * nothing. */
SimNcclAlgo sim_network_forced_algo(const ModelCluster *cluster);
SimNcclProto sim_network_forced_proto(const ModelCluster *cluster);
/* NCCL's choice on this path, with what the cluster forces. path->nccl must be set. */
SimNcclChoice sim_network_choice(const ModelCluster *cluster, const SimNetworkPath *path,
                                 PlanOpKind kind, double bytes);
/* What NCCL expects of its choice, corrected by what was measured on the cluster. */
SimNetworkCost sim_network_measured(const ModelCluster *cluster, const SimNcclGroup *group,
                                    const SimNcclChoice *choice, double bytes);

static inline SimTime sim_network_time(const SimNetworkCost *cost) {
    return sim_time_from_ns(cost->latency_ns + cost->transfer_ns);
}
