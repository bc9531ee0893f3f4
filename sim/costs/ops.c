#include "sim/costs/ops.h"

#include <string.h>

#include "plan/fold.h"
#include "plan/op/alike.h"
#include "plan/op/work.h"
#include "sim/error.h"

SimNetworkPath sim_op_path(const ModelCluster *cluster, const Plan *plan, const PlanRole *role,
                           const PlanOp *op) {
    return plan_op_is_of_stages((PlanOpKind)op->kind)
               ? sim_network_path_to_stage(cluster, plan, role->ranks[0],
                                           sim_is_behind(plan, role, op))
               : sim_network_path_of_stage(cluster, plan, (PlanAxis)op->axis, role->ranks[0]);
}

static void set_collective(SimOpCost *cost, const SimOpCosts *costs, const Plan *plan,
                           const PlanRole *role, const PlanOp *op) {
    bool of_stages = plan_op_is_of_stages((PlanOpKind)op->kind);
    const SimNetworkPath *path = &costs->paths[!of_stages                      ? op->axis
                                               : sim_is_behind(plan, role, op) ? SIM_PATH_BEHIND
                                                                               : SIM_PATH_BEFORE];
    cost->bytes = plan_op_work(role, op).bytes;
    SimNetworkCost network = sim_network_cost(costs->cluster, path, op->kind, cost->bytes);
    cost->duration_ns = sim_network_time(&network);
    cost->use = (SimUse){.collective = true, .network = network};
    sim_use_shares(&cost->use, costs->cluster, path, op->kind, cost->bytes);
}

/* Hosts add up over the same links, as CPU ranks do: in a ring, without NCCL. Assumed: no recording
 * times it. */
static void set_hosts(SimOpCost *cost, const SimOpCosts *costs, const PlanRole *role,
                      const PlanOp *op) {
    SimNetworkPath path = costs->paths[op->axis];
    path.nccl = false;
    const int64_t *dims = plan_op_dims(role, op);
    double bytes =
        (double)dims[HOST_ALL_REDUCE_N] *
        (double)plan_dtype_bytes(plan_dtype_of_mantissa(dims[HOST_ALL_REDUCE_MANTISSA_BITS]));
    SimNetworkCost network = sim_network_cost(costs->cluster, &path, PLAN_OP_ALL_REDUCE, bytes);
    cost->duration_ns = sim_network_time(&network);
}

/* False: the device cannot compute in the op's dtype. */
static bool set_cost(SimOpCost *cost, const SimOpCosts *costs, const Plan *plan,
                     const PlanRole *role, const PlanOp *op) {
    if (plan_op_is_collective(op->kind)) {
        set_collective(cost, costs, plan, role, op);
        return true;
    }
    if (op->kind == PLAN_OP_HOST_ALL_REDUCE) {
        set_hosts(cost, costs, role, op);
        return true;
    }
    bool computes = sim_compute_cost(costs->cluster, role, op, costs->kernels, &cost->use.compute);
    cost->duration_ns = computes ? sim_compute_time(&cost->use.compute) : 0;
    return computes;
}

SimOpCosts *sim_op_costs_new(const Plan *plan, uint32_t role, const ModelCluster *cluster,
                             const SimNetworkPath *paths, const char **ret_unsupported) {
    const PlanRole *ops_of = &plan->roles[role];
    g_autoptr(SimOpCosts) costs = g_new0(SimOpCosts, 1);
    costs->role = role;
    costs->cluster = cluster;
    SimStrategy strategy = {.plan = plan};
    costs->kernels = sim_kernels_chosen(&strategy, ops_of, cluster);
    for (unsigned i = 0; i < SIM_N_PATHS; i++) {
        costs->paths[i] = paths[i];
    }
    costs->row_of_op = g_new(uint32_t, ops_of->n_ops);
    g_autoptr(GArray) rows = g_array_sized_new(FALSE, FALSE, sizeof(SimOpCost), 128);
    g_autofree PlanAlike *known = g_new0(PlanAlike, 1); /* large for a stack */
    known->of_any_number = true;
    for (uint32_t i = 0; i < ops_of->n_ops; i++) {
        if (i == ops_of->copies && ops_of->n_copied > 0) {
            memcpy(costs->row_of_op + i, costs->row_of_op + ops_of->copied,
                   ops_of->n_copied * sizeof *costs->row_of_op);
            i += ops_of->n_copied - 1;
            continue;
        }
        const PlanOp *op = &ops_of->ops[i];
        const PlanOp *alike = plan_alike_find(known, ops_of, op);
        if (alike) {
            costs->row_of_op[i] = costs->row_of_op[alike - ops_of->ops];
            continue;
        }
        plan_alike_note(known, ops_of, op);
        SimOpCost cost = {0};
        if (!set_cost(&cost, costs, plan, ops_of, op)) {
            *ret_unsupported = sim_computes_in(op);
            return NULL;
        }
        costs->row_of_op[i] = rows->len;
        g_array_append_val(rows, cost);
    }
    costs->rows = (SimOpCost *)(gpointer)g_array_steal(rows, NULL);
    costs->issue = sim_issue_costs_new(&strategy, ops_of, cluster);
    return g_steal_pointer(&costs);
}

/* What the ops of passes take that are not written in the plan. */
static double folded_ns(const SimOpCosts *costs, const PlanRole *role) {
    double sum_ns = 0;
    PlanFold fold;
    for (PlanSection s = PLAN_SECTION_FIRST; s < PLAN_N_SECTIONS; s++) {
        if (plan_section_repeats(role, s) || !plan_fold_find(role, s, &fold)) {
            continue;
        }
        for (uint32_t i = fold.begin; i < fold.end; i++) {
            const PlanInstr *instr = &role->sections[s][i];
            bool is_op = instr->kind == PLAN_LAUNCH || instr->kind == PLAN_HOST_OP;
            sum_ns += is_op ? (double)sim_op_cost(costs, instr->arg)->duration_ns : 0;
        }
    }
    return sum_ns * role->n_folded;
}

bool sim_op_costs_check(const SimOpCosts *costs, const Plan *plan, uint32_t steps, GError **error) {
    const PlanRole *role = &plan->roles[costs->role];
    double host_ns = sim_issue_sum_ns(plan, role, costs->cluster, steps);
    double sum_ns = host_ns + folded_ns(costs, role);
    uint32_t slowest = 0;
    for (uint32_t op = 0; op < role->n_ops; op++) {
        SimTime ns = sim_op_cost(costs, op)->duration_ns;
        sum_ns += (double)ns;
        slowest = ns > sim_op_cost(costs, slowest)->duration_ns ? op : slowest;
    }
    if (sum_ns * steps < (double)SIM_LONGEST) {
        return true;
    }
    g_set_error(
        error, SIM_ERROR, SIM_ERROR_CLUSTER,
        "%u steps would take %.0f days on cluster %s, one %s alone %.1f s and a step's host "
        "%.1f s, and %.0f days are the most; mind the units of the cluster's file, or plan "
        "less",
        steps, sum_ns * steps / 86400e9, costs->cluster->name,
        plan_op_info(role->ops[slowest].kind)->name,
        (double)sim_op_cost(costs, slowest)->duration_ns / 1e9, host_ns / 1e9,
        (double)SIM_LONGEST / 86400e9);
    return false;
}

void sim_op_costs_free(SimOpCosts *costs) {
    if (costs) {
        g_free(costs->row_of_op);
        g_free(costs->rows);
        sim_issue_costs_free(costs->issue);
        g_free(costs);
    }
}
