/* sim/costs/compute.h - how long a kernel takes.
 *
 * Products and attention by tiles and waves (efficiency.h); everything else by the bytes it moves
 * at the reachable share of memory bandwidth. Before it comes the gap between two kernels of a
 * lane. The work is counted by plan/op/work.h; the cluster names the speeds.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"
#include "sim/time.h"

typedef struct {
    double overhead_ns; /* before the kernel's own time */
    double flops_ns;    /* arithmetic, in tiles and waves; 0 where there is nearly none */
    double bytes_ns;    /* memory traffic alone */
} SimComputeCost;

/* False when the device cannot compute in the op's dtype; *ret_cost is then left alone. */
bool sim_compute_cost(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                      SimComputeCost *ret_cost);

/* What an op computes in: that is what it writes, but for a product of factors in float8. */
PlanDtype sim_compute_dtype(const PlanOp *op);

/* Queries of all heads, where the op is attention; 0 otherwise. */
double sim_attention_rows_of(const PlanRole *role, const PlanOp *op);

static inline SimTime sim_compute_time(const SimComputeCost *cost) {
    return sim_time_from_ns(cost->overhead_ns + MAX(cost->flops_ns, cost->bytes_ns));
}
