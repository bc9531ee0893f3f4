/* sim/costs/chunked-loss.h - a head and its loss in chunks of rows: one op of many kernels.
 *
 * Each chunk has three products of its own shape (product.h), and passes over its logits, whose
 * time is that of the bytes that they move. The host issues the kernels one by one, and a device
 * that is faster waits for it. CPU ranks do all of it in one call.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"

/* How many kernels the host issues for the op; 1 for an op of any other kind. */
unsigned sim_kernels_of(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op);
/* How long a chunked loss takes, without the gap before its first kernel. peak: operations a
 * second of the device in the op's dtype. */
double sim_chunked_loss_ns(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                           double peak);
