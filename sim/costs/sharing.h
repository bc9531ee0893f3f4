/* sim/costs/sharing.h - how fast ops run that run at the same time.
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
    SimComputeCost compute; /* of a kernel */
    SimNetworkCost network; /* of a collective, and: */
    uint64_t links;         /* that it goes over, as in network.h */
    double sm_share;        /* of the multiprocessors */
    double memory_share;    /* of the memory bandwidth */
    double cores;           /* of a collective, how busy a core is with it */
} SimUse;

/* Of NCCL, on this path; 0 on CPUs. */
unsigned sim_collective_channels(const SimNetworkPath *path);
/* Fills in the shares of a collective of so many bytes that lasts so long alone. */
void sim_use_shares(SimUse *use, const ModelCluster *cluster, const SimNetworkPath *path,
                    PlanOpKind kind, double bytes);
/* Of a collective that has this share of its links, 1 being all. */
double sim_collective_speed(const SimNetworkCost *cost, double share);
/* speeds[i] of running[i], 1 being alone; entries may be NULL, their speed is left alone. cores:
 * of the rank; 0: as many as it has lanes. */
void sim_share(const SimUse *const *running, unsigned n, double cores, double *speeds);
