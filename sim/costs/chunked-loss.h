/* sim/costs/chunked-loss.h - a head and its loss in chunks of rows: one op of many kernels.
 *
 * Each chunk has its three products, of its own shape (efficiency.h), and passes over its logits,
 * which take the bytes that they move. A host issues the kernels one by one, and a device that is
 * quicker waits for it. CPU ranks do all in one call.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"

/* How many kernels the host issues for the op: 1 of every other kind. */
unsigned sim_kernels_of(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op);
/* All of a chunked loss but the gap before its first kernel; peak: operations a second. */
double sim_chunked_loss_ns(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                           double peak);
