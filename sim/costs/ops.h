/* sim/costs/ops.h - what each op of a role costs on a device of a cluster, and what it costs the
 * host to issue it, worked out once.
 *
 * A kernel has a duration, and what bounds it; a collective has that of the path of its axis. Ranks
 * that play one role on one kind of node, and whose groups lie alike, share a table.
 *
 * Owns: its rows. Borrows: plan and cluster. Threads: const once made, so any number.
 */
#pragma once

#include "models/cluster.h"
#include "plan/mesh.h"
#include "plan/op/names.h"
#include "plan/plan.h"
#include "sim/costs/issue.h"
#include "sim/costs/sharing.h"
#include "sim/time.h"

typedef struct {
    SimUse use;          /* what it takes of its device, and how it slows beside others */
    SimTime duration_ns; /* alone */
    double bytes;        /* a collective's whole tensor */
} SimOpCost;

/* Whether the op is a transfer with the stage behind its own. */
static inline bool sim_is_behind(const Plan *plan, const PlanRole *role, const PlanOp *op) {
    return plan_op_is_of_stages((PlanOpKind)op->kind) &&
           plan_is_behind(plan, plan_rank_on_axis(plan, role->ranks[0], PLAN_AXIS_PIPELINE),
                          plan_op_dims(role, op)[STAGE_COLLECTIVE_PEER]);
}

/* The path of a collective, if one rank stands for all of its stage. */
SimNetworkPath sim_op_path(const ModelCluster *cluster, const Plan *plan, const PlanRole *role,
                           const PlanOp *op);

typedef struct {
    uint32_t role;
    const ModelCluster *cluster;
    SimKernels kernels;
    SimNetworkPath paths[SIM_N_PATHS];
    uint32_t *row_of_op; /* by op of the role: its row; ops that are alike share one */
    SimOpCost *rows;
    SimIssueCosts *issue;
} SimOpCosts;

static inline const SimOpCost *sim_op_cost(const SimOpCosts *costs, uint32_t op) {
    return &costs->rows[costs->row_of_op[op]];
}

/* paths: SIM_N_PATHS of them. NULL if the device cannot compute in a dtype of the role, whose name
 * is then in *ret_unsupported. */
SimOpCosts *sim_op_costs_new(const Plan *plan, uint32_t role, const ModelCluster *cluster,
                             const SimNetworkPath *paths, const char **ret_unsupported);
/* False with error if so many steps would take longer than SIM_LONGEST: most likely a number in the
 * cluster's file has another unit than it should. */
bool sim_op_costs_check(const SimOpCosts *costs, const Plan *plan, uint32_t steps, GError **error);
void sim_op_costs_free(SimOpCosts *costs); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimOpCosts, sim_op_costs_free)
