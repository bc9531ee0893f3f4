#include "cli/launch/pace.h"

#include "cli/source/cluster.h"
#include "exec/pace.h"
#include "plan/op/work.h"
#include "sim/costs/network.h"
#include "sim/costs/ops.h"
#include "sim/costs/sharing.h"

static void add_role(GString *text, const Plan *plan, uint32_t r, const ModelCluster *cluster) {
    const PlanRole *role = &plan->roles[r];
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        if (plan_op_is_collective((PlanOpKind)op->kind)) {
            SimNetworkPath path = sim_op_path(cluster, plan, role, op);
            SimNetworkCost cost = sim_network_cost(cluster, &path, (PlanOpKind)op->kind,
                                                   plan_op_work(role, op).bytes);
            g_string_append_printf(text, "%u %u %.0f %u\n", r, i,
                                   cost.latency_ns + cost.transfer_ns,
                                   sim_collective_channels(&path));
        }
    }
}

static bool fits(const Plan *plan, const ModelCluster *cluster, GError **error) {
    if (plan->world <= model_cluster_ranks(cluster)) {
        return true;
    }
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                "%s has place for %" G_GUINT64_FORMAT " ranks, and the plan has %u; take a larger "
                "cluster, or the same one with more nodes (NAME:NODES)",
                cluster->name, model_cluster_ranks(cluster), plan->world);
    return false;
}

ModelCluster *cli_pace_cluster(const char *name, const Plan *plan, GError **error) {
    g_autoptr(ModelCluster) cluster = cli_cluster_read(name, error);
    return cluster && fits(plan, cluster, error) ? g_steal_pointer(&cluster) : NULL;
}

bool cli_pace_write(const Plan *plan, const ModelCluster *cluster, const char *path,
                    GError **error) {
    g_autoptr(GString) text = g_string_new(EXEC_PACE_FORM "\n");
    g_string_append_printf(text, "cluster %s\ndigest %s\n", cluster->name, plan_digest(plan));
    for (uint32_t r = 0; r < plan->n_roles; r++) {
        add_role(text, plan, r, cluster);
    }
    return g_file_set_contents(path, text->str, (gssize)text->len, error);
}
