#include "sim/costs/sharing.h"

#include "plan/op/op.h"

/* The share of the GPU that kernels keep at least, however many collectives run. Assumed: no run
 * was published in which collectives take as much; it only keeps a kernel's time finite. */
static const double LEAST_LEFT = 0.1;

/* A channel is a block on a multiprocessor of its own. NCCL doubles the rings it finds within a
 * node and takes at most 32 of them (src/graph/connect.cc and NCCL_MAX_CTAS); over several nodes
 * two for each NIC, of which a GPU of these clusters has a share of eight: assumed 16. */
unsigned sim_collective_channels(const SimNetworkPath *path) {
    unsigned near = (unsigned)MIN(2 * path->node_channels, 32);
    return path->nodes > 1 ? MIN(near, 16) : near;
}

/* Bytes through memory for each byte that a rank passes on: it is written where it arrives and read
 * where it leaves; adding reads the rank's own beside it. */
static double traffic_per_byte(PlanOpKind kind) {
    return plan_op_info(kind)->adds ? 3 : 2;
}

/* Copy engines take no multiprocessors, but memory, which another rank reads as this one writes; a
 * barrier's kernel is one block. */
static void use_peers_shares(SimUse *use, const SimNetworkPath *path, PlanOpKind kind,
                             double memory_share) {
    if (kind != PLAN_OP_BARRIER) {
        use->memory_share = MIN(1, memory_share);
    }
    if (kind == PLAN_OP_PULL || kind == PLAN_OP_SWAP) {
        use->links = path->links;
    }
}

void sim_use_shares(SimUse *use, const ModelCluster *cluster, const SimNetworkPath *path,
                    PlanOpKind kind, double bytes) {
    double n = (double)path->ranks, ns = use->network.latency_ns + use->network.transfer_ns;
    double passed_on = bytes * plan_op_sent(kind, n);
    double memory = cluster->device_memory_gb_per_s * cluster->device_memory_efficiency;
    if (plan_op_is_of_peers(kind)) {
        use_peers_shares(use, path, kind, ns > 0 ? 2 * bytes / ns / memory : 0);
        return;
    }
    use->links = path->links;
    double core_rate = model_cluster_core_gb_per_s(cluster, plan_op_info(kind)->adds);
    if (core_rate > 0 && ns > 0) { /* GB/s are bytes a ns */
        use->cores = MIN(1, passed_on / core_rate / ns);
    }
    if (cluster->device_compute_capability && cluster->device_sms && ns > 0) {
        use->sm_share = MIN(1, sim_collective_channels(path) / (double)cluster->device_sms);
        use->memory_share = MIN(1, traffic_per_byte(kind) * passed_on / ns / memory);
    }
}

static double kernel_speed(const SimComputeCost *cost, double sms_left, double memory_left) {
    double alone = cost->overhead_ns + MAX(cost->flops_ns, cost->bytes_ns);
    double beside =
        cost->overhead_ns + MAX(cost->flops_ns / sms_left, cost->bytes_ns / memory_left);
    return beside > 0 ? alone / beside : 1;
}

double sim_collective_speed(const SimNetworkCost *cost, double share) {
    double beside = cost->latency_ns + cost->transfer_ns / share;
    return beside > 0 ? (cost->latency_ns + cost->transfer_ns) / beside : 1;
}

/* At what speed each of a rank's working lanes runs; each is a thread that wants a core. */
static double core_speed(const SimUse *const *running, unsigned n, double cores) {
    double wanted = 0;
    for (unsigned i = 0; i < n; i++) {
        if (running[i]) {
            wanted += running[i]->collective ? running[i]->cores : 1;
        }
    }
    return wanted > cores ? cores / wanted : 1;
}

/* Products of several lanes, which share the multiprocessors. */
static unsigned products_among(const SimUse *const *running, unsigned n) {
    unsigned products = 0;
    for (unsigned i = 0; i < n; i++) {
        products += running[i] && !running[i]->collective && running[i]->compute.flops_ns > 0;
    }
    return products;
}

/* Collectives that run over some of these links. */
static unsigned users_of(const SimUse *const *running, unsigned n, uint64_t links) {
    unsigned users = 0;
    for (unsigned i = 0; i < n; i++) {
        users += running[i] && running[i]->collective && (running[i]->links & links);
    }
    return users;
}

void sim_sharing_speeds(const SimUse *const *running, unsigned n, double cores, double *speeds) {
    double core = cores > 0 ? core_speed(running, n, cores) : 1;
    double sms_left = 1, memory_left = 1;
    bool kernels_alone = true;
    for (unsigned i = 0; i < n; i++) {
        if (running[i] && running[i]->collective) {
            sms_left -= running[i]->sm_share;
            memory_left -= running[i]->memory_share;
            kernels_alone = false;
        }
    }
    sms_left = MAX(sms_left, LEAST_LEFT);
    memory_left = MAX(memory_left, LEAST_LEFT);
    unsigned n_products = products_among(running, n);
    for (unsigned i = 0; i < n; i++) {
        if (!running[i]) {
            continue;
        }
        speeds[i] = core;
        bool shares = n_products > 1 && running[i]->compute.flops_ns > 0;
        if (!running[i]->collective && (!kernels_alone || shares)) {
            double sms = shares ? sms_left / n_products : sms_left;
            speeds[i] *= kernel_speed(&running[i]->compute, sms, memory_left);
        } else if (running[i]->collective) {
            unsigned users = users_of(running, n, running[i]->links);
            speeds[i] *= users > 1 ? sim_collective_speed(&running[i]->network, 1.0 / users) : 1;
        }
    }
}
