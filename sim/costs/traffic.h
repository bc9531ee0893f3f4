/* sim/costs/traffic.h - how long a kernel takes that only moves bytes. */
#pragma once

#include "models/cluster.h"

static inline double sim_traffic_ns(const ModelCluster *cluster, double bytes) {
    return bytes / (cluster->device_memory_gb_per_s * cluster->device_memory_efficiency);
}
