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

typedef struct {
    bool collective;
    SimComputeCost compute; /* a kernel's */
    /* A collective's, as all that follows. */
    SimNetworkCost network;
    uint64_t links;      /* bits of the links that it goes over (network-path.h) */
    double sm_share;     /* of the multiprocessors */
    double memory_share; /* of the memory bandwidth */
    double cores;        /* how busy a core is with it */
} SimUse;

/* How many channels (blocks of threads) NCCL uses on this path; 0 on CPUs. */
unsigned sim_collective_channels(const SimNetworkPath *path);
/* Fills in what a collective of so many bytes takes of the GPU; use->network is set already. */
void sim_use_shares(SimUse *use, const ModelCluster *cluster, const SimNetworkPath *path,
                    PlanOpKind kind, double bytes);
/* The speed, 1 being that of running alone, of a collective that gets this share of its links. */
double sim_collective_speed(const SimNetworkCost *cost, double share);
/* Sets speeds[i] of running[i], 1 being that of running alone; where running[i] is NULL it is left
 * alone. cores: that the rank has; 0: one for each lane. */
void sim_sharing_speeds(const SimUse *const *running, unsigned n, double cores, double *speeds);
