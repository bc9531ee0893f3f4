/* sim/costs/nccl-constants.h - the numbers of NCCL's cost model.
 *
 * From src/graph/tuning.cc of NCCL 2.28.9 (2.30.7 is the same but for three caps of Blackwell).
 * Microseconds, and GB/s (1e9 bytes a second). Columns of three are LL, LL128, Simple. Inside sim/
 * only.
 */
#pragma once

#include "sim/costs/nccl.h"

static const double base_latency[][SIM_NCCL_N_PROTOS] = {
    [SIM_NCCL_RING] = {6.6, 14.0, 8.4}, [SIM_NCCL_TREE] = {6.8, 14.0, 8.4},
    [SIM_NCCL_NVLS] = {0, 0, 0},        [SIM_NCCL_NVLS_TREE] = {0, 0, 0},
    [SIM_NCCL_PAT] = {8, 8, 8},
};

/* One step over NVLink, over PCIe (where there is no NVLS), and over the network. */
static const double nvlink_latency[][SIM_NCCL_N_PROTOS] = {
    [SIM_NCCL_RING] = {0.6, 1.9, 3.4}, [SIM_NCCL_TREE] = {0.6, 1.25, 4.0},
    [SIM_NCCL_NVLS] = {25, 25, 25},    [SIM_NCCL_NVLS_TREE] = {25, 25, 25},
    [SIM_NCCL_PAT] = {4, 4, 4},
};
/* What a ring's step over NVLink is taken for, by any protocol. A rack's 4 to 72 GPUs gather in 17
 * to 102 us by LL, 1.25 us a step (tests/validation/collectives.csv, OpenXLA's table); by Simple,
 * of which NCCL expects six times as much a step, 64 and 72 take 1 us a step. */
static const double nvlink_ring_step_us = 0.6;
static const double pcie_latency[][SIM_NCCL_N_PROTOS] = {
    [SIM_NCCL_RING] = {1.0, 2.5, 5.7}, [SIM_NCCL_TREE] = {1.0, 1.9, 4.0},
    [SIM_NCCL_NVLS] = {25, 25, 25},    [SIM_NCCL_NVLS_TREE] = {25, 25, 25},
    [SIM_NCCL_PAT] = {4, 4, 4},
};
static const double network_latency[][SIM_NCCL_N_PROTOS] = {
    [SIM_NCCL_RING] = {2.7, 4.0, 14}, [SIM_NCCL_TREE] = {5.0, 8.5, 14},
    [SIM_NCCL_NVLS] = {18, 18, 18},   [SIM_NCCL_NVLS_TREE] = {20.9, 20.9, 20.9},
    [SIM_NCCL_PAT] = {14, 14, 14},
};
static const double posting_us = 1.0; /* of a network operation; tripled for Simple */

/* What is left of the links' bandwidth: of a ring's by LL (each 4 bytes travel with a flag of 4)
 * and by LL128 (120 bytes of 128 are data; NCCL takes 0.92); of a tree's by any protocol. A tree's
 * is divided again by LL, and by LL128 multiplied, on one node and over several. */
static const double ll_ring_share = 0.5, ll128_ring_share = 0.92;
static const double tree_share = 0.92, ll_tree_divisor = 3.8;
static const double ll128_tree_near_share = 7.0 / 9, ll128_tree_far_share = 120.0 / 128;

/* PAT: its bandwidth's share, what a network step's latency is divided by, and the latency that
 * each rank adds. */
static const double pat_share = 0.75, pat_step_divisor = 3.5, pat_rank_us = 2.8;

/* Caps: LL over a whole communicator on one node; over two nodes and more the host's processor
 * limits it (that of an Intel host). The others a channel, on one node, two, more. */
static const double ll_cap[SIM_NCCL_N_GENERATIONS] = {39.0, 87.7, 141.0, 282.0};
static const double ll_host_cap[] = {39.0, 20.4}; /* two nodes, more */
static const double ll128_ring_cap[SIM_NCCL_N_GENERATIONS][3] = {
    {20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 34.6, 73.4}};
static const double ll128_tree_cap[SIM_NCCL_N_GENERATIONS][3] = {
    {20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20}};
static const double tree_cap[SIM_NCCL_N_GENERATIONS][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};
static const double nvls_tree_cap[SIM_NCCL_N_GENERATIONS][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 43.8}};
/* GPUs of a node for NVLS (src/transport/nvls.cc), and the most for its gathers and scatters
 * (NCCL_MAX_NVLS_ARITY, src/enqueue.cc). */
static const uint32_t least_by_switch = 3, most_gathered_by_switch = 32;
static const double nvls_efficiency[SIM_NCCL_N_GENERATIONS] = {0, 0, 0.85, 0.74};

/* What a tree's bandwidth is multiplied by, at 64 bytes and each doubling of it. */
enum {
    TREE_SIZES = 23
};
static const double tree_factor[SIM_NCCL_N_PROTOS][TREE_SIZES] = {
    {1,   1,   1,   1,   0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
     0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1,   1,   1,   1},
    {1,   1,   1,   1,   1,   0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
     0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1,   1},
    {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
     0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9},
};
/* Simple rings of all-reduce over nodes, from so many bytes a channel and rank on. */
static const double far_ring_factor[SIM_NCCL_N_GENERATIONS] = {1.9, 1.4, 1.4, 1.4};
static const double far_ring_bytes = 64;
