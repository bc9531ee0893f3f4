/* sim/costs/sharing.h - how fast ops run beside each other.
 *
 * Alone, an op takes its cost. Beside others of the same GPU:
 *   - a kernel loses the multiprocessors that running collectives occupy and the memory bandwidth
 *     that they draw: overhead + max(arithmetic / (1 - their multiprocessors),
 *     bytes / (1 - their bandwidth));
 *   - products of several lanes share the multiprocessors evenly;
 *   - collectives whose slowest link is of one kind share it evenly: latency + n * transfer. Rings
 *     over other pairs of GPUs, where each pair has NVLinks of its own, have nothing in common.
 * Collectives themselves are not slowed by kernels: NCCL's blocks are resident, and links are
 * slower than memory. On CPU ranks they are: a kernel keeps a core busy, a collective for as long
 * as copying takes, and where that is more cores than the rank has, all go slower alike.
 */
#pragma once

#include <stdbool.h>

#include "sim/costs/compute.h"
#include "sim/costs/network.h"

/* What an op takes of its device while it runs. */
typedef struct {
    bool collective;
    SimComputeCost compute; /* of a kernel; the rest is of a collective */
    SimNetworkCost network;
    uint64_t links;      /* the bits of what it goes over (network-path.h) */
    double sm_share;     /* the share of the multiprocessors that it occupies */
    double memory_share; /* the share of the memory bandwidth that it draws */
    double cores;        /* CPU ranks: how much of a core it keeps busy */
} SimUse;

/* How many channels, which are blocks of threads, NCCL uses on this path; 0 on CPUs. */
unsigned sim_collective_channels(const SimNetworkPath *path);
/* Fills in what a collective of so many bytes takes of its device. use->network must be set. */
void sim_use_shares(SimUse *use, const ModelCluster *cluster, const SimNetworkPath *path,
                    PlanOpKind kind, double bytes);
/* How fast a collective is that gets this share of its links, where 1 is its speed alone. */
double sim_collective_speed(const SimNetworkCost *cost, double share);
/* Sets speeds[i], how fast running[i] is beside the others, where 1 is its speed alone. If
 * running[i] is NULL, speeds[i] is left alone. cores: how many the rank has; 0: one for each
 * lane. */
void sim_sharing_speeds(const SimUse *const *running, unsigned n, double cores, double *speeds);
