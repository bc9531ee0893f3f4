#include "plan/autograd/addends.h"

#include "plan/autograd/backward.h"
#include "plan/autograd/node.h"

/* What a sum's node is given: its gradient, and that of the product, if it has been made. */
enum {
    GIVEN_RESULT,
    GIVEN_SCALED
};

static bool are_in_kernels(const PlanRun *run, uint32_t module) {
    return run->graph->trained.lora_rank && module != PLAN_NONE &&
           plan_graph_is_in_block(run->graph, module) &&
           plan_graph_is_in_program(run->graph, module);
}

/* The tensor lives until the node has run, whose reference it gets. */
static void hold(PlanRun *run, uint32_t node, PlanTensor tensor) {
    PlanAddend addend = {node, plan_run_ref(run, tensor)};
    plan_vector_push(&run->tape.addends, addend);
}

void plan_addends_let_go(PlanRun *run, uint32_t id) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < run->tape.addends.len; i++) {
        PlanAddend addend = run->tape.addends.items[i];
        if (addend.node == id) {
            plan_run_unref(run, addend.tensor);
        } else {
            run->tape.addends.items[n++] = addend;
        }
    }
    run->tape.addends.len = n;
}

static const PlanGraphOp *op_of(const PlanRun *run, uint32_t node) {
    return plan_node_op(run, &run->tape.nodes.items[node]);
}

/* The node runs in the same program's backward. */
static bool is_beside(const PlanRun *run, uint32_t node, uint32_t module) {
    const PlanGraphOp *op = op_of(run, node);
    return op &&
           plan_graph_block_of(run->graph, op->module) == plan_graph_block_of(run->graph, module);
}

/* Nobody else has the tensor, which is all of its buffer. */
static bool is_alone(PlanRun *run, PlanTensor tensor) {
    const PlanBuffer *buffer = plan_builder_at(&run->builder, plan_run_buffer_of(run, tensor));
    return run->storages.items[tensor.storage].refs == 1 &&
           buffer->bytes == tensor.elements * plan_dtype_bytes((PlanDtype)buffer->dtype);
}

bool plan_addends_add(PlanRun *run, PlanEdge edge, PlanTensor *slot, PlanTensor gradient) {
    uint32_t module = run->builder.module;
    if (!are_in_kernels(run, module) || slot->storage == PLAN_NONE || !is_alone(run, *slot)) {
        return false;
    }
    LAUNCH(run, PLAN_OP_ADD_SCALED,
           DIMS([ADD_SCALED_N] = (int64_t)slot->elements, [ADD_SCALED_WITHIN] = 1), &(double){1},
           *slot, gradient, *slot);
    if (is_beside(run, edge.node, module)) {
        hold(run, edge.node, gradient);
    }
    plan_run_unref(run, gradient);
    return true;
}

/* Inductor multiplies by 1, too. */
static PlanTensor gradient_of_product(PlanRun *run, const PlanGraphOp *op, PlanTensor dy) {
    PlanTensor dx = plan_run_new_tensor(run, dy.elements, plan_run_dtype_of(run, dy), "dx");
    LAUNCH(run, PLAN_OP_ADD_SCALED_BACKWARD, plan_graph_dims_of(run->graph, op),
           plan_graph_attrs_of(run->graph, op), dy, dx);
    return dx;
}

/* Views hand on what they are given. */
static PlanEdge behind_views(const PlanRun *run, PlanEdge edge) {
    while (edge.slot != PLAN_NONE && edge.node != PLAN_NONE) {
        const PlanGraphOp *op = op_of(run, edge.node);
        if (!op || (PlanGraphKind)op->kind != PLAN_GRAPH_HEADS) {
            break;
        }
        edge = run->tape.edges.items[run->tape.nodes.items[edge.node].edges];
    }
    return edge;
}

void plan_addends_scale(PlanRun *run, uint32_t id, const PlanTensor *made) {
    const PlanNode *node = &run->tape.nodes.items[id];
    for (uint32_t i = 0; i < node->n_edges && run->graph->addends->len; i++) {
        PlanEdge edge = behind_views(run, run->tape.edges.items[node->edges + i]);
        const PlanGraphOp *op =
            edge.slot == PLAN_NONE || edge.node == PLAN_NONE ? NULL : op_of(run, edge.node);
        if (!op || op->kind != PLAN_OP_ADD_SCALED ||
            plan_graph_dims_of(run->graph, op)[ADD_SCALED_WITHIN] != 1) {
            continue;
        }
        const PlanNode *sum = &run->tape.nodes.items[edge.node];
        PlanTensor *scaled = &run->tape.slots.items[sum->slots + GIVEN_SCALED];
        if (sum->n_dependencies == 1 && scaled->storage == PLAN_NONE) {
            *scaled = gradient_of_product(run, op, made[i]);
        }
    }
}

/* B's own gradient wants what A makes of the hidden layer, which a block that is computed again has
 * only when SwiGLU's backward makes it. */
static void hold_for_hidden(const PlanBackward *b, PlanTensor dx) {
    static const struct {
        unsigned input, kind;
    } way[] = {
        {ADD_SCALED_X, PLAN_OP_LINEAR}, {LINEAR_X, PLAN_OP_LINEAR}, {LINEAR_X, PLAN_OP_SWIGLU}};
    uint32_t node = b->node;
    for (unsigned i = 0; i < G_N_ELEMENTS(way); i++) {
        const PlanEdge *edge = plan_edge_to_kind(b->run, node, way[i].input, way[i].kind);
        if (!edge) {
            return;
        }
        node = edge->node;
    }
    if (plan_run_unpacks(b->run, node)) {
        hold(b->run, node, dx);
    }
}

void plan_add_scaled_backward(const PlanBackward *b) {
    if (wanted(b, ADD_SCALED_A)) {
        b->dx[ADD_SCALED_A] = plan_run_ref(b->run, b->dy[GIVEN_RESULT]);
    }
    PlanTensor given = b->dy[GIVEN_SCALED];
    b->dx[ADD_SCALED_X] = given.storage != PLAN_NONE
                              ? plan_run_ref(b->run, given)
                              : gradient_of_product(b->run, b->op, b->dy[GIVEN_RESULT]);
    hold_for_hidden(b, b->dx[ADD_SCALED_X]);
}

/* These kernels' backward reads what they read; the others' reads what they gave. */
static bool reads_again(uint32_t kind) {
    return kind == PLAN_OP_SWIGLU || kind == PLAN_OP_RMSNORM || kind == PLAN_OP_ADD_RMSNORM ||
           kind == PLAN_OP_ADD_LAYERNORM;
}

void plan_addends_read_again(PlanRun *run, uint32_t op_id) {
    const GArray *addends = run->graph->addends;
    uint32_t node = run->tape.node_of_op[op_id];
    if (node == PLAN_NONE || !reads_again(plan_graph_op_at(run->graph, op_id)->kind)) {
        return;
    }
    for (guint i = 0; i < addends->len; i++) {
        const PlanGraphAddend *addend = plan_graph_at(addends, PlanGraphAddend, i);
        if (addend->reader == op_id) {
            hold(run, node, plan_run_value(run, addend->product));
        }
    }
}
