#include "cli/predict/forced.h"

#include "cli/options/command.h"
#include "plan/op/work.h"
#include "sim/costs/network.h"
#include "sim/costs/ops.h"

/* Sends, also all-to-all's, have no algorithm that could be forced. */
static bool has_algorithm(PlanOpKind kind) {
    return plan_op_info(kind)->ring_steps > 0 && kind != PLAN_OP_ALL_TO_ALL &&
           kind != PLAN_OP_UNEVEN_ALL_TO_ALL;
}

static bool obeys(const Plan *plan, const ModelCluster *cluster, const PlanRole *role,
                  const PlanOp *op) {
    SimNetworkPath path = sim_op_path(cluster, plan, role, op);
    if (path.ranks < 2 || !path.nccl) {
        return true;
    }
    SimNcclAlgo algo = sim_network_forced_algo(cluster);
    SimNcclProto proto = sim_network_forced_proto(cluster);
    SimNcclChoice choice =
        sim_network_choice(cluster, &path, op->kind, plan_op_work(role, op).bytes);
    return (algo == SIM_NCCL_N_ALGOS || algo == choice.algo) &&
           (proto == SIM_NCCL_N_PROTOS || proto == choice.proto);
}

/* What a combination needs does not depend on how many bytes there are, so one op of a kind and
 * axis speaks for all. */
static void find_disobedient(const Plan *plan, const ModelCluster *cluster, const PlanRole *role,
                             bool found[PLAN_N_OP_KINDS]) {
    bool asked[PLAN_N_OP_KINDS][PLAN_N_AXES] = {{false}};
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        if (has_algorithm(op->kind) && !asked[op->kind][op->axis]) {
            asked[op->kind][op->axis] = true;
            found[op->kind] |= !obeys(plan, cluster, role, op);
        }
    }
}

void cli_forced_note(const Plan *plan, const ModelCluster *cluster) {
    SimNcclAlgo algo = sim_network_forced_algo(cluster);
    SimNcclProto proto = sim_network_forced_proto(cluster);
    bool by_algo = algo != SIM_NCCL_N_ALGOS, by_proto = proto != SIM_NCCL_N_PROTOS;
    bool found[PLAN_N_OP_KINDS] = {false};
    for (uint32_t i = 0; (by_algo || by_proto) && i < plan->n_roles; i++) {
        find_disobedient(plan, cluster, &plan->roles[i], found);
    }
    g_autoptr(GString) kinds = g_string_new("");
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        if (found[kind]) {
            g_string_append_printf(kinds, "%s%s", kinds->len ? ", " : "", plan_op_info(kind)->name);
        }
    }
    if (kinds->len) {
        cli_complain(
            CLI_OK,
            "note: NCCL has no %s%s%s for %s among these ranks; those go as if nothing were "
            "forced, where NCCL itself may end with \"no algorithm/protocol available\"",
            by_algo ? sim_nccl_algo_name(algo) : "", by_algo && by_proto ? " with " : "",
            by_proto ? sim_nccl_proto_name(proto) : "", kinds->str);
    }
}
