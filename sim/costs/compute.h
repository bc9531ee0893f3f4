/* sim/costs/compute.h - how long the kernel of an op takes, or its kernels if it has several.
 *
 * Products and attention take what product.h and attention.h say, by tiles and waves; everything
 * else takes the bytes that it moves, at the share of memory bandwidth that is reachable. The gap
 * between two kernels of a lane comes before either. plan/op/work.h counts the work, and the
 * cluster's file has the speeds.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"
#include "sim/costs/strategy.h"
#include "sim/time.h"

typedef struct {
    double overhead_ns; /* the gap before the kernel */
    double flops_ns;    /* what its arithmetic takes; 0 if it has nearly none */
    double bytes_ns;    /* what its memory traffic takes */
    unsigned kernels;   /* how many the host launches for the op, one after the other */
} SimComputeCost;

/* Which kernels a program uses, where its op and its device leave a choice. */
typedef struct {
    PlanAttentionKernel attention; /* the one that serves attention wherever it can */
    bool pads;                     /* rows that cannot be loaded 16 bytes at a time are padded
                                    * (odd-rows.h) */
} SimKernels;

/* What an op costs alone. False if the device cannot compute in the op's dtype; *ret_cost is then
 * left alone. */
bool sim_compute_cost(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                      SimKernels kernels, SimComputeCost *ret_cost);

/* The kernels of a role: attention's is the one that the strategy names, if the cluster has a rate
 * for it, and FlashAttention-2's for packed documents. */
SimKernels sim_kernels_chosen(SimStrategy *strategy, const PlanRole *role,
                              const ModelCluster *cluster);

/* The dtype in which an op computes: that of what it writes, or float8 for a product of factors in
 * float8. */
PlanDtype sim_compute_dtype(const PlanOp *op);
/* What messages call it. Transfer none. */
const char *sim_computes_in(const PlanOp *op);

/* The queries of all heads together, if the op is attention; else 0. */
double sim_attention_rows_of(const PlanRole *role, const PlanOp *op);

static inline SimTime sim_compute_time(const SimComputeCost *cost) {
    return sim_time_from_ns(cost->overhead_ns + MAX(cost->flops_ns, cost->bytes_ns));
}
