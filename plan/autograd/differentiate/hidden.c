/* plan/autograd/differentiate/hidden.c - backward of what makes a hidden layer: SwiGLU, and GELU
 * where it is a kernel of its own.
 *
 * Of a checkpointed block a compiler makes the hidden layer again in the kernel that makes the
 * gradients of what went into it. The product that reads the hidden layer has its weight's gradient
 * made of that, so behind that kernel (tests/oracle/recordings/ *-compiled-checkpointed*).
 */
#include "plan/autograd/addends.h"
#include "plan/autograd/backward.h"
#include "plan/autograd/float8/float8.h"
#include "plan/autograd/node.h"

/* What GELU's node is given: the gradient of its result, or, made already, of what went into it. */
enum {
    GIVEN_RESULT,
    GIVEN_BEFORE
};

/* Not a part of what a layer made for gate and up at once. */
static bool is_alone(const PlanBackward *b, unsigned i) {
    const PlanGraphValue *base = plan_graph_value_at(b->run->graph, input(b, i)->base);
    return base->elements == input(b, i)->elements;
}

/* Whether what is behind it in a block that is computed again asks for the hidden layer. */
static bool is_asked_for(const PlanBackward *b) {
    const PlanNode *node = &b->run->tape.nodes.items[b->node];
    return b->run->tape.checkpoints.items[node->checkpoint].last_op > node->op;
}

/* Gate is read for two gradients: its own, and its adapter's product's. */
static bool is_read_twice(const PlanBackward *b) {
    return plan_edge_to_kind(b->run, b->node, SWIGLU_GATE, PLAN_OP_ADD_SCALED) != NULL;
}

static bool makes_hidden_again(const PlanBackward *b) {
    const PlanGraph *graph = b->run->graph;
    return plan_graph_is_in_program(graph, b->op->module) && !graph->float8 &&
           b->run->tape.nodes.items[b->node].checkpoint != PLAN_NONE && is_asked_for(b);
}

/* Where the hidden layer is not made again, nothing but dgate is made of up, which it then writes
 * over: Inductor does so with what a single op of a kernel reads, and nobody later
 * (torch/_inductor/scheduler.py, decide_inplace_update). */
static void make_both(const PlanBackward *b) {
    const PlanGraph *graph = b->run->graph;
    bool makes_none = graph->float8 == PLAN_FLOAT8_MXFP8 &&
                      b->run->tape.nodes.items[b->node].checkpoint == PLAN_NONE;
    bool over_up = plan_graph_is_compiled(graph) && !makes_hidden_again(b) &&
                   (!graph->float8 || makes_none) && is_alone(b, 1) && !is_read_twice(b);
    b->dx[SWIGLU_GATE] = over_up
                             ? plan_run_ref(b->run, plan_run_value(b->run, value_at(b, SWIGLU_UP)))
                             : like_input(b, SWIGLU_GATE, "dgate");
    b->dx[SWIGLU_UP] = like_input(b, SWIGLU_UP, "dup");
    KERNEL(b, PLAN_OP_SWIGLU_BACKWARD, dims(b), NULL, dy(b, 0), value(b, SWIGLU_GATE),
           value(b, SWIGLU_UP), dx(b, SWIGLU_GATE), dx(b, SWIGLU_UP));
    plan_addends_scale(b->run, b->node, b->dx); /* all by one kernel */
}

void plan_swiglu_backward(const PlanBackward *b) {
    if (b->dy[PLAN_SWIGLU_GIVEN_GATE].storage != PLAN_NONE) {
        b->dx[SWIGLU_GATE] = plan_run_ref(b->run, b->dy[PLAN_SWIGLU_GIVEN_GATE]);
        b->dx[SWIGLU_UP] = plan_run_ref(b->run, b->dy[PLAN_SWIGLU_GIVEN_UP]);
        return;
    }
    PlanTensor hidden =
        makes_hidden_again(b) ? like_input(b, SWIGLU_GATE, "hidden") : PLAN_NO_TENSOR;
    make_both(b);
    plan_run_unref(b->run, hidden);
    drop_unwanted(b, SWIGLU_GATE);
    drop_unwanted(b, SWIGLU_UP);
}

void plan_go_through_swiglu(const PlanBackward *b, PlanEdge *edge) {
    PlanRun *run = b->run;
    PlanNode *node = &run->tape.nodes.items[edge->node];
    PlanTensor made[2], hidden = b->dx[0];
    PlanBackward swiglu = {.run = run,
                           .node = edge->node,
                           .op = plan_graph_op_at(run->graph, node->op),
                           .dy = (PlanTensor[]){hidden, PLAN_NO_TENSOR, PLAN_NO_TENSOR},
                           .dx = made};
    make_both(&swiglu);
    plan_run_unref(run, hidden);
    b->dx[0] = made[0];
    edge->slot = PLAN_SWIGLU_GIVEN_GATE;
    run->tape.slots.items[node->slots + PLAN_SWIGLU_GIVEN_UP] = made[1];
}

static void make_gradient(const PlanBackward *b, PlanTensor dy, PlanTensor dx) {
    bool is_tanh = b->op->kind == PLAN_OP_GELU_TANH;
    KERNEL(b, is_tanh ? PLAN_OP_GELU_TANH_BACKWARD : PLAN_OP_GELU_ERF_BACKWARD, dims(b), NULL,
           tensor(b, dy), value(b, GELU_TANH_X), tensor(b, dx));
}

void plan_gelu_backward(const PlanBackward *b) {
    if (b->dy[GIVEN_BEFORE].storage != PLAN_NONE) {
        b->dx[GELU_TANH_X] = plan_run_ref(b->run, b->dy[GIVEN_BEFORE]);
        return;
    }
    b->dx[GELU_TANH_X] = in_dtype_of_result(b, GELU_TANH_X, "dx");
    make_gradient(b, b->dy[GIVEN_RESULT], b->dx[GELU_TANH_X]);
}

static PlanEdge *edge_to_hidden(const PlanBackward *b) {
    static const PlanOpKind kinds[] = {PLAN_OP_SWIGLU, PLAN_OP_GELU_TANH, PLAN_OP_GELU_ERF};
    PlanEdge *edge = NULL;
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds) && !edge; i++) {
        edge = plan_edge_to_kind(b->run, b->node, LINEAR_X, kinds[i]);
    }
    return edge;
}

static PlanBackward hidden_of(const PlanBackward *b, const PlanEdge *edge) {
    uint32_t op = b->run->tape.nodes.items[edge->node].op;
    return (PlanBackward){
        .run = b->run, .node = edge->node, .op = plan_graph_op_at(b->run->graph, op)};
}

/* Whether nobody else reads it, and all that went into it wants a gradient. */
static bool is_passable(const PlanBackward *hidden) {
    const PlanNode *node = &hidden->run->tape.nodes.items[hidden->node];
    bool is_swiglu = hidden->op->kind == PLAN_OP_SWIGLU;
    return node->n_dependencies == 1 && wanted(hidden, 0) &&
           (!is_swiglu || wanted(hidden, SWIGLU_UP)) &&
           hidden->run->tape.slots.items[node->slots].storage == PLAN_NONE;
}

bool plan_reads_hidden_made_again(const PlanBackward *b) {
    PlanEdge *edge = wanted(b, LINEAR_W) ? edge_to_hidden(b) : NULL;
    if (!edge) {
        return false;
    }
    PlanBackward hidden = hidden_of(b, edge);
    return makes_hidden_again(&hidden) && is_passable(&hidden);
}

void plan_go_through_hidden(const PlanBackward *b) {
    PlanEdge *edge = edge_to_hidden(b);
    PlanBackward hidden = hidden_of(b, edge);
    if (hidden.op->kind == PLAN_OP_SWIGLU) {
        plan_go_through_swiglu(b, edge);
    } else {
        make_gradient(&hidden, b->dx[LINEAR_X], b->dx[LINEAR_X]); /* written over it */
        edge->slot = GIVEN_BEFORE;
    }
    plan_run_drop_saved(b->run, hidden.node);
}
