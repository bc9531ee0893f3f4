#include "plan/autograd/float8/layer.h"

#include "plan/autograd/float8/words.h"

bool plan_float8_follows_swiglu(const PlanGraph *graph, const PlanGraphOp *op) {
    if ((PlanGraphKind)op->kind != PLAN_GRAPH_FLOAT8_LINEAR) {
        return false;
    }
    int64_t maker = plan_graph_float8_linear_of(graph, op)->maker;
    return maker >= 0 && plan_graph_op_at(graph, maker)->kind == PLAN_OP_SWIGLU;
}

/* The first op that reads the layer's result, also through views of it. */
static const PlanGraphOp *reader_of(const PlanGraph *graph, const PlanGraphOp *op) {
    uint32_t value = plan_graph_ref(graph, op->values + op->n_inputs);
    const PlanGraphOp *end = plan_graph_op_at(graph, graph->ops.len - 1) + 1;
    for (const PlanGraphOp *next = op + 1; next < end; next++) {
        for (unsigned i = 0; i < next->n_inputs; i++) {
            if (plan_graph_ref(graph, next->values + i) != value) {
                continue;
            }
            if ((PlanGraphKind)next->kind != PLAN_GRAPH_HEADS) {
                return next;
            }
            value = plan_graph_ref(graph, next->values + next->n_inputs);
        }
    }
    return NULL;
}

/* A kernel of the compiler's makes the gradient, and looks for the largest number. A block is given
 * its own result's, and attention's are another's. */
bool plan_float8_gradient_is_searched(const PlanGraph *graph, const PlanGraphOp *op) {
    const PlanGraphOp *reader = reader_of(graph, op);
    return reader && reader->kind < PLAN_N_OP_KINDS && reader->kind != PLAN_OP_ADD &&
           plan_op_info((PlanOpKind)reader->kind)->op_class == PLAN_CLASS_MEMORY;
}

/* Layers that share an input run backward from the last to the first. */
bool plan_float8_is_first_of_input(const PlanRun *run, const PlanGraphOp *op) {
    const PlanGraph *graph = run->graph;
    while (op-- > plan_graph_op_at(graph, 0)) {
        if ((PlanGraphKind)op->kind == PLAN_GRAPH_FLOAT8_LINEAR) {
            return !plan_graph_float8_linear_of(graph, op)->again;
        }
    }
    return true;
}

bool plan_float8_takes_gathered(const PlanGraph *graph, const PlanGraphOp *op) {
    uint32_t value = plan_graph_ref(graph, op->values + LAYER_WEIGHT);
    uint32_t p = plan_graph_value_at(graph, value)->parameter;
    return plan_graph_parameter_at(graph, p)->split == PLAN_SPLIT_ROWS;
}

bool plan_float8_takes_own(const PlanGraph *graph, const PlanGraphOp *op) {
    return graph->float8 == PLAN_FLOAT8_ROWWISE && !plan_float8_takes_gathered(graph, op) &&
           plan_graph_float8_linear_of(graph, op)->maker < 0;
}

PlanTensor plan_float8_weight_scale(PlanRun *run, const PlanGraphOp *op) {
    return plan_run_value(run, plan_graph_ref(run->graph, op->values + LAYER_WEIGHT_SCALE));
}

PlanTensor plan_float8_input_scale(PlanRun *run, const PlanGraphOp *op) {
    return plan_run_value(run, plan_graph_ref(run->graph, op->values + LAYER_INPUT_SCALE));
}

bool plan_float8_keeps_scale(const PlanRun *run, const PlanGraphOp *op) {
    return (PlanGraphKind)op->kind == PLAN_GRAPH_FLOAT8_LINEAR && run->graph->shared.tensor > 1 &&
           plan_float8_by_rows(run) && plan_float8_takes_gathered(run->graph, op);
}
