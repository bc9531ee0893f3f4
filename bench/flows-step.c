/* bench/flows-step.c - a training step in which every rank and every flow is played, on one core.
 *
 * 96 units. Forward: gather and compute each; backward, in reverse: gather, compute and
 * reduce-scatter each. Gathers are one communicator and reduce-scatters another, so that both are
 * on the links at once in backward; a gather may run two units ahead of its compute. A collective
 * starts when its last rank arrives and ends with its last flow. Each rank sends two flows in each:
 * over NVLink to the next GPU of its node what 7 of 8 rings pass on there, and over its NIC to the
 * same place of another node what the eighth does. No two ranks are taken for one: each has its
 * own compute times, 5 % (standard deviation) about the mean.
 *
 * The fabric: nodes of 8 GPUs, NVLink 240 GB/s each way a GPU, a NIC of 25 GB/s each way a GPU;
 * rails: the NICs at one place of 16 nodes meet in a leaf, whose link to the spine is
 * oversubscribed 4 : 1 (100 GB/s each way for 400 GB/s of NICs). Twice: to the next node (a ring;
 * one hop in 16 goes by the spine), and to the node half the cluster away (every byte between nodes
 * does, which ties all flows of two leaves together).
 *
 * A unit is one of GPT-175B's in bf16: 3.65 GB. Compute takes 20 ms forward, 60 ms backward.
 *
 * Usage: bench-flows-step [RANKS [UNITS]]; without: 512 and 16384 ranks, 96 units. Aims: 0.5 s;
 * 30 s and 4 GB.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "sim/jitter.h"
#include "sim/links/fabric.h"
#include "sim/links/flows.h"
#include "sim/queue.h"

enum {
    A_NODE = 8,
    A_LEAF = 16
};

static const double UNIT_BYTES = 3.65e9, FORWARD_NS = 20e6, BACKWARD_NS = 60e6;
static const SimJitter jitter = {.seed = 1, .shares = {[SIM_JITTER_KERNEL] = 0.05}};

/* One communicator: its collectives in order. */
typedef struct {
    uint32_t n_started, n_done;
    uint32_t *n_arrived; /* ranks, by collective */
    uint32_t n_flows;    /* under way */
} Communicator;

typedef struct {
    uint32_t ranks, units;
    bool far;
    SimFabric *fabric;
    SimFlows *flows;
    SimQueue *computes; /* a slot a rank */
    uint32_t *n_done;   /* by rank: computes that have ended */
    bool *computing;    /* by rank */
    Communicator gather, reduce;
    SimTime now, waited_ns; /* the latter over all ranks: compute waits for a gather */
    SimTime *idle_since;
    uint64_t n_flows, n_computes;
} Step;

static void start_flows(Step *step, Communicator *communicator) {
    double bytes = UNIT_BYTES * (step->ranks - 1) / step->ranks;
    uint32_t nodes = step->ranks / A_NODE, away = step->far ? MAX(1, nodes / 2) : 1;
    uint64_t tag = communicator == &step->gather ? 0 : 1;
    for (uint32_t rank = 0; rank < step->ranks; rank++) {
        uint32_t path[SIM_FABRIC_LONGEST];
        uint32_t neighbour = rank / A_NODE * A_NODE + (rank + 1) % A_NODE;
        uint32_t n = sim_fabric_hop(step->fabric, rank, neighbour, path);
        sim_flows_start(step->flows, path, n, bytes * 7 / 8, tag, step->now);
        n = sim_fabric_hop(step->fabric, rank, (rank + away * A_NODE) % step->ranks, path);
        sim_flows_start(step->flows, path, n, bytes / 8, tag, step->now);
    }
    communicator->n_flows = 2 * step->ranks;
    communicator->n_started++;
    step->n_flows += communicator->n_flows;
}

/* The communicator's next collective starts when all ranks are there and the one before is over. */
static void try_start(Step *step, Communicator *communicator, uint32_t n) {
    uint32_t next = communicator->n_started;
    if (next < n && communicator->n_done == next && communicator->n_arrived[next] == step->ranks) {
        start_flows(step, communicator);
    }
}

static void try_compute(Step *step, uint32_t rank) {
    uint32_t next = step->n_done[rank];
    if (!step->computing[rank] && next < 2 * step->units && step->gather.n_done > next) {
        double mean = next < step->units ? FORWARD_NS : BACKWARD_NS;
        double factor = sim_jitter_factor(&jitter, SIM_JITTER_KERNEL, rank, 0, next);
        step->computing[rank] = true;
        step->waited_ns += step->now - step->idle_since[rank];
        sim_queue_set(step->computes, rank, step->now + sim_time_from_ns(mean * factor));
        step->n_computes++;
    }
}

static void end_compute(Step *step, uint32_t rank) {
    uint32_t done = step->n_done[rank]++;
    step->computing[rank] = false;
    step->idle_since[rank] = step->now;
    if (done + 2 < 2 * step->units) {
        step->gather.n_arrived[done + 2]++;
        try_start(step, &step->gather, 2 * step->units);
    }
    if (done >= step->units) {
        step->reduce.n_arrived[done - step->units]++;
        try_start(step, &step->reduce, step->units);
    }
    try_compute(step, rank);
}

static void end_flow(Step *step, uint64_t tag) {
    Communicator *communicator = tag == 0 ? &step->gather : &step->reduce;
    if (--communicator->n_flows > 0) {
        return;
    }
    communicator->n_done++;
    try_start(step, communicator, tag == 0 ? 2 * step->units : step->units);
    for (uint32_t rank = 0; tag == 0 && rank < step->ranks; rank++) {
        try_compute(step, rank);
    }
}

static void play(Step *step) {
    step->gather.n_arrived[0] = step->gather.n_arrived[1] = step->ranks;
    try_start(step, &step->gather, 2 * step->units);
    for (;;) {
        SimTime compute = sim_queue_next(step->computes), flow = sim_flows_next(step->flows);
        uint32_t rank;
        uint64_t tag;
        if (compute == SIM_NEVER && flow == SIM_NEVER) {
            return;
        }
        if (flow <= compute) {
            sim_flows_pop(step->flows, &tag, &step->now);
            end_flow(step, tag);
        } else {
            sim_queue_pop(step->computes, &rank, &step->now);
            end_compute(step, rank);
        }
    }
}

static double peak_gb(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024 / 1e9;
}

/* Of this process, whoever else wants the core. */
static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void run(uint32_t ranks, uint32_t units, bool far) {
    gint64 start = g_get_monotonic_time();
    double cpu_start = cpu_seconds();
    SimFabricShape shape = {.ranks = ranks,
                            .ranks_a_node = A_NODE,
                            .nodes_a_leaf = A_LEAF,
                            .nvlink = 240,
                            .nic = 25,
                            .uplink = 25.0 * A_LEAF / 4};
    g_autoptr(SimFabric) fabric = sim_fabric_new(&shape);
    g_autoptr(SimFlows) flows = sim_flows_new(fabric->capacities, fabric->n_links);
    g_autoptr(SimQueue) computes = sim_queue_new(ranks);
    g_autofree uint32_t *n_done = g_new0(uint32_t, ranks);
    g_autofree bool *computing = g_new0(bool, ranks);
    g_autofree SimTime *idle_since = g_new0(SimTime, ranks);
    g_autofree uint32_t *gathers = g_new0(uint32_t, 2 * units);
    g_autofree uint32_t *reduces = g_new0(uint32_t, units);
    Step step = {.ranks = ranks,
                 .units = units,
                 .far = far,
                 .fabric = fabric,
                 .flows = flows,
                 .computes = computes,
                 .n_done = n_done,
                 .computing = computing,
                 .gather.n_arrived = gathers,
                 .reduce.n_arrived = reduces,
                 .idle_since = idle_since};
    play(&step);
    g_assert(step.reduce.n_done == units && step.n_computes == 2 * (uint64_t)ranks * units);
    double wall = (double)(g_get_monotonic_time() - start) / 1e6, cpu = cpu_seconds() - cpu_start;
    printf("%6u ranks x %u units, to %-17s %7.3f s (%.3f s of the core, %.0f ns a flow), "
           "%" G_GUINT64_FORMAT " flows; step %.3f s, %.1f %% of it waiting; peak memory %.3f GB\n",
           ranks, units, far ? "half the cluster:" : "the next node:", wall, cpu,
           cpu * 1e9 / (double)step.n_flows, step.n_flows, (double)step.now / 1e9,
           100 * (double)step.waited_ns / ranks / (double)step.now, peak_gb());
}

int main(int argc, char **argv) {
    uint32_t units = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 96;
    uint32_t asked = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    const uint32_t sizes[] = {asked ? asked : 512, asked ? 0 : 16384};
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes) && sizes[i]; i++) {
        if (sizes[i] % A_NODE || sizes[i] < 2 * A_NODE || !units) {
            fprintf(stderr, "give ranks in nodes of 8, two nodes at least, and units\n");
            return 2;
        }
        run(sizes[i], units, false);
        run(sizes[i], units, true);
    }
    return 0;
}
