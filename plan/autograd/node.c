#include "plan/autograd/node.h"

bool plan_run_unpacks(const PlanRun *run, uint32_t node) {
    return run->tape.nodes.items[node].checkpoint != PLAN_NONE && !run->modules.checkpoints_reenter;
}

/* A node's own tensors go in the order of its fields. A checkpoint's are unpacked to variables of
 * the node's function, which go from the last to the first. */
void plan_run_drop_saved(PlanRun *run, uint32_t id) {
    PlanNode *node = &run->tape.nodes.items[id];
    bool unpacked = plan_run_unpacks(run, id);
    for (uint32_t i = 0; i < node->n_saved; i++) {
        uint32_t next = unpacked ? node->n_saved - 1 - i : i;
        plan_run_unref(run, run->tape.saved.items[node->saved + next]);
    }
    node->n_saved = 0;
}

PlanEdge *plan_edge_to_kind(const PlanRun *run, uint32_t node, unsigned i, unsigned kind) {
    PlanEdge *edge = &run->tape.edges.items[run->tape.nodes.items[node].edges + i];
    if (edge->slot == PLAN_NONE || edge->node == PLAN_NONE) {
        return NULL;
    }
    uint32_t op = run->tape.nodes.items[edge->node].op;
    return op != PLAN_NONE && plan_graph_op_at(run->graph, op)->kind == kind ? edge : NULL;
}
