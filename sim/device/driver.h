/* sim/device/driver.h - the GPU driver, as the allocator calls it: events are queried at host time,
 * and getting and giving back segments costs the host. */
#pragma once

#include "models/cluster.h"
#include "sim/device/host-clock.h"
#include "sim/device/memory.h"

typedef struct {
    SimHostClock *host;
    const ModelCluster *cluster;
    SimTime segment_new_ns, segment_free_ns;
    uint64_t allocator_bytes; /* what there is to hand out */
    uint64_t once_held_bytes; /* what segments have covered at most so far */
    uint64_t n_acts;          /* how often it was asked for memory, or given it back */
} SimDriver;

void sim_driver_init(SimDriver *driver, SimHostClock *host, const ModelCluster *cluster,
                     uint64_t allocator_bytes);

extern const MemoryVirtualHooks sim_driver; /* self: SimDriver */
