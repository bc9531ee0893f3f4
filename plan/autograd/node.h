/* plan/autograd/node.h - what is asked of a node of the tape (tape.h). Inside plan/ only. */
#pragma once

#include "plan/autograd/tensor.h"

/* The op whose backward it is; NULL: it is no op's. */
static inline const PlanGraphOp *plan_node_op(const PlanRun *run, const PlanNode *node) {
    return node->op == PLAN_NONE ? NULL : plan_graph_op_at(run->graph, node->op);
}
/* The edge to what made input i of the node's op; NULL: that is no op of this kind. */
PlanEdge *plan_edge_to_kind(const PlanRun *run, uint32_t node, unsigned i, unsigned kind);
/* Whether a checkpoint packed the node's saved tensors away, and so has to hand them out. */
bool plan_run_unpacks(const PlanRun *run, uint32_t node);
void plan_run_drop_saved(PlanRun *run, uint32_t node); /* what it keeps; may be repeated */
