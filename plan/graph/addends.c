/* plan/graph/addends.c - sums of a layer's result and an adapter's product, which a compiler adds
 * up in the kernel that reads the sum. */
#include "plan/graph/private.h"

static bool reads(const PlanGraph *graph, const PlanGraphOp *op, uint32_t sum) {
    uint32_t base = plan_graph_value_at(graph, sum)->base;
    for (unsigned i = 0; i < op->n_inputs; i++) {
        uint32_t value = plan_graph_ref(graph, op->values + i);
        if (value != PLAN_NONE && value >= sum && plan_graph_value_at(graph, value)->base == base) {
            return true;
        }
    }
    return false;
}

/* A block's last sum has no kernel of its block's backward before it. */
static int64_t within(const PlanGraphOp *reader) {
    return plan_op_info((PlanOpKind)reader->kind)->op_class != PLAN_CLASS_MEMORY ? 0
           : reader->kind == PLAN_OP_ADD                                         ? 2
                                                                                 : 1;
}

enum {
    MOST_WAITING = 8 /* sums; a block has fewer */
};

/* Views are read through. */
void plan_graph_read_addends(PlanGraph *graph) {
    const PlanGraphOp *op = plan_graph_op_at(graph, graph->ops.len - 1);
    guint n = graph->addends->len, first = n - MIN(n, MOST_WAITING);
    for (guint i = first; i < n && op->kind < PLAN_N_OP_KINDS; i++) {
        PlanGraphAddend *addend = plan_graph_at(graph->addends, PlanGraphAddend, i);
        const PlanGraphOp *sum = plan_graph_op_at(graph, addend->op);
        if (addend->reader != PLAN_NONE || addend->op + 1 == graph->ops.len ||
            !reads(graph, op, plan_graph_ref(graph, sum->values + ADD_SCALED_Y))) {
            continue;
        }
        addend->reader = graph->ops.len - 1;
        int64_t *dims = &graph->dims.items[sum->dims];
        dims[ADD_SCALED_WITHIN] = within(op);
        if (dims[ADD_SCALED_WITHIN]) {
            plan_graph_hold_until(graph, addend->product, graph->steps.len - 1);
        }
    }
}
