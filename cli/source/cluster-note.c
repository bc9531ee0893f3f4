/* cli/source/cluster-note.c - a file of several nodes without what is measured between them. */
#include "cli/options/command.h"
#include "cli/source/cluster.h"

/* The four numbers are what they are where a file has none: NCCL's own expectation. */
static bool is_far_unmeasured(const ModelCluster *cluster) {
    return cluster->collectives_far_extra_us <= 0 && cluster->collectives_far_ramp_factor <= 0 &&
           cluster->collectives_far_latency_factor == 1 &&
           cluster->collectives_far_bandwidth_factor == 1;
}

void cli_cluster_note(const ModelCluster *cluster) {
    if (cluster->topology_nodes > 1 && cluster->device_compute_capability > 0 &&
        is_far_unmeasured(cluster)) {
        g_autofree char *others = cli_cluster_networked_with(cluster->model);
        cli_complain(CLI_OK,
                     "note: %s has no far_latency_factor, far_extra_us, ... in [collectives], so "
                     "between nodes NCCL's own estimate is taken, and measured collectives are "
                     "slower; be like a cluster of several nodes%s, or "
                     "give these numbers",
                     cluster->name, others);
    }
}
