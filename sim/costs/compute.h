/* sim/costs/compute.h - how long a kernel takes, or the kernels of one op.
 *
 * Products and attention by tiles and waves (efficiency.h); everything else by the bytes it moves
 * at the reachable share of memory bandwidth. Before it comes the gap between two kernels of a
 * lane. The work is counted by plan/op/work.h; the cluster names the speeds.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"
#include "sim/costs/strategy.h"
#include "sim/time.h"

typedef struct {
    double overhead_ns; /* before the kernel's own time */
    double flops_ns;    /* arithmetic, in tiles and waves; 0 where there is nearly none */
    double bytes_ns;    /* memory traffic alone */
    unsigned kernels;   /* that the host launches for it, one after the other */
} SimComputeCost;

/* Which kernels a program takes, as far as that is not the op's and the device's alone. */
typedef struct {
    PlanAttentionKernel attention; /* that serves it wherever it can */
    bool pads;                     /* rows that cannot be loaded 16 bytes at a time (odd-rows.h) */
} SimKernels;

/* False when the device cannot compute in the op's dtype; *ret_cost is then left alone. */
bool sim_compute_cost(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                      SimKernels kernels, SimComputeCost *ret_cost);

/* Attention's kernel is the one that a plan's strategy names, where a cluster has two rates; packed
 * documents have FlashAttention-2's. */
SimKernels sim_kernels_chosen(SimStrategy *strategy, const PlanRole *role,
                              const ModelCluster *cluster);

/* The dtype an op computes in: what it writes, or float8 for products of float8 factors. */
PlanDtype sim_compute_dtype(const PlanOp *op);

/* For attention the queries of all heads together; else 0. */
double sim_attention_rows_of(const PlanRole *role, const PlanOp *op);

static inline SimTime sim_compute_time(const SimComputeCost *cost) {
    return sim_time_from_ns(cost->overhead_ns + MAX(cost->flops_ns, cost->bytes_ns));
}
